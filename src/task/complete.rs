//! Completing a task: the result is bound where one is given, delivered as it may be, and what it used is cleaned up.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Result, accept, cleanup, deliver, policy, refuse, scratch};
use crate::git::{Oid, Repo};
use crate::shell;
use crate::store::{Cleanup, Delivery, Layout, Mode, Receipt, ReceiptDir, Verdict};

/// What a receipt says once nothing of its task is left to clean.
const CLEANED: &str = "COMPLETE";

/// How a completion is asked for.
#[derive(Debug, Clone, Default)]
pub struct Completion {
    /// A result to bind first.
    pub acceptance: Option<PathBuf>,
    /// The mode, which persists.
    pub mode: Option<Mode>,
    /// No remote effect, for good.
    pub local_only: bool,
    /// The owner's word that all writers have stopped.
    pub writers_stopped: bool,
    /// Somebody is at the terminal and can be asked for a password.
    pub attended: bool,
}

/// What came of it (formats, "What the commands print").
#[derive(Debug, Clone, Serialize)]
pub struct Completed {
    /// The delivery, or `CLEANUP_PENDING`.
    pub status: String,
    /// The delivery.
    pub delivery_status: Option<Delivery>,
    /// The receipt.
    pub receipt: PathBuf,
    /// The pull request's address.
    pub pr: Option<String>,
    /// The command line that goes on.
    pub resume: String,
    /// The kind of the bound acceptance.
    pub acceptance: Option<String>,
    /// Always true: delivery decides nothing about the product.
    pub product_verdict_unchanged: bool,
    /// The scratch directory.
    pub scratch_path: PathBuf,
    /// How its cleanup stands.
    pub scratch_cleanup: Option<Cleanup>,
    /// How the worktree's cleanup stands, where it is retained.
    pub workspace_cleanup: Option<Cleanup>,
    /// Why a merge was refused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub merge_refused: Option<String>,
}

/// Completes the task of the receipt at `path`.
///
/// # Errors
/// Where anything of it is not as it must be; what was done before stays done and is on record.
pub fn complete(repo: &Repo, layout: &Layout, path: &Path, asked: &Completion) -> Result<Completed> {
    let (_lock, dir, mut receipt) = Receipt::locked(layout, path)?;
    complete_locked(repo, &dir, &mut receipt, asked)
}

/// As [`complete`], on a receipt whose lock is held.
///
/// # Errors
/// As [`complete`].
pub fn complete_locked(repo: &Repo, dir: &ReceiptDir, receipt: &mut Receipt, asked: &Completion) -> Result<Completed> {
    let local = asked.local_only || receipt.local_only;
    if local && receipt.pushed {
        return refuse(format!(
            "{} has a published pull request {} and cannot become local",
            receipt.task,
            receipt.pr_url.as_deref().unwrap_or(&receipt.branch)
        ));
    }
    if !local && receipt.verdict() != Some(Verdict::Failed) {
        // Before any effect, the binding of a result too.
        policy::mode(repo, receipt, asked.mode)?;
    }
    scratch::release(receipt, asked.writers_stopped)?;
    if let Some(acceptance) = &asked.acceptance {
        accept::bind(repo, dir, receipt, acceptance)?;
    } else if receipt.is_bound() {
        accept::intact(repo, dir, receipt)?;
    }
    let (mut merge_refused, mut base) = (None, None);
    let delivery = if receipt.verdict() == Some(Verdict::Failed) {
        Delivery::Failed
    } else if local {
        receipt.local_only = true;
        Delivery::LocalOnly
    } else {
        let outcome = deliver::deliver(repo, dir, receipt, asked)?;
        (merge_refused, base) = (outcome.merge_refused, outcome.base);
        outcome.delivery
    };
    receipt.delivery = Some(delivery);
    if delivery == Delivery::Complete && receipt.status.as_deref() != Some(CLEANED) {
        clean(repo, dir, receipt, asked.attended, base)?;
    }
    receipt.scratch_cleanup = Some(scratch::empty(repo, dir, receipt));
    let retained = [&receipt.workspace_cleanup, &receipt.scratch_cleanup]
        .into_iter()
        .any(|cleanup| matches!(cleanup, Some(Cleanup::Retained { .. })));
    let cleaned = delivery == Delivery::Complete && !retained;
    receipt.status = cleaned.then(|| CLEANED.to_owned()).or(receipt.status.take());
    receipt.write(dir)?;
    let status = if delivery == Delivery::Complete && retained { "CLEANUP_PENDING" } else { delivery.as_str() };
    Ok(completed(dir, receipt, delivery, status, merge_refused))
}

/// Cleans up behind a merged task, where its base was not fetched just now (`base`) once it is; what is retained is on
/// record and nobody's failure.
fn clean(repo: &Repo, dir: &ReceiptDir, receipt: &mut Receipt, attended: bool, base: Option<Oid>) -> Result<()> {
    let reached = policy::target_of(repo, receipt, attended).and_then(|(remote, _)| {
        let base = base.map_or_else(|| remote.fetch(&receipt.base), Ok)?;
        Ok((remote, base))
    });
    receipt.workspace_cleanup = cleanup::workspace(repo, dir, receipt, reached.map_err(cleanup::Kept::from));
    Ok(receipt.write(dir)?)
}

fn completed(
    dir: &ReceiptDir,
    receipt: &Receipt,
    delivery: Delivery,
    status: &str,
    merge_refused: Option<String>,
) -> Completed {
    Completed {
        status: status.to_owned(),
        delivery_status: Some(delivery),
        receipt: dir.receipt(),
        pr: receipt.pr_url.clone(),
        resume: resume_line(dir, receipt),
        acceptance: receipt.acceptance.as_ref().and_then(|acceptance| acceptance.text("kind")).map(str::to_owned),
        product_verdict_unchanged: true,
        scratch_path: dir.scratch(),
        scratch_cleanup: receipt.scratch_cleanup.clone(),
        workspace_cleanup: receipt.workspace_cleanup.clone(),
        merge_refused,
    }
}

/// The command line that goes on with the completion of the receipt in `dir`.
#[must_use]
pub fn resume_line(dir: &ReceiptDir, receipt: &Receipt) -> String {
    let path = dir.receipt();
    let mut words = vec![
        "git".as_ref(),
        "devlyn".as_ref(),
        "task".as_ref(),
        "complete".as_ref(),
        "--receipt".as_ref(),
        path.as_os_str(),
    ];
    if receipt.writers_released {
        words.push("--writers-stopped".as_ref());
    }
    shell::line(words)
}
