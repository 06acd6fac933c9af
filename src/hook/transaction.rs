//! The references that keep captures and results: never deleted, and moved only to where it is on record. Guarded only
//! where that was asked for, because Git calls this hook for every reference that changes.

use super::violation::{Rule, Violation};
use super::{HookError, Result};
use crate::git::{Oid, Repo};
use crate::package::{Identity, LoopId};
use crate::queue::transition;
use crate::store::{Layout, Receipt, ReceiptDir, Record};

const CAPTURES: &str = "refs/devlyn/captures/";
const COMPLETED: &str = "refs/devlyn/completed/";

/// Whether a transaction in the state `state` that Git describes in `input` has anything to do with what is guarded;
/// everything else is let through without a look at the repository.
#[must_use]
pub fn concerns(state: &str, input: &[u8]) -> bool {
    // What is prepared is locked and can still be refused.
    state == "prepared"
        && input.split(|byte| *byte == b'\n').any(|line| {
            let name = line.splitn(3, |byte| *byte == b' ').nth(2).unwrap_or_default();
            name.starts_with(CAPTURES.as_bytes()) || name.starts_with(COMPLETED.as_bytes())
        })
}

/// What the transaction that Git describes to `reference-transaction` does and may not.
///
/// # Errors
/// Where the input is none, or the record of a reference cannot be read.
pub fn judge_transaction(repo: &Repo, state: &str, input: &[u8]) -> Result<Vec<Violation>> {
    let mut found = Vec::new();
    if !concerns(state, input) {
        return Ok(found);
    }
    let text = String::from_utf8_lossy(input);
    for line in text.lines() {
        let fields: Vec<&str> = line.splitn(3, ' ').collect();
        let [_, new, name] = fields[..] else {
            return Err(HookError::Input(format!("Git described a transaction in a way that is not known: {line:?}")));
        };
        if !name.starts_with(CAPTURES) && !name.starts_with(COMPLETED) {
            continue;
        }
        // What Git tells as the old value is what the writer expects; what counts is what is there.
        let Some(current) = repo.resolve(name)? else { continue };
        // Not an id: it would become a symbolic reference, which is never on record.
        let (symbolic, new) = (new.starts_with("ref:"), new.parse::<Oid>().ok().filter(|new| !new.is_null()));
        let fault = |what: &str, remedy: &str| Violation::new(Rule::Ref, name, what, remedy);
        match new {
            Some(new) if new == current => {}
            Some(new) if recorded(repo, name, current, new)? => {}
            None if !symbolic && is_packed(repo, name, current) => {}
            Some(_) | None if symbolic || new.is_some() => found.push(fault(
                "is moved to something that no record of this repository names",
                "leave it to `git devlyn`; `git devlyn fsck` says where it belongs",
            )),
            _ => found.push(fault(
                "is deleted, and with it a captured package or a result",
                "keep it: it costs nothing, and Git's maintenance packs it",
            )),
        }
    }
    Ok(found)
}

/// Whether this is no deletion: `git pack-refs` takes the loose file away after it has packed the reference. While a
/// deletion is prepared, the lock of the packed references is held.
fn is_packed(repo: &Repo, name: &str, current: Oid) -> bool {
    let packed = repo.common_dir().join("packed-refs");
    let line = format!("{current} {name}");
    !packed.with_extension("lock").exists()
        && std::fs::read(packed)
            .is_ok_and(|bytes| bytes.split(|byte| *byte == b'\n').any(|found| found == line.as_bytes()))
}

/// Whether the record that belongs to the reference names its new place.
fn recorded(repo: &Repo, name: &str, current: Oid, new: Oid) -> Result<bool> {
    let layout = Layout::new(repo.common_dir());
    if let Some(loop_id) = name.strip_prefix(CAPTURES) {
        let Ok(loop_id) = LoopId::new(loop_id) else { return Ok(false) };
        return Ok(Record::read(&layout, &loop_id)?.is_some_and(|record| record.commit == new));
    }
    let Some(key) = name.strip_prefix(COMPLETED).filter(|key| !key.contains('/')) else { return Ok(false) };
    let Some(receipt) = Receipt::read(&ReceiptDir::new(layout.completions().join(key)))? else { return Ok(false) };
    let named = [receipt.source_sha, receipt.publish_sha, receipt.queue.as_ref().map(|queue| queue.commit)];
    Ok(named.contains(&Some(new)) || (receipt.source_sha == Some(current) && is_terminal(repo, &receipt, new)?))
}

/// Whether `new` is the terminal commit of the receipt's bound source, which is attached before it is recorded.
fn is_terminal(repo: &Repo, receipt: &Receipt, new: Oid) -> Result<bool> {
    let (Some(source), Ok(identity)) = (receipt.source_sha, Identity::parse(&receipt.task)) else { return Ok(false) };
    let path = identity.loop_id.queue_file();
    if repo.commit(new)?.is_none_or(|commit| commit.parents != [source]) {
        return Ok(false);
    }
    let (Some(before), Some(after)) = (repo.file(source, &path)?, repo.file(new, &path)?) else { return Ok(false) };
    let only = repo.changes(source, new)?.iter().all(|change| change.path == path);
    Ok(only && transition(&before.data, &after.data).is_ok_and(|step| step.identity == identity))
}
