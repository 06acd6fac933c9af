//! One candidate under one contract: its commands, its guards, and whether it still is what it was.

use std::path::Path;

use super::candidate::Candidate;
use super::terms::Terms;
use super::{Result, checks, guards};
use crate::exchange::{CommandRecord, GuardRecord};
use crate::git::{Oid, Repo};

/// Where the outcomes of the commands come from.
#[derive(Debug)]
pub(super) enum Commands {
    /// They are run, their evidence going into this folder, relative to the worktree.
    Run(String),
    /// A clean result of the same candidate has them.
    Taken(Vec<CommandRecord>),
}

/// What was found.
#[derive(Debug)]
pub(super) struct Judgement {
    /// The commands.
    pub(super) commands: Vec<CommandRecord>,
    /// The guards.
    pub(super) guards: Vec<GuardRecord>,
    /// What speaks against the candidate.
    pub(super) reasons: Vec<String>,
}

/// Judges `source`, which was found fit to be checked.
///
/// # Errors
/// Where something that must be known cannot be.
pub(super) fn judge(
    repo: &Repo,
    candidate: &Candidate<'_>,
    terms: &Terms,
    (inputs, source): (Oid, Oid),
    commands: Commands,
) -> Result<Judgement> {
    let worktree: &Path = repo.work_dir();
    let (mut checks, ran) = match commands {
        Commands::Run(run) => (checks::run_all(worktree, &run, &terms.expected.commands)?, true),
        Commands::Taken(records) => (checks::Checks { records, reasons: Vec::new() }, false),
    };
    let guards = guards::judge(repo, &terms.expected, inputs, source)?;
    checks.reasons.extend(guards.reasons);
    // Where nothing ran, nothing but what was seen a moment ago could be seen.
    if ran && !terms.expected.commands.is_empty() {
        checks.reasons.extend(failed(candidate.moved(source)?));
    }
    Ok(Judgement { commands: checks.records, guards: guards.records, reasons: checks.reasons })
}

/// The problems as reasons of the task.
pub(super) fn failed(problems: Vec<String>) -> impl Iterator<Item = String> {
    problems.into_iter().map(|problem| format!("failed: {problem}"))
}
