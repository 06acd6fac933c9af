//! The rules over every commit of a range, for a CI job and for what `--no-verify` let through.

use std::ops::ControlFlow;

use serde::Serialize;

use super::push::judge_history;
use super::{HookError, Result, Violation};
use crate::git::{Oid, Repo, Revisions};

/// What was looked at, and what was found.
#[derive(Debug, Serialize)]
pub struct Verified {
    /// `VERIFIED`, or `BLOCKED` where there is a violation.
    pub status: &'static str,
    /// The first violation, on one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many commits were judged.
    pub commits: usize,
    /// The violations, the oldest commit first.
    pub violations: Vec<Violation>,
}

/// Judges every commit of `range`, a revision range as `git log` takes it.
///
/// # Errors
/// Where `range` is none, or a commit cannot be read.
pub fn verify(repo: &Repo, range: &str) -> Result<Verified> {
    let no_range = |why: &str| HookError::Input(format!("{range:?} is no revision range: {why}"));
    if range.is_empty() || range.starts_with('-') {
        return Err(no_range("write `origin/main..HEAD`, or a branch for all of its history"));
    }
    let output = repo.git().args(["rev-parse", range, "--"]).output()?;
    if output.code != Some(0) {
        let said = String::from_utf8_lossy(&output.stderr).lines().next().unwrap_or_default().to_owned();
        return Err(no_range(said.trim_start_matches("fatal: ")));
    }
    let line = output.line();
    let revisions: Vec<String> = line.lines().filter(|line| *line != "--").map(str::to_owned).collect();
    let mut tips = Vec::new();
    for revision in revisions.iter().filter(|revision| !revision.starts_with('^')) {
        let id: Oid = revision.parse().map_err(|why: String| no_range(&why))?;
        tips.push(repo.peeled_commit(id)?.ok_or_else(|| no_range("it names no commit"))?);
    }
    let names = repo.git().args(["rev-parse", "--symbolic-full-name", range, "--"]).output()?.line();
    let mut branches = Vec::new();
    for branch in names.lines().filter_map(|name| name.strip_prefix("refs/heads/")) {
        branches.extend(repo.resolve(&format!("refs/heads/{branch}"))?.map(|end| (branch, end)));
    }
    let (mut commits, mut violations) = (0, Vec::new());
    let all = Revisions { revisions, not: Vec::new(), first_parent: false };
    judge_history(repo, &tips, &branches, &all, |_, more| {
        commits += 1;
        violations.extend(more);
        ControlFlow::Continue(())
    })?;
    let reason = violations.first().map(Violation::line);
    Ok(Verified { status: if reason.is_some() { "BLOCKED" } else { "VERIFIED" }, reason, commits, violations })
}
