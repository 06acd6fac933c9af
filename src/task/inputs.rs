//! The inputs commit: what a task's base lacks of its loop, committed before any executor writes.

use super::{Result, refuse};
use crate::git::{NewCommit, Oid, RefChange, Repo};
use crate::queue::{Failure, with_mark};
use crate::store::{Receipt, Verdict};
use crate::task::first_reason;
use crate::view::{Held, Loop, TaskView, View};

/// The commit that a task's executor starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inputs {
    /// The commit; the baseline itself where it lacks nothing.
    pub commit: Oid,
}

/// Commits the inputs of an allocated task, or finds that they are committed, and brings the checkout up to them.
///
/// # Errors
/// Where the branch holds anything else than its baseline or exactly these inputs; it is left as it is.
pub fn commit_inputs(repo: &Repo, view: &View, task: &TaskView, held: &Held) -> Result<Inputs> {
    let receipt = &held.receipt;
    let Some(found) = view.loop_of(task) else { return refuse("its loop is gone") };
    let name = format!("refs/heads/{}", receipt.branch);
    let Some(head) = repo.resolve(&name)? else { return refuse(format!("its branch {} is gone", receipt.branch)) };
    let files = wanted(repo, view, task, found, receipt)?;
    let missing = missing(repo, receipt.baseline, files)?;
    if missing.is_empty() {
        if head != receipt.baseline {
            return unexpected(receipt, head);
        }
        return Ok(Inputs { commit: head });
    }
    let commit = if head == receipt.baseline {
        let message = format!("devlyn loop: inputs {}\n", task.identity);
        let new = NewCommit {
            base: Some(receipt.baseline),
            files: &missing,
            parents: &[receipt.baseline],
            message: &message,
            author: repo.author()?,
        };
        let (_, commit) = repo.commit_new(&new)?;
        repo.update_refs(&[RefChange::Update { name, new: commit, old: receipt.baseline }])?;
        commit
    } else if is_inputs(repo, receipt.baseline, head, &missing)? {
        head
    } else {
        return unexpected(receipt, head);
    };
    held.checkout(repo).advance(receipt.baseline, commit)?;
    Ok(Inputs { commit })
}

fn unexpected<T>(receipt: &Receipt, head: Oid) -> Result<T> {
    refuse(format!(
        "{} is at {head}, which is neither its baseline {} nor its inputs; inspect it with `git log {}..{head}` and take \
         what is not the task's elsewhere",
        receipt.branch, receipt.baseline, receipt.baseline
    ))
}

/// Whether `head` is the commit of exactly these files on the baseline.
fn is_inputs(repo: &Repo, baseline: Oid, head: Oid, missing: &[(String, Vec<u8>)]) -> Result<bool> {
    let Some(commit) = repo.commit(head)?.filter(|commit| commit.parents == [baseline]) else { return Ok(false) };
    let changes = repo.changes(baseline, commit.id)?;
    if changes.len() != missing.len() {
        return Ok(false);
    }
    for (path, data) in missing {
        let there = repo.entry(head, path)?.map(|entry| entry.id);
        if there != Some(repo.blob_id(data)?) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The files of `files` that `baseline` does not hold just so.
fn missing(repo: &Repo, baseline: Oid, files: Vec<(String, Vec<u8>)>) -> Result<Vec<(String, Vec<u8>)>> {
    let mut missing = Vec::new();
    for (path, data) in files {
        if repo.entry(baseline, &path)?.map(|entry| entry.id) != Some(repo.blob_id(&data)?) {
            missing.push((path, data));
        }
    }
    Ok(missing)
}

/// The files that the inputs hold: the captured package where the base has no queue file of the loop, and the queue
/// file with every settled row as it was settled.
fn wanted(
    repo: &Repo,
    view: &View,
    task: &TaskView,
    found: &Loop,
    receipt: &Receipt,
) -> Result<Vec<(String, Vec<u8>)>> {
    let queue = found.id.queue_file();
    if let Some(base) = repo.file(receipt.baseline, &queue)? {
        // A published task changes its own row and its product only; what others settled reaches the base by their own.
        let settled = if receipt.local_only { settled(view, task, base.data) } else { base.data };
        return Ok(vec![(queue, settled)]);
    }
    let Some(record) = &found.record else {
        return refuse(format!(
            "{} holds no {queue}, and this repository has no capture of the loop",
            receipt.baseline
        ));
    };
    let mut files = Vec::new();
    let manifest = found.manifest.as_ref().map_err(|why| super::TaskError::Refused(why.clone()))?;
    for path in crate::package::Package::paths(manifest) {
        if let Some(blob) = repo.file(record.commit, &path)? {
            files.push((path, blob.data));
        }
    }
    if let Some(blob) = repo.file(record.commit, &queue)? {
        files.push((queue, settled(view, task, blob.data)));
    }
    Ok(files)
}

/// The queue file with the row of every other task of the loop that a receipt proves, or a prerequisite blocks.
fn settled(view: &View, task: &TaskView, queue: Vec<u8>) -> Vec<u8> {
    view.tasks_of(task.loop_index).filter(|other| other.identity != task.identity).fold(queue, |queue, other| {
        let failure = match (other.held(), &other.blocked_by) {
            (Some(held), _) => match held.receipt.verdict() {
                None => return queue,
                Some(Verdict::Accepted) => None,
                Some(Verdict::Failed) => Some(failure_of(&held.receipt)),
            },
            (None, Some((by, receipt))) => {
                Some(Failure { reason: format!("blocked-prerequisite:{by}"), receipt: receipt.clone() })
            }
            (None, None) => return queue,
        };
        with_mark(&queue, &other.identity, failure.as_ref()).unwrap_or(queue)
    })
}

/// What the row of a failed receipt says.
pub(super) fn failure_of(receipt: &Receipt) -> Failure {
    Failure { reason: first_reason(receipt), receipt: Some(receipt.id.clone()) }
}
