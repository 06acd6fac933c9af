//! The verdict on a submission, and the document that says so.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::candidate::{Candidate, open_worktree};
use super::evidence::{self, loop_dir, new_run};
use super::judge::{Commands, failed, judge};
use super::reuse::{self, Wanted};
use super::terms::{Terms, committed_digests};
use super::{AcceptanceError, Result, reviews};
use crate::exchange::{
    AcceptanceDocument, Binding, Checked, Digests, IgnoredReview, Kind, Packet, ReviewRecord, Submission,
};
use crate::git::{Oid, Repo};
use crate::package::Identity;
use crate::store::{Receipt, Verdict, write_state};
use crate::view::Held;

/// The largest submission that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// A verdict that stands in `acceptance.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The document, durable.
    pub path: PathBuf,
    /// The verdict.
    pub verdict: Verdict,
    /// The commit that the result is of: the candidate, or the head of the owned branch where it failed.
    pub source: Oid,
    /// Why it failed; empty where it did not.
    pub reasons: Vec<String>,
}

/// Derives the verdict on what was submitted for the task of `packet`, and writes it down.
///
/// Deriving again starts afresh: evidence of an earlier attempt stays where it is and counts for nothing.
///
/// # Errors
/// Where something that must be known cannot be, or evidence cannot be kept: there is no verdict then.
pub fn derive(repo: &Repo, held: &Held, packet: &Packet) -> Result<Derived> {
    let work = own_worktree(repo, &held.receipt)?;
    let terms = Terms::read(&work, packet)?;
    let candidate = Candidate::new(&work, &held.receipt.branch, packet.inputs_sha, &packet.task.loop_id);
    let mut draft = Draft::new(&candidate, &held.receipt, &packet.task, packet.inputs_sha, Digests::of(packet))?;
    match submission(held, &packet.task)? {
        Err(reasons) => draft.checked.reasons = reasons,
        Ok(submission) => draft.weigh(&work, &candidate, &terms, submission)?,
    }
    draft.write(&work, &candidate)
}

/// Writes down that the task failed for `reason`, without looking at anything that was made for it. Without a packet
/// the contract is the one that `inputs` holds.
///
/// # Errors
/// Where the worktree or the branch is gone, or the document cannot be written.
pub fn fail(repo: &Repo, held: &Held, packet: Option<&Packet>, inputs: Oid, reason: String) -> Result<Derived> {
    let work = own_worktree(repo, &held.receipt)?;
    let task = Identity::parse(&held.receipt.task)
        .map_err(|error| AcceptanceError::Worktree { path: held.receipt.worktree.clone(), why: error.to_string() })?;
    let digests = match packet {
        Some(packet) => Digests::of(packet),
        None => committed_digests(&work, &task, inputs)?,
    };
    let candidate = Candidate::new(&work, &held.receipt.branch, inputs, &task.loop_id);
    let mut draft = Draft::new(&candidate, &held.receipt, &task, inputs, digests)?;
    draft.checked.reasons.push(reason);
    draft.write(&work, &candidate)
}

fn own_worktree(repo: &Repo, receipt: &Receipt) -> Result<Repo> {
    let work = open_worktree(&receipt.worktree)?;
    if work.common_dir() != repo.common_dir() {
        let why = format!("belongs to the repository {}", work.common_dir().display());
        return Err(AcceptanceError::Worktree { path: receipt.worktree.clone(), why });
    }
    if let Some(own) = receipt.worktree_gitdir.as_ref().filter(|own| *own != work.git_dir()) {
        let why =
            format!("has the Git directory {}, and was allocated with {}", work.git_dir().display(), own.display());
        return Err(AcceptanceError::Worktree { path: receipt.worktree.clone(), why });
    }
    Ok(work)
}

/// What was submitted, or the reasons that it gives by being no submission.
fn submission(held: &Held, task: &Identity) -> Result<std::result::Result<Submission, Vec<String>>> {
    let path = held.dir.submission();
    let bytes = evidence::read(&path, LARGEST).map_err(AcceptanceError::io(&path))?;
    Ok(match bytes.ok_or(AcceptanceError::NoSubmission(path))? {
        Ok(bytes) => Submission::parse(task, &bytes),
        Err(why) => Err(vec![format!("failed: submission {why}")]),
    })
}

