//! `spec.md`: what one task must do.

use std::collections::HashSet;

use super::diagnostics::{Fault, Faults, instead_of, one_of, quoted};
use super::markdown::{Document, Entry, Value, frontmatter, utf8};
use super::{Identity, TaskId};

/// A `spec.md` that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The task.
    pub id: TaskId,
    /// The title, one line.
    pub title: String,
    /// `feature`, `spike` or `prototype`.
    pub kind: String,
    /// The requirement ids in the order of the list: `R1`, `R2`, …
    pub requirements: Vec<String>,
    /// The requirements that need a review, as the frontmatter lists them.
    pub review_requirements: Vec<String>,
    /// The line of each of `requirements`, from 1.
    lines: Vec<usize>,
}

/// What could be read of a contract that another file is judged by.
#[derive(Debug, Default)]
pub(crate) struct Obligations {
    /// Each requirement and its line, from 1. Nothing where the list could not be read.
    pub(crate) requirements: Option<Vec<(String, usize)>>,
    /// Nothing where it could not be read.
    pub(crate) review: Option<Vec<String>>,
}

/// The line directly above the verification's heading.
const SENTINEL: &str = "<!-- devlyn:verification -->";
const REQUIREMENTS: &str = "Requirements";
const VERIFICATION: &str = "Verification";
const SECTIONS: [&str; 7] = [
    "Context and goal",
    REQUIREMENTS,
    "Scope and constraints",
    "Out of scope",
    "Prerequisite inputs",
    VERIFICATION,
    "Deliverable and cleanup",
];
const KEYS: [&str; 6] = ["id", "loop_id", "title", "kind", "review_requirements", "complexity"];
const KINDS: [&str; 3] = ["feature", "spike", "prototype"];

impl Contract {
    /// The contract of `identity` in `bytes`.
    ///
    /// # Errors
    /// Every fault, topmost first.
    pub fn parse(identity: &Identity, bytes: &[u8]) -> Result<Self, Vec<Fault>> {
        let (contract, _, faults) = read(identity, bytes);
        contract.ok_or(faults)
    }

    pub(crate) fn obligations(&self) -> Obligations {
        let requirements = self.requirements.iter().cloned().zip(self.lines.iter().copied()).collect();
        Obligations { requirements: Some(requirements), review: Some(self.review_requirements.clone()) }
    }
}

/// The contract where it keeps every rule, what could be read of its obligations, and every fault.
pub(crate) fn read(identity: &Identity, bytes: &[u8]) -> (Option<Contract>, Obligations, Vec<Fault>) {
    let mut faults = Faults::new(identity.spec_file());
    let Some(text) = utf8(bytes, &mut faults) else { return (None, Obligations::default(), faults.into_sorted(bytes)) };
    let document = Document::new(text);
    document.check_sections(&SECTIONS, &mut faults);
    check_sentinel(&document, &mut faults);
    let requirements = read_requirements(&document, &mut faults);
    let front = frontmatter(&document, &mut faults).map(|entries| Front::read(identity, &entries, &mut faults));
    let review = front.as_ref().and_then(|front| front.review.clone());
    if let (Some(requirements), Some(review)) = (&requirements, &review) {
        let known: HashSet<&String> = requirements.iter().map(|(id, _)| id).collect();
        for (at, id) in review.iter().filter(|(_, id)| !known.contains(id)) {
            let message = format!("review_requirements names {}, which is no requirement here", quoted(id));
            faults.push(*at, message, format!("name items of \"## {REQUIREMENTS}\", such as [R1]"));
        }
    }
    let review: Option<Vec<String>> = review.map(|review| review.into_iter().map(|(_, id)| id).collect());
    let contract = || {
        let front = front?;
        let (requirements, lines) = requirements.clone()?.into_iter().unzip();
        Some(Contract {
            id: identity.task.clone(),
            title: front.title?,
            kind: front.kind?,
            requirements,
            review_requirements: review.clone()?,
            lines,
        })
    };
    let contract = if faults.len() == 0 { contract() } else { None };
    (contract, Obligations { requirements, review }, faults.into_sorted(bytes))
}

fn check_sentinel(document: &Document<'_>, faults: &mut Faults) {
    let Some(section) = document.section(VERIFICATION) else { return };
    let above = section.heading.checked_sub(1).map(|line| document.lines[line]);
    if above.is_none_or(|line| line.fenced || line.text != SENTINEL) {
        let message = format!("the line directly above \"## {VERIFICATION}\" is not {SENTINEL}");
        faults.push(document.at(section.heading), message, format!("make {SENTINEL} that whole line"));
    }
}

