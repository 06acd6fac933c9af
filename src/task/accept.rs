//! Binding a result once and for all: its evidence goes into custody, the recovery ref to its source, and both into the
//! receipt.

use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Result, TaskError, refuse};
use crate::git::{Head, Oid, RefChange, Repo};
use crate::json;
use crate::package::sha256_hex;
use crate::store::{
    Acceptance, CustodyError, Evidence, Layout, Receipt, ReceiptDir, Verdict, collect, read_state, take, verify,
};
use crate::view::checkout_of;

/// What was bound.
#[derive(Debug, Serialize)]
pub struct Accepted {
    /// `ACCEPTED` or `FAILED`.
    pub status: Verdict,
    /// The receipt.
    pub receipt: PathBuf,
    /// The bound source.
    pub source_sha: Oid,
    /// The ref that keeps it.
    pub recovery_ref: String,
}

/// Binds the acceptance document at `acceptance` to the receipt at `receipt`.
///
/// # Errors
/// Where either is not what it must be; then nothing was bound.
pub fn accept(repo: &Repo, layout: &Layout, receipt: &Path, acceptance: &Path) -> Result<Accepted> {
    let (_lock, dir, mut receipt) = Receipt::locked(layout, receipt)?;
    bind(repo, &dir, &mut receipt, acceptance)?;
    let (Some(status), Some(source_sha)) = (receipt.verdict(), receipt.source_sha) else {
        return refuse("nothing was bound");
    };
    Ok(Accepted { status, receipt: dir.receipt(), source_sha, recovery_ref: receipt.recovery_ref })
}

/// As [`accept`], on a receipt whose lock is held.
///
/// # Errors
/// As [`accept`].
pub fn bind(repo: &Repo, dir: &ReceiptDir, receipt: &mut Receipt, acceptance: &Path) -> Result<()> {
    let (document, bytes, inside) = read_document(receipt, acceptance)?;
    let digest = sha256_hex(&bytes);
    if receipt.is_bound() {
        if receipt.acceptance_digest.as_deref() != Some(&digest) {
            return refuse(format!("{} is bound to another acceptance already", dir.receipt().display()));
        }
        return intact(repo, dir, receipt);
    }
    let (source, evidence) = judge(repo, receipt, &document, inside)?;
    let name = receipt.recovery_ref.clone();
    match repo.resolve(&name)? {
        None => {}
        Some(at) if at == source => {}
        Some(at) => {
            return refuse(format!("{name} is at {at} and not at the source {source}; it is never overwritten"));
        }
    }
    let evidence: Evidence = collect(&receipt.worktree, &evidence)?;
    let files = take(dir, &receipt.worktree, &evidence)?;
    // The executor's commits are on the disk before a reference that must survive a power cut names them.
    repo.flush_between(receipt.baseline, source)?;
    if repo.resolve(&name)?.is_none() {
        repo.update_refs(&[RefChange::Create { name, new: source }])?;
    }
    receipt.acceptance_digest = Some(digest);
    receipt.source_sha = Some(source);
    receipt.publish_sha = Some(source);
    receipt.files = Some(files);
    receipt.product = (document.verdict() == Verdict::Failed).then(|| "FAILED".to_owned());
    receipt.acceptance = Some(document);
    receipt.write(dir)?;
    Ok(())
}

/// Whether what was bound is still whole: every copy in custody, and the recovery ref.
///
/// # Errors
/// What is not.
pub(super) fn intact(repo: &Repo, dir: &ReceiptDir, receipt: &Receipt) -> Result<()> {
    let files = receipt.files.clone().unwrap_or_default();
    verify(dir, &files)?;
    let at = repo.resolve(&receipt.recovery_ref)?;
    if at != receipt.publish_sha {
        let at = at.map_or_else(|| "gone".to_owned(), |id| format!("at {id}"));
        return refuse(format!("{} is {at}, and not where {} says", receipt.recovery_ref, dir.receipt().display()));
    }
    Ok(())
}

