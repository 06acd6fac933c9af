//! Runner results that an executor lists: whether one of them may stand for running the commands again. It may where
//! it is wholly clean, for this candidate and these contracts, and its evidence lies there unchanged.

use std::path::Path;

use super::Result;
use super::evidence::{Unusable, place, read, read_listed};
use crate::exchange::{Checked, Command, CommandRecord, Digests, LOOP_EVIDENCE, Outcome, Stream};
use crate::git::Oid;
use crate::os::process::KEEP;
use crate::package::{CommandSpec, Identity, sha256_hex};

/// What the listed results came to.
#[derive(Debug, Default)]
pub(super) struct Reuse {
    /// The result that serves, relative to the worktree, and its records.
    pub(super) serving: Option<(String, Vec<CommandRecord>)>,
    /// What is wrong with those that cannot be read.
    pub(super) reasons: Vec<String>,
}

/// What a result must be of.
#[derive(Debug)]
pub(super) struct Wanted<'a> {
    /// The task.
    pub(super) task: &'a Identity,
    /// The candidate.
    pub(super) source: Oid,
    /// What it is compared with.
    pub(super) inputs: Oid,
    /// What it is judged by.
    pub(super) contract: &'a Digests,
    /// The declared commands.
    pub(super) commands: &'a [CommandSpec],
}

/// Reads the results at `paths` below `worktree`; the first that may serve does.
///
/// # Errors
/// Where the machine cannot read one that is there.
pub(super) fn find(worktree: &Path, paths: &[String], wanted: &Wanted<'_>) -> Result<Reuse> {
    let mut reuse = Reuse::default();
    for path in paths {
        let read = read_listed(worktree, path, LOOP_EVIDENCE);
        match read.and_then(|(relative, bytes)| Ok((relative, Checked::parse_result(&bytes)?))) {
            Err(Unusable::Unknown(error)) => return Err(error),
            Err(Unusable::Wrong(why)) => reuse.reasons.push(format!("failed: runner result {path:?} {why}")),
            Ok((relative, result)) => {
                if reuse.serving.is_none() && wanted.serves(worktree, &result) {
                    let records = result
                        .commands
                        .into_iter()
                        .map(|record| CommandRecord { reused_from: Some(relative.clone()), ..record });
                    reuse.serving = Some((relative.clone(), records.collect()));
                }
            }
        }
    }
    Ok(reuse)
}

impl Wanted<'_> {
    fn serves(&self, worktree: &Path, result: &Checked) -> bool {
        result.reasons.is_empty()
            && result.task == *self.task
            && result.source_sha == self.source
            && result.inputs_sha == self.inputs
            && result.contract == *self.contract
            && result.commands.len() == self.commands.len()
            && result.commands.iter().zip(self.commands).enumerate().all(|(index, (record, spec))| {
                record.index == index
                    && record.command == Command::from(&spec.words)
                    && record.contract_refs == spec.contract_refs
                    && record.passed
                    && record.reason.is_none()
                    && matches!(record.outcome, Outcome::Exit { exit_code } if i64::from(exit_code) == spec.exit_code)
                    && unchanged(worktree, &record.stdout)
                    && unchanged(worktree, &record.stderr)
            })
    }
}

/// Whether the evidence lies where the record says, as it says.
fn unchanged(worktree: &Path, stream: &Stream) -> bool {
    let Ok(relative) = place(worktree, &stream.path, LOOP_EVIDENCE) else { return false };
    // The path goes into the acceptance as it stands. No stream of ours is longer, but for the line that tells of a cut.
    relative == stream.path
        && stream.bytes <= KEEP + 4096
        && matches!(read(&worktree.join(relative), stream.bytes), Ok(Some(Ok(bytes)))
            if bytes.len() as u64 == stream.bytes && sha256_hex(&bytes) == stream.sha256)
}
