//! The inputs commit: what a task's base lacks of its loop, committed before any executor writes.

use super::{Result, refuse};
use crate::git::{NewCommit, Oid, RefChange, Repo};
use crate::package::Identity;
use crate::queue::{Failure, QueueFile, with_mark};
use crate::store::{Receipt, Verdict};
use crate::task::first_reason;
use crate::view::{Held, TaskView, View};

/// Makes the inputs commit of a task that is about to begin at `baseline`; no reference names it yet. The baseline itself
/// where it lacks nothing.
///
/// # Errors
/// Where the loop is not known well enough, or the commit cannot be made.
pub fn make_inputs(repo: &Repo, view: &View, task: &TaskView, baseline: Oid, local_only: bool) -> Result<Oid> {
    let missing = Ground { repo, view, task, baseline, local_only }.missing()?;
    if missing.is_empty() { Ok(baseline) } else { make(repo, &task.identity, baseline, &missing) }
}

/// Commits the inputs of an allocated task, or finds that they are committed, and brings the checkout up to them. The
/// commit that its executor starts from; the baseline itself where that lacks nothing.
///
/// # Errors
/// Where the branch holds anything else than its baseline or exactly these inputs; it is left as it is.
pub fn commit_inputs(repo: &Repo, view: &View, task: &TaskView, held: &Held) -> Result<Oid> {
    let receipt = &held.receipt;
    let name = format!("refs/heads/{}", receipt.branch);
    let Some(head) = repo.resolve(&name)? else { return refuse(format!("its branch {} is gone", receipt.branch)) };
    let ground = Ground { repo, view, task, baseline: receipt.baseline, local_only: receipt.local_only };
    let missing = ground.missing()?;
    if missing.is_empty() {
        if head != receipt.baseline {
            return unexpected(receipt, head);
        }
        return Ok(head);
    }
    let commit = if head == receipt.baseline {
        let commit = make(repo, &task.identity, receipt.baseline, &missing)?;
        repo.update_refs(&[RefChange::Update { name, new: commit, old: receipt.baseline }])?;
        commit
    } else if is_inputs(repo, receipt.baseline, head, &missing)? {
        head
    } else {
        return unexpected(receipt, head);
    };
    held.checkout(repo).advance(receipt.baseline, commit)?;
    Ok(commit)
}

fn make(repo: &Repo, identity: &Identity, baseline: Oid, files: &[(String, Vec<u8>)]) -> Result<Oid> {
    let message = message(identity);
    let parents = &[baseline];
    let new = NewCommit { base: Some(baseline), files, parents, message: &message, author: repo.author()? };
    Ok(repo.commit_new(&new)?.1)
}

fn message(identity: &Identity) -> String {
    format!("devlyn loop: inputs {identity}\n")
}

/// Whether `head` is an inputs commit as the drain makes it for the receipt's task, and nothing else: directly on the
/// baseline, with its message, and with no files but those of the loop's capture and its queue file.
///
/// # Errors
/// Where one of them cannot be read.
pub(super) fn are_inputs(repo: &Repo, receipt: &Receipt, head: Oid) -> Result<bool> {
    let Ok(identity) = Identity::parse(&receipt.task) else { return Ok(false) };
    let ours = repo.commit(head)?.is_some_and(|commit| commit.parents == [receipt.baseline]);
    if !ours || repo.message(head)? != message(&identity) {
        return Ok(false);
    }
    let capture = repo.resolve(&identity.loop_id.capture_ref())?;
    let queue = identity.loop_id.queue_file();
    for change in repo.changes(receipt.baseline, head)? {
        let Ok(path) = std::str::from_utf8(&change.path) else { return Ok(false) };
        let given = if path == queue {
            let file = repo.file(head, path)?;
            file.is_some_and(|file| matches!(QueueFile::parse(&identity.loop_id, &file.data), Ok(Some(_))))
        } else {
            let captured = capture.map(|capture| repo.entry(capture, path)).transpose()?.flatten();
            captured.is_some() && captured == repo.entry(head, path)?
        };
        if !given {
            return Ok(false);
        }
    }
    Ok(true)
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

/// What the inputs of a task are made from.
struct Ground<'a> {
    repo: &'a Repo,
    view: &'a View,
    task: &'a TaskView,
    baseline: Oid,
    local_only: bool,
}

impl Ground<'_> {
    /// The files of the inputs that the baseline does not hold just so.
    fn missing(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let mut missing = Vec::new();
        for (path, data) in self.wanted()? {
            if self.repo.entry(self.baseline, &path)?.map(|entry| entry.id) != Some(self.repo.blob_id(&data)?) {
                missing.push((path, data));
            }
        }
        Ok(missing)
    }

    /// The files that the inputs hold: the captured package where the base has no queue file of the loop, and the queue
    /// file with every settled row as it was settled.
    fn wanted(&self) -> Result<Vec<(String, Vec<u8>)>> {
        let Self { repo, view, task, baseline, local_only } = *self;
        let Some(found) = view.loop_of(task) else { return refuse("its loop is gone") };
        let queue = found.id.queue_file();
        if let Some(base) = repo.file(baseline, &queue)? {
            // A published task changes its own row and its product only; what others settled reaches the base by their
            // own.
            let settled = if local_only { settled(view, task, base.data) } else { base.data };
            return Ok(vec![(queue, settled)]);
        }
        let Some(record) = &found.record else {
            return refuse(format!("{baseline} holds no {queue}, and this repository has no capture of the loop"));
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