/// The document at `path`, its bytes and its path inside the worktree.
fn read_document(receipt: &Receipt, path: &Path) -> Result<(Acceptance, Vec<u8>, String)> {
    let path = std::path::absolute(path).map_err(crate::store::StoreError::io(path))?;
    let wrong = |why: &str| TaskError::Custody(CustodyError::Evidence(path.display().to_string(), why.to_owned()));
    // The directory may be named through links; the file itself may be none.
    let folder = path.parent().and_then(|folder| std::fs::canonicalize(folder).ok());
    let real =
        folder.zip(path.file_name()).map(|(folder, name)| folder.join(name)).ok_or_else(|| wrong("is not there"))?;
    let inside = real.strip_prefix(&receipt.worktree).map_err(|_| wrong("does not lie inside the task's worktree"))?;
    let inside = inside.to_str().ok_or_else(|| wrong("has a name that is not UTF-8"))?.to_owned();
    let (object, bytes) = read_state(&real)?.ok_or_else(|| wrong("is not there"))?;
    Ok((Acceptance(object), bytes, inside))
}

/// The source and the evidence paths of a document that may be bound to the receipt now.
fn judge(repo: &Repo, receipt: &Receipt, document: &Acceptance, inside: String) -> Result<(Oid, Vec<String>)> {
    let mut evidence = match document.text("kind") {
        Some("direct") => direct(document)?,
        Some("loop") => looped(document)?,
        Some("pipeline") => {
            return refuse(
                "an acceptance of kind pipeline belongs to phase-gated runs, which this version does not have",
            );
        }
        other => return refuse(format!("an acceptance is of kind direct or loop, not {other:?}")),
    };
    if document.text("task") != Some(&receipt.task) {
        return refuse(format!(
            "the acceptance is of the task {:?}, the receipt of {}",
            document.text("task").unwrap_or_default(),
            receipt.task
        ));
    }
    let named = document.text("source_sha").unwrap_or_default();
    let Some(source) = repo.exact_commit(named)? else {
        return refuse(format!("source_sha is {named:?}, and not the whole id of a commit of this repository"));
    };
    if !repo.is_ancestor(receipt.baseline, source)? {
        return refuse(format!("the source {source} does not descend from the baseline {}", receipt.baseline));
    }
    let head = repo.resolve(&format!("refs/heads/{}", receipt.branch))?;
    if head != Some(source) {
        let head = head.map_or_else(|| "gone".to_owned(), |id| format!("at {id}"));
        return refuse(format!("the source is {source}, and the owned branch {} is {head}", receipt.branch));
    }
    if document.verdict() == Verdict::Accepted {
        checked_out(repo, receipt, source)?;
    }
    evidence.push(inside);
    Ok((source, evidence))
}

/// Whether the worktree has its branch checked out at `commit`.
///
/// # Errors
/// Where it has not.
pub(super) fn checked_out(repo: &Repo, receipt: &Receipt, commit: Oid) -> Result<()> {
    let head = repo.head_of(&checkout_of(repo, receipt))?;
    if head != Head::Branch(receipt.branch.clone(), commit) {
        return refuse(format!(
            "{} does not have {} checked out at {commit}",
            receipt.worktree.display(),
            receipt.branch
        ));
    }
    Ok(())
}

fn direct(document: &Acceptance) -> Result<Vec<String>> {
    let checks = document.0.get("checks").cloned().unwrap_or(json::Value::Null);
    let checks: Vec<crate::store::DirectCheck> = serde_json::from_value(checks).map_err(|error| {
        TaskError::Refused(format!("checks is a list of objects with a command and its evidence: {error}"))
    })?;
    if checks.is_empty() || checks.iter().any(|check| check.command.trim().is_empty()) {
        return refuse("a direct acceptance names at least one check, each with the command that was run");
    }
    Ok(checks.into_iter().map(|check| check.evidence).collect())
}

fn looped(document: &Acceptance) -> Result<Vec<String>> {
    if !matches!(document.text("verdict"), Some("ACCEPTED" | "FAILED")) {
        return refuse("the verdict of a loop acceptance is ACCEPTED or FAILED");
    }
    let evidence = document.0.get("evidence").cloned().unwrap_or(json::Value::Null);
    serde_json::from_value(evidence)
        .map_err(|error| TaskError::Refused(format!("evidence is a list of relative paths: {error}")))
}
