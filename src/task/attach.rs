//! Attaching the terminal commit: the recovery ref moves to it, then the receipt says so.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Result, accept, refuse};
use crate::git::{Oid, RefChange, Repo};
use crate::store::{Layout, Queue, Receipt, ReceiptDir, Verdict};

/// What was attached.
#[derive(Debug, Serialize)]
pub struct Attached {
    /// Always `ATTACHED`.
    pub status: &'static str,
    /// The receipt.
    pub receipt: PathBuf,
    /// The bound source.
    pub source_sha: Oid,
    /// The terminal commit.
    pub terminal_sha: Oid,
}

/// Attaches `commit`, whose only change is `file`, to the receipt at `path`.
///
/// # Errors
/// Where it is not that commit, or something moved; then nothing was changed.
pub fn attach(repo: &Repo, layout: &Layout, path: &Path, commit: Oid, file: &str) -> Result<Attached> {
    let (_lock, dir, mut receipt) = Receipt::locked(layout, path)?;
    let attached = attach_to(repo, &dir, &mut receipt, commit, file)?;
    receipt.write(&dir)?;
    Ok(attached)
}

/// As [`attach`], on a receipt whose lock is held, and which the caller writes: what the recovery ref says and the
/// receipt does not yet is found again (formats, the recovery table).
///
/// # Errors
/// As [`attach`].
pub fn attach_to(repo: &Repo, dir: &ReceiptDir, receipt: &mut Receipt, commit: Oid, file: &str) -> Result<Attached> {
    let (Some(source), Some(verdict)) = (receipt.source_sha, receipt.verdict()) else {
        return refuse(format!("nothing is bound to {}; accept a result first", dir.receipt().display()));
    };
    let attached = Attached { status: "ATTACHED", receipt: dir.receipt(), source_sha: source, terminal_sha: commit };
    if let Some(queue) = &receipt.queue {
        if queue.commit != commit || queue.file != file {
            return refuse(format!("{} has the terminal commit {} already", dir.receipt().display(), queue.commit));
        }
        accept::intact(repo, dir, receipt)?;
        return Ok(attached);
    }
    let plain = Path::new(file).components().all(|part| matches!(part, std::path::Component::Normal(_)));
    if file.is_empty() || !plain {
        return refuse(format!("{file:?} is no plain path of a file in the repository"));
    }
    if repo.commit(commit)?.is_none_or(|found| found.parents != [source]) {
        return refuse(format!("{commit} does not lie on the bound source {source} alone"));
    }
    let changes = repo.changes(source, commit)?;
    if changes.len() != 1 || changes.iter().any(|change| change.path != file) {
        return refuse(format!("{commit} changes something else than {file}, and that alone"));
    }
    let head = repo.resolve(&format!("refs/heads/{}", receipt.branch))?;
    if head != Some(commit) {
        return refuse(format!("{} is not at {commit}", receipt.branch));
    }
    if verdict == Verdict::Accepted {
        accept::checked_out(repo, receipt, commit)?;
    }
    let name = receipt.recovery_ref.clone();
    match repo.resolve(&name)? {
        Some(at) if at == source => {
            // Whoever made the commit may not have flushed it.
            repo.flush_between(source, commit)?;
            repo.update_refs(&[RefChange::Update { name, new: commit, old: source }])?;
        }
        Some(at) if at == commit => {}
        at => {
            let at = at.map_or_else(|| "gone".to_owned(), |id| format!("at {id}"));
            return refuse(format!(
                "{name} is {at}, neither at the source {source} nor at {commit}; it is never overwritten"
            ));
        }
    }
    receipt.queue = Some(Queue { commit, file: file.to_owned() });
    receipt.publish_sha = Some(commit);
    Ok(attached)
}
