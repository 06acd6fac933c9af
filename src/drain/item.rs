//! What is said of one task: an item of `tasks` and `delivery`.

use std::path::PathBuf;

use serde::Serialize;

use super::Options;
use crate::git::Oid;
use crate::shell;
use crate::store::{Cleanup, Delivery};
use crate::task::resume_line;
use crate::view::{Outcome, Stage, TaskView, View};

/// How many tasks came out how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Not begun.
    pub pending: usize,
    /// Begun.
    pub active: usize,
    /// Accepted.
    pub accepted: usize,
    /// Failed.
    pub failed: usize,
    /// Never begun, because of a prerequisite.
    pub blocked: usize,
    /// Intents that wait for planning.
    pub legacy_pending: usize,
}

impl Counts {
    /// The counts of a view.
    #[must_use]
    pub fn of(view: &View) -> Self {
        let mut counts = Self { legacy_pending: view.queue.unplanned().count(), ..Self::default() };
        for task in &view.tasks {
            match task.outcome() {
                Outcome::Pending => counts.pending += 1,
                Outcome::Active => counts.active += 1,
                Outcome::Accepted => counts.accepted += 1,
                Outcome::Failed => counts.failed += 1,
                Outcome::Blocked => counts.blocked += 1,
            }
        }
        counts
    }
}

/// One task, as a program reads it. What is not known is left out.
#[derive(Debug, Clone, Serialize)]
pub struct Item {
    /// The task.
    pub identity: String,
    /// How it came out.
    pub result: &'static str,
    /// Its receipt.
    pub receipt: Option<PathBuf>,
    /// Why it failed, is blocked or does not go on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// What a receipt adds.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub owned: Option<Owned>,
}

/// What is said of a task that has a receipt.
#[derive(Debug, Clone, Serialize)]
pub struct Owned {
    /// The commit that its branch was created at.
    pub allocation_base: Oid,
    /// Its accepted source.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<Oid>,
    /// What it came to without being accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub candidate: Option<Oid>,
    /// Its terminal commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terminal: Option<Oid>,
    /// The latest outcome of its delivery.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// Its pull request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pr: Option<String>,
    /// The command line that goes on, where something is missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<String>,
    /// What its executor assumed.
    pub assumptions: Vec<String>,
    /// What its executor asks.
    pub questions: Vec<String>,
    /// Its worktree, while it is there.
    pub worktree: Option<PathBuf>,
    /// Why its worktree is kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cleanup: Option<String>,
    /// Its branch.
    pub branch: String,
    /// The ref that keeps its result.
    pub recovery_ref: String,
    /// The copies of its evidence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub custody: Option<PathBuf>,
    /// How its scratch directory's cleanup stands.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scratch: Option<String>,
}

/// The item of a task, with why it does not go on.
pub(super) fn item(task: &TaskView, reason: Option<String>, options: &Options) -> Item {
    let held = task.held();
    let owned = held.map(|held| {
        let receipt = &held.receipt;
        let outcome = task.outcome();
        let acceptance = receipt.acceptance.as_ref();
        let resume = match task.stage() {
            Some(Stage::Bound | Stage::Terminal) => Some(drain_line(options)),
            Some(Stage::Attached) => Some(resume_line(&held.dir, receipt)),
            _ => retained(receipt.workspace_cleanup.as_ref()).map(|(_, resume)| resume),
        };
        Owned {
            allocation_base: receipt.baseline,
            source: receipt.source_sha.filter(|_| outcome == Outcome::Accepted),
            candidate: receipt.source_sha.filter(|_| outcome == Outcome::Failed),
            terminal: receipt.queue.as_ref().map(|queue| queue.commit),
            delivery: receipt.delivery,
            pr: receipt.pr_url.clone(),
            resume,
            assumptions: acceptance.map(|acceptance| acceptance.texts("assumptions")).unwrap_or_default(),
            questions: acceptance.map(|acceptance| questions(&acceptance.reasons())).unwrap_or_default(),
            worktree: receipt.worktree.is_dir().then(|| receipt.worktree.clone()),
            cleanup: retained(receipt.workspace_cleanup.as_ref()).map(|(reason, _)| format!("RETAINED: {reason}")),
            branch: receipt.branch.clone(),
            recovery_ref: receipt.recovery_ref.clone(),
            custody: receipt.is_bound().then(|| held.dir.custody()),
            scratch: receipt.scratch_cleanup.as_ref().map(told),
        }
    });
    Item {
        identity: task.identity.to_string(),
        result: task.outcome().as_str(),
        receipt: held.map(|held| held.dir.receipt()),
        reason,
        owned,
    }
}

/// The open questions among the reasons of a failed result.
fn questions(reasons: &[String]) -> Vec<String> {
    reasons.iter().filter_map(|reason| reason.strip_prefix("needs-review: ")).map(str::to_owned).collect()
}

fn retained(cleanup: Option<&Cleanup>) -> Option<(String, String)> {
    match cleanup {
        Some(Cleanup::Retained { reason, resume }) => Some((reason.clone(), resume.clone())),
        Some(Cleanup::Clean { .. } | Cleanup::NotOwned) | None => None,
    }
}

fn told(cleanup: &Cleanup) -> String {
    match cleanup {
        Cleanup::Clean { logical_bytes_removed } => {
            format!("CLEAN ({} bytes removed)", logical_bytes_removed.unwrap_or_default())
        }
        Cleanup::NotOwned => "NOT_OWNED".to_owned(),
        Cleanup::Retained { reason, .. } => format!("RETAINED: {reason}"),
    }
}

/// The command line that drains again as this one was asked to.
pub(super) fn drain_line(options: &Options) -> String {
    let mut words: Vec<std::ffi::OsString> = ["git", "devlyn", "drain"].map(Into::into).to_vec();
    if options.local_only {
        words.push("--local-only".into());
    }
    if let Some(root) = &options.worktree_root {
        words.extend(["--worktree-root".into(), root.clone().into()]);
    }
    words.push("--".into());
    if options.executor.is_empty() {
        return format!("{} <executor> '{{packet}}'", shell::line(words));
    }
    words.extend(options.executor.iter().cloned());
    shell::line(words)
}
