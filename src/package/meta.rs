//! `meta.md`: the intent, what holds for every task, and the manifest.

use super::diagnostics::{Fault, Faults};
use super::manifest::{self, IsCommit, Reading};
use super::markdown::{Block, Document, utf8};
use super::places::{self, Node};
use super::{LoopId, Manifest};

/// A `meta.md` that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    /// The manifest in it.
    pub manifest: Manifest,
    intent: String,
    constraints: String,
    decisions: String,
}

const INTENT: &str = "Intent";
const CONSTRAINTS: &str = "Constraints and exclusions";
const DECISIONS: &str = "Decisions and assumptions";
const SECTIONS: [&str; 6] = [INTENT, CONSTRAINTS, "Tasks", "Overall acceptance", "Execution policy", DECISIONS];

impl Meta {
    /// The meta-prompt of `loop_id` in `bytes`. Whether `base_sha` is a commit is not asked.
    ///
    /// # Errors
    /// Every fault, topmost first.
    pub fn parse(loop_id: &LoopId, bytes: &[u8]) -> Result<Self, Vec<Fault>> {
        let (meta, _, faults) = read(loop_id, bytes, None);
        meta.ok_or(faults)
    }

    /// The body of `## Intent`, trimmed.
    #[must_use]
    pub fn intent(&self) -> &str {
        &self.intent
    }

    /// The body of `## Constraints and exclusions`, trimmed.
    #[must_use]
    pub fn constraints(&self) -> &str {
        &self.constraints
    }

    /// The body of `## Decisions and assumptions` without the manifest, trimmed; may be empty.
    #[must_use]
    pub fn decisions(&self) -> &str {
        &self.decisions
    }
}

impl Manifest {
    /// The manifest in a captured `meta.md`, whose text was judged when it was captured: only the manifest is read.
    ///
    /// # Errors
    /// The topmost fault of the manifest.
    pub fn parse_meta(loop_id: &LoopId, bytes: &[u8]) -> Result<Self, Fault> {
        let mut faults = Faults::new(loop_id.meta_file());
        let manifest = utf8(bytes, &mut faults).and_then(|text| {
            let document = Document::new(text);
            let (_, value) = manifest_in(text, &document, &mut faults)?;
            manifest::read(loop_id, &value, None, &mut faults).manifest
        });
        // A manifest is there exactly where no fault is, but for a second block, which takes nothing from it.
        manifest.ok_or_else(|| faults.into_sorted(bytes).into_iter().next().unwrap_or_else(|| unreadable(loop_id)))
    }
}

fn unreadable(loop_id: &LoopId) -> Fault {
    let mut faults = Faults::new(loop_id.meta_file());
    faults.push(0, "the manifest cannot be read", "add the loop again");
    faults.into_sorted(b"").remove(0)
}

/// The meta-prompt where it keeps every rule, what could be read of its manifest, and every fault.
pub(crate) fn read(
    loop_id: &LoopId,
    bytes: &[u8],
    is_commit: Option<IsCommit<'_>>,
) -> (Option<Meta>, Reading, Vec<Fault>) {
    let mut faults = Faults::new(loop_id.meta_file());
    let Some(text) = utf8(bytes, &mut faults) else { return (None, Reading::default(), faults.into_sorted(bytes)) };
    let document = Document::new(text);
    document.check_sections(&SECTIONS, &mut faults);
    let found = manifest_in(text, &document, &mut faults);
    let mut reading = Reading::default();
    if let Some((_, value)) = &found {
        reading = manifest::read(loop_id, value, is_commit, &mut faults);
    }
    let section = |name: &str, without: Option<&Block>| {
        let without = without.map(|block| block.opening..block.body.end + 1);
        let body = document.section(name).map_or(0..0, |section| section.body.clone());
        document.text(body, without.as_ref())
    };
    let meta = reading.manifest.clone().filter(|_| faults.len() == 0).map(|manifest| Meta {
        manifest,
        intent: section(INTENT, None),
        constraints: section(CONSTRAINTS, None),
        decisions: section(DECISIONS, found.as_ref().map(|(block, _)| *block)),
    });
    (meta, reading, faults.into_sorted(bytes))
}

/// The one fenced block that holds JSON, and the value in it.
fn manifest_in<'d>(text: &str, document: &'d Document<'_>, faults: &mut Faults) -> Option<(&'d Block, Node)> {
    let mut blocks = document.blocks.iter().filter(|block| block.json);
    let Some(block) = blocks.next() else {
        faults.push(0, "there is no manifest", "add one block that opens with ```json and closes with ```");
        return None;
    };
    for second in blocks {
        let message = "a second json block: which one is the manifest?";
        faults.push(document.at(second.opening), message, "keep one; fence any other JSON with plain backticks");
    }
    if !block.closed {
        faults.push(document.at(block.opening), "the manifest's block is never closed", "write ``` below it");
        return None;
    }
    let value = places::parse(text, document.at(block.body.start)..document.at(block.body.end), faults)?;
    Some((block, value))
}
