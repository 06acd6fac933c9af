//! The scratch directory: emptied once its owner said that all writers have stopped and nothing contradicts it.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Result, TaskError, refuse};
use crate::git::Repo;
use crate::os::{tree, writers};
use crate::shell;
use crate::store::{Cleanup, Layout, Receipt, ReceiptDir};

/// What `clean-scratch` did.
#[derive(Debug, Serialize)]
pub struct ScratchCleaned {
    /// `SCRATCH_CLEAN` or `SCRATCH_NOT_OWNED`.
    pub status: &'static str,
    /// The receipt.
    pub receipt: PathBuf,
    /// How the cleanup stands.
    pub scratch_cleanup: Cleanup,
    /// Always true: cleaning decides nothing.
    pub product_verdict_unchanged: bool,
}

/// Empties the scratch directory of the receipt at `path`.
///
/// # Errors
/// Where it is retained, with the reason.
pub fn clean_scratch(repo: &Repo, layout: &Layout, path: &Path, writers_stopped: bool) -> Result<ScratchCleaned> {
    let (_lock, dir, mut receipt) = Receipt::locked(layout, path)?;
    release(&mut receipt, writers_stopped)?;
    let cleanup = empty(repo, &dir, &receipt);
    receipt.scratch_cleanup = Some(cleanup.clone());
    receipt.write(&dir)?;
    let status = match &cleanup {
        Cleanup::Clean { .. } => "SCRATCH_CLEAN",
        Cleanup::NotOwned => "SCRATCH_NOT_OWNED",
        Cleanup::Retained { reason, .. } => return refuse(reason.clone()),
    };
    Ok(ScratchCleaned { status, receipt: dir.receipt(), scratch_cleanup: cleanup, product_verdict_unchanged: true })
}

/// Records the owner's word that all writers have stopped, which nobody can give from inside the worktree.
///
/// # Errors
/// Where it is given from there.
pub(super) fn release(receipt: &mut Receipt, writers_stopped: bool) -> Result<()> {
    if writers_stopped {
        writers::outside(&receipt.worktree).map_err(|why| TaskError::Refused(why.to_string()))?;
        receipt.writers_released = true;
    }
    Ok(())
}

/// Empties the scratch directory where it may be, and says how it stands.
pub(super) fn empty(repo: &Repo, dir: &ReceiptDir, receipt: &Receipt) -> Cleanup {
    let Some([scratch_identity, dir_identity]) = receipt.scratch_identity else { return Cleanup::NotOwned };
    let scratch = dir.scratch();
    let words = ["git", "devlyn", "task", "clean-scratch", "--receipt"];
    let receipt_path = dir.receipt();
    let words = words.iter().map(AsRef::as_ref).chain([receipt_path.as_os_str(), "--writers-stopped".as_ref()]);
    let resume = shell::line(words);
    let retained = |reason: String| Cleanup::Retained { reason, resume: resume.clone() };
    if !receipt.writers_released {
        return retained("its writers were not said to have stopped; say so with --writers-stopped".to_owned());
    }
    if tree::identity(dir.path()).ok() != Some(dir_identity) || tree::identity(&scratch).ok() != Some(scratch_identity)
    {
        return retained(format!("{} is not the directory that was allocated", scratch.display()));
    }
    if std::fs::read_dir(&scratch).is_ok_and(|mut entries| entries.next().is_none()) {
        return Cleanup::Clean { logical_bytes_removed: Some(0) };
    }
    let since = std::fs::metadata(dir.path()).and_then(|meta| meta.created()).ok();
    if let Err(writing) = writers::observe(&scratch, since, repo.config("devlyn.writers").as_deref() == Some("strict"))
    {
        return retained(writing.to_string());
    }
    match tree::empty(&scratch, scratch_identity) {
        Ok(bytes) => Cleanup::Clean { logical_bytes_removed: Some(bytes) },
        Err(why) => retained(why.to_string()),
    }
}
