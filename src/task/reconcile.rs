//! What became of earlier tasks' requests, looked at when a new one is allocated: those that were merged meanwhile are
//! cleaned up. Requests that are open or closed stay byte for byte as they are, and nobody waits for a receipt in use.

use serde::Serialize;

use super::{Completion, Result, complete_locked, deliver, policy};
use crate::git::Repo;
use crate::store::{Cleanup, Delivery, Layout, Lock, Receipt, ReceiptDir, StoreError};

/// What became of an earlier task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Reconciled {
    /// Its receipt.
    pub receipt: String,
    /// `COMPLETE`, `CLEANUP_PENDING` or `RETAINED`.
    pub status: String,
    /// Why it was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Looks at every receipt but those in `except`.
pub(super) fn reconcile(repo: &Repo, layout: &Layout, except: &[ReceiptDir], attended: bool) -> Vec<Reconciled> {
    let Ok(entries) = std::fs::read_dir(layout.completions()) else { return Vec::new() };
    let mut dirs: Vec<ReceiptDir> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).map(ReceiptDir::new).collect();
    dirs.sort();
    dirs.iter().filter(|dir| !except.contains(dir)).filter_map(|dir| one(repo, layout, dir, attended)).collect()
}

fn one(repo: &Repo, layout: &Layout, dir: &ReceiptDir, attended: bool) -> Option<Reconciled> {
    let told = |status: &str, reason: Option<String>| {
        Some(Reconciled { receipt: dir.receipt().display().to_string(), status: status.to_owned(), reason })
    };
    let retained = |reason: String| told("RETAINED", Some(reason));
    match Receipt::read(dir) {
        Ok(None) => return None,
        Ok(Some(receipt)) if !concerns(&receipt) => return None,
        Ok(Some(_)) => {}
        Err(error) => return retained(error.to_string()),
    }
    match clean(repo, layout, dir, attended) {
        Ok(None) => None,
        Ok(Some((status, reason))) => told(&status, reason),
        Err(error) => retained(error.to_string()),
    }
}

/// Whether the task was published and anything of it may be left.
fn concerns(receipt: &Receipt) -> bool {
    let waits_for_merge = receipt.pr_number.is_some() || receipt.pushed;
    receipt.is_bound() && waits_for_merge && !receipt.local_only && receipt.status.as_deref() != Some("COMPLETE")
}

fn clean(repo: &Repo, layout: &Layout, dir: &ReceiptDir, attended: bool) -> Result<Option<(String, Option<String>)>> {
    let _lock = match Lock::at_once(&dir.lock()) {
        Err(StoreError::Held(path)) => {
            return super::refuse(format!("{} is in use by another process", path.display()));
        }
        lock => lock?,
    };
    let mut receipt = Receipt::owned(layout, dir)?;
    if !concerns(&receipt) {
        return Ok(None);
    }
    if receipt.delivery != Some(Delivery::Complete) {
        let (remote, target) = policy::target_of(repo, &receipt, attended)?;
        if !deliver::is_merged(&remote, &target, &receipt)? {
            return Ok(None);
        }
    }
    let completed = complete_locked(repo, dir, &mut receipt, &Completion { attended, ..Completion::default() })?;
    if completed.delivery_status != Some(Delivery::Complete) {
        return Ok(None);
    }
    let reason =
        [completed.workspace_cleanup, completed.scratch_cleanup].into_iter().flatten().find_map(
            |cleanup| match cleanup {
                Cleanup::Retained { reason, .. } => Some(reason),
                Cleanup::Clean { .. } | Cleanup::NotOwned => None,
            },
        );
    Ok(Some((completed.status, reason)))
}
