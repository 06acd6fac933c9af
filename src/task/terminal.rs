//! The terminal commit: one row of one file on the bound source.

use super::inputs::failure_of;
use super::{Result, TaskError, refuse};
use crate::git::{Checkout, NewCommit, Oid, RefChange, Repo, shown};
use crate::package::Identity;
use crate::queue::{Failure, transition, with_mark};
use crate::store::{Layout, Lock, Receipt, Verdict};

/// The first reason of a failed receipt.
#[must_use]
pub fn first_reason(receipt: &Receipt) -> String {
    let reasons = receipt.acceptance.as_ref().map(crate::store::Acceptance::reasons).unwrap_or_default();
    reasons.into_iter().next().unwrap_or_else(|| "failed: no reason was recorded".to_owned())
}

/// The terminal commit of a bound task, made where it is missing. The checkout is behind it then; see [`check_out`].
///
/// # Errors
/// Where the owned branch holds anything else than the source or its terminal commit; it is left as it is.
pub fn commit_terminal(repo: &Repo, layout: &Layout, identity: &Identity, receipt: &Receipt) -> Result<Oid> {
    let Some(source) = receipt.source_sha else { return refuse("nothing is bound") };
    let failed = receipt.verdict() == Some(Verdict::Failed);
    let failure = failed.then(|| failure_of(receipt));
    let name = format!("refs/heads/{}", receipt.branch);
    let _lock = Lock::wait(&layout.queue_lock())?;
    match repo.resolve(&name)? {
        Some(head) if head == source => make(repo, identity, receipt, source, failure.as_ref(), name),
        Some(head) => {
            hold(repo, identity, receipt, source, head)?;
            Ok(head)
        }
        None => refuse(format!("its branch {} is gone", receipt.branch)),
    }
}

/// Brings the checkout of a bound task up to its terminal commit.
///
/// # Errors
/// Where something that is not committed stands in the way of an accepted result.
pub fn check_out(checkout: &Checkout, receipt: &Receipt, terminal: Oid) -> Result<()> {
    let Some(source) = receipt.source_sha else { return refuse("nothing is bound") };
    match checkout.advance(source, terminal) {
        // A failed result is never published, so what its executor left in the checkout may stand in the way and stay.
        Err(_) if receipt.verdict() == Some(Verdict::Failed) => Ok(()),
        brought => brought.map_err(TaskError::from),
    }
}

fn make(
    repo: &Repo,
    identity: &Identity,
    receipt: &Receipt,
    source: Oid,
    failure: Option<&Failure>,
    name: String,
) -> Result<Oid> {
    let path = identity.loop_id.queue_file();
    let queue = base_queue(repo, identity, receipt, source)?;
    let Some(settled) = with_mark(&queue, identity, failure) else {
        return refuse(format!("{path} of {source} has no pending row of {identity}"));
    };
    let verb = if failure.is_some() { "fail" } else { "accept" };
    let message = format!("devlyn loop: {verb} {identity}\n");
    let files = [(path, settled)];
    let new =
        NewCommit { base: Some(source), files: &files, parents: &[source], message: &message, author: repo.author()? };
    let (_, terminal) = repo.commit_new(&new)?;
    repo.update_refs(&[RefChange::Update { name, new: terminal, old: source }])?;
    Ok(terminal)
}

/// Refuses where the commit `head` is not the terminal commit that would be made.
fn hold(repo: &Repo, identity: &Identity, receipt: &Receipt, source: Oid, head: Oid) -> Result<()> {
    match terminal_fault(repo, identity, receipt, source, head)? {
        None => Ok(()),
        Some(_) => refuse(format!(
            "{} is at {head}, which is neither the bound source {source} nor its terminal commit; inspect it with \
             `git log {source}..{head}` and take what is not the task's elsewhere",
            receipt.branch
        )),
    }
}

/// Why the commit `head` is not the one that settles the receipt's task on its bound `source`; `None` where it is.
///
/// # Errors
/// Where a commit cannot be read, or the source holds no queue file.
pub fn terminal_fault(
    repo: &Repo,
    identity: &Identity,
    receipt: &Receipt,
    source: Oid,
    head: Oid,
) -> Result<Option<String>> {
    let path = identity.loop_id.queue_file();
    if repo.commit(head)?.is_none_or(|commit| commit.parents != [source]) {
        return Ok(Some(format!("does not lie directly on its source {source}")));
    }
    if let Some(other) = repo.changes(source, head)?.iter().find(|change| change.path != path.as_str()) {
        return Ok(Some(format!("changes {}, and more than its row", shown(other.path.as_ref()))));
    }
    let before = base_queue(repo, identity, receipt, source)?;
    let after = repo.file(head, &path)?.map(|blob| blob.data).unwrap_or_default();
    let failed = receipt.verdict() == Some(Verdict::Failed);
    Ok(match transition(&before, &after) {
        Err(why) => Some(format!("does not settle its row in {path}: {why}")),
        Ok(found) if found.identity != *identity => Some(format!("settles the row of {}", found.identity)),
        Ok(found) if found.failure.is_some() != failed => {
            Some(format!("settles its row as {}", if failed { "accepted" } else { "failed" }))
        }
        Ok(_) => None,
    })
}

/// The queue file in which the row is settled: the source's, or the inputs' where a failed candidate edited its own.
fn base_queue(repo: &Repo, identity: &Identity, receipt: &Receipt, source: Oid) -> Result<Vec<u8>> {
    let path = identity.loop_id.queue_file();
    let at = |commit: Oid| -> Result<Option<Vec<u8>>> { Ok(repo.file(commit, &path)?.map(|blob| blob.data)) };
    let inputs = receipt.acceptance.as_ref().and_then(|acceptance| acceptance.text("inputs_sha"));
    let inputs = inputs.map(|text| repo.exact_commit(text)).transpose()?.flatten();
    let failed = receipt.verdict() == Some(Verdict::Failed);
    let queue = match (failed, inputs) {
        (true, Some(inputs)) => at(inputs)?,
        _ => at(source)?,
    };
    match queue {
        Some(queue) => Ok(queue),
        None => refuse(format!("{source} holds no {path}")),
    }
}