/// An acceptance that is being made.
struct Draft {
    checked: Checked,
    reviews: Vec<ReviewRecord>,
    ignored: Vec<IgnoredReview>,
    assumptions: Vec<String>,
    evidence: BTreeSet<String>,
}

impl Draft {
    fn new(
        candidate: &Candidate<'_>,
        receipt: &Receipt,
        task: &Identity,
        inputs: Oid,
        contract: Digests,
    ) -> Result<Self> {
        let checked = Checked {
            schema_version: 1,
            kind: Kind::Loop,
            task: task.clone(),
            source_sha: candidate.head()?,
            inputs_sha: inputs,
            allocation_base: receipt.baseline,
            contract,
            commands: Vec::new(),
            guards: Vec::new(),
            reasons: Vec::new(),
        };
        let (reviews, ignored, assumptions) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { checked, reviews, ignored, assumptions, evidence: BTreeSet::new() })
    }

    /// Judges what was submitted.
    fn weigh(&mut self, work: &Repo, candidate: &Candidate<'_>, terms: &Terms, submission: Submission) -> Result<()> {
        self.assumptions = submission.assumptions;
        if !submission.blockers.is_empty() {
            self.checked.reasons.extend(submission.blockers.iter().map(crate::exchange::Blocker::reason));
            return Ok(());
        }
        let source = match candidate.examine(&submission.source_sha)? {
            Ok(source) => source,
            // What is checked out is not the candidate, so that no check of it would mean anything.
            Err(problems) => {
                self.checked.reasons.extend(failed(problems));
                return Ok(());
            }
        };
        let worktree = work.work_dir();
        let checked = &mut self.checked;
        // The one that was examined, wherever the branch may have been a moment before.
        checked.source_sha = source;
        let wanted = Wanted {
            task: &checked.task,
            source,
            inputs: checked.inputs_sha,
            contract: &checked.contract,
            commands: &terms.expected.commands,
        };
        let reuse = reuse::find(worktree, &submission.runner_results, &wanted)?;
        let commands = match reuse.serving {
            Some((path, records)) => {
                self.evidence.insert(path);
                Commands::Taken(records)
            }
            None if terms.expected.commands.is_empty() => Commands::Taken(Vec::new()),
            None => Commands::Run(new_run(worktree)?),
        };
        let judgement = judge(work, candidate, terms, (checked.inputs_sha, source), commands)?;
        let streams = judgement.commands.iter().flat_map(|record| [&record.stdout, &record.stderr]);
        self.evidence.extend(streams.map(|stream| stream.path.clone()));
        let source = source.to_string();
        let binding = Binding {
            task: &checked.task,
            source_sha: &source,
            contract_sha256: &checked.contract.contract,
            expected_sha256: &checked.contract.expected,
            requirements: &terms.contract.requirements,
        };
        let reviews = reviews::judge(worktree, &submission.reviews, &binding, &terms.contract.review_requirements)?;
        self.evidence.extend(reviews.paths().cloned());
        checked.commands = judgement.commands;
        checked.guards = judgement.guards;
        checked.reasons = judgement.reasons;
        checked.reasons.extend(reuse.reasons);
        checked.reasons.extend(reviews.reasons);
        (self.reviews, self.ignored) = (reviews.counted, reviews.ignored);
        Ok(())
    }

    /// Writes it down.
    fn write(mut self, work: &Repo, candidate: &Candidate<'_>) -> Result<Derived> {
        // An accepted candidate was the head when its checks had ended; a failed one may have moved the branch since.
        if !self.checked.reasons.is_empty() {
            self.checked.source_sha = candidate.head()?;
        }
        let document = AcceptanceDocument::new(
            self.checked,
            (self.reviews, self.ignored),
            self.assumptions,
            self.evidence.into_iter().collect(),
        );
        let path = loop_dir(work.work_dir())?.join("acceptance.json");
        write_state(&path, &document)?;
        let Checked { source_sha, reasons, .. } = document.checked().clone();
        let verdict = if reasons.is_empty() { Verdict::Accepted } else { Verdict::Failed };
        Ok(Derived { path, verdict, source: source_sha, reasons })
    }
}

#[cfg(test)]
mod tests;