/// The list items `- R<n>: …` of the section. Nothing where there is none, or one twice: which ids there are is then
/// not known, and nothing else can be judged by them.
fn read_requirements(document: &Document<'_>, faults: &mut Faults) -> Option<Vec<(String, usize)>> {
    let section = document.section(REQUIREMENTS)?;
    let mut found: Vec<(String, usize)> = Vec::new();
    let (mut seen, mut doubled) = (HashSet::new(), false);
    for number in section.body.clone() {
        let line = document.lines[number];
        let Some((id, text)) = requirement(line.text).filter(|_| !line.fenced) else { continue };
        if !seen.insert(id) {
            faults.push(line.at, format!("the requirement {id} is there twice"), "give one of the two another number");
            doubled = true;
            continue;
        }
        let goes_on = document.lines.get(number + 1).is_some_and(|next| {
            next.text.starts_with([' ', '\t']) && !next.text.trim().is_empty() && number + 1 < section.body.end
        });
        if text.trim().is_empty() && !goes_on {
            faults.push(line.at, format!("the requirement {id} says nothing"), "write behind the colon what must hold");
        }
        found.push((id.to_owned(), number + 1));
    }
    if found.is_empty() {
        let message = format!("\"## {REQUIREMENTS}\" lists no requirement");
        faults.push(document.at(section.heading), message, "add an item for each: - R1: what must hold");
    }
    (!found.is_empty() && !doubled).then_some(found)
}

/// The id and the text of a list item `- R<n>: …` or `* R<n>: …`, `<n>` from 1.
fn requirement(line: &str) -> Option<(&str, &str)> {
    let item = line.strip_prefix("- ").or_else(|| line.strip_prefix("* "))?.trim_start();
    let (id, text) = item.split_once(':')?;
    let number = id.strip_prefix('R')?;
    let good = !number.starts_with('0') && !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
    good.then_some((id, text))
}

/// What the frontmatter says, as far as it could be read.
struct Front {
    title: Option<String>,
    kind: Option<String>,
    review: Option<Vec<(usize, String)>>,
}

impl Front {
    fn read(identity: &Identity, entries: &[Entry<'_>], faults: &mut Faults) -> Self {
        for entry in entries.iter().filter(|entry| !KEYS.contains(&entry.key)) {
            let message = format!("unknown key {} in the frontmatter", quoted(entry.key));
            let help = match entry.key {
                "status" => "take it out: where a task stands is kept elsewhere".to_owned(),
                key => instead_of(key, &KEYS),
            };
            faults.push(entry.line_at, message, help);
        }
        let find = |key: &str, help: &str, faults: &mut Faults| {
            let entry = entries.iter().find(|entry| entry.key == key).cloned();
            if entry.is_none() {
                faults.push(0, format!("the frontmatter has no {key:?}"), help);
            }
            entry
        };
        for (key, wanted) in [("id", identity.task.as_str()), ("loop_id", identity.loop_id.as_str())] {
            if let Some(entry) = find(key, &format!("add a line \"{key}: {wanted}\""), faults)
                && entry.value != Value::Text(wanted)
            {
                let message = format!("{key} is {}, not {wanted:?} as in the manifest", shown(&entry.value));
                faults.push(entry.at, message, format!("write \"{key}: {wanted}\""));
            }
        }
        let title = find("title", "add a line \"title: …\"", faults).and_then(|entry| title(&entry, faults));
        let help = format!("write {}", one_of(&KINDS));
        let kind = find("kind", &help, faults).and_then(|entry| {
            let kind = KINDS.into_iter().find(|kind| entry.value == Value::Text(kind)).map(str::to_owned);
            if kind.is_none() {
                faults.push(entry.at, format!("unknown kind {}", shown(&entry.value)), help);
            }
            kind
        });
        let help = "list requirement ids such as [R1, R3], or write [] where a machine can judge all";
        let review = find("review_requirements", help, faults).and_then(|entry| match entry.value {
            Value::List(items) => Some(items.into_iter().map(|(at, id)| (at, id.to_owned())).collect()),
            Value::Text(_) => {
                let message = format!("review_requirements is {}, not a list", shown(&entry.value));
                faults.push(entry.at, message, help);
                None
            }
        });
        Self { title, kind, review }
    }
}

fn title(entry: &Entry<'_>, faults: &mut Faults) -> Option<String> {
    match entry.value {
        Value::List(_) => {
            let help = "put quotes around a title that begins with [ and ends with ]";
            faults.push(entry.at, "the title is a list, not a text", help);
            None
        }
        Value::Text(title) if title.trim().is_empty() => {
            faults.push(entry.at, "the title is empty", "say in one line what the task makes");
            None
        }
        Value::Text(title) if title.contains(|c: char| c.is_control() && c != '\t') => {
            faults.push(entry.at, "the title holds a control character", "write one line of plain text");
            None
        }
        Value::Text(title) => Some(title.to_owned()),
    }
}

fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Text("") => "empty".to_owned(),
        Value::Text(text) => quoted(text),
        Value::List(_) => "a list".to_owned(),
    }
}
