//! Which task goes on, and why the others do not.

use std::collections::HashMap;

use super::remote::Remotes;
use crate::git::Repo;
use crate::package::{Delivery, Identity};
use crate::queue::Mark;
use crate::store::Mode;
use crate::view::{Outcome, Result, Stage, Start, Starts, State, TaskView, View};

/// What can be done for a task now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Next {
    /// Nothing.
    Nothing,
    /// What it began goes on from its stage.
    Resume,
    /// It is allocated here, as local work.
    Begin(Start),
}

/// What a selection says of a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Disposition {
    /// What can be done.
    pub next: Next,
    /// Why it does not go on, where it does not.
    pub reason: Option<String>,
    /// Whether it will go on once the reason is gone.
    pub waits: bool,
}

impl Disposition {
    pub(super) fn settled(reason: Option<String>) -> Self {
        Self { next: Next::Nothing, reason, waits: false }
    }

    pub(super) fn waiting(reason: impl Into<String>) -> Self {
        Self { next: Next::Nothing, reason: Some(reason.into()), waits: true }
    }

    pub(super) fn going(next: Next) -> Self {
        Self { next, reason: None, waits: false }
    }
}

/// How a loop's results are delivered by this drain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoopMode {
    /// Kept here.
    Local,
    /// By pull requests.
    Remote(Delivery),
    /// It was asked to be local, and this pull request was published already.
    Published(String),
}

impl LoopMode {
    /// How the loop with this index is delivered, with `local_only` where the caller wants no remote effect.
    #[must_use]
    pub fn of(view: &View, loop_index: usize, local_only: bool) -> Self {
        let receipts = || view.tasks_of(loop_index).filter_map(TaskView::held).map(|held| &held.receipt);
        let found = view.queue.loops.get(loop_index);
        let delivery = found.and_then(|found| found.manifest.as_ref().ok()).map_or(Delivery::LocalOnly, |m| m.delivery);
        if delivery == Delivery::LocalOnly || receipts().any(|receipt| receipt.local_only) {
            return Self::Local;
        }
        let published = receipts().find(|receipt| receipt.pushed);
        match (local_only, published) {
            (true, Some(receipt)) => {
                Self::Published(receipt.pr_url.clone().unwrap_or_else(|| format!("of {}", receipt.branch)))
            }
            (true, None) => Self::Local,
            (false, _) => Self::Remote(delivery),
        }
    }
}

impl LoopMode {
    /// What a completion is asked for by the package.
    pub(super) fn asked(&self) -> Option<Mode> {
        match self {
            Self::Remote(Delivery::Auto) => Some(Mode::Auto),
            Self::Remote(Delivery::Pr) => Some(Mode::Pr),
            Self::Remote(Delivery::LocalOnly) | Self::Local | Self::Published(_) => None,
        }
    }
}

/// The task that goes on next: what began before what has not.
#[must_use]
pub(super) fn next(dispositions: &[Disposition]) -> Option<usize> {
    let resumed = dispositions.iter().position(|told| told.next == Next::Resume);
    resumed.or_else(|| dispositions.iter().position(|told| matches!(told.next, Next::Begin(_))))
}

/// What can be done for each task of the view, in its order; `tried` are the tasks that were tried already, and why
/// they wait.
///
/// # Errors
/// Where Git cannot tell what a start holds.
pub(super) fn dispositions(
    repo: &Repo,
    view: &View,
    starts: &Starts<'_>,
    remotes: &Remotes<'_>,
    local_only: bool,
    tried: &HashMap<Identity, String>,
) -> Result<Vec<Disposition>> {
    let selection = Selection { repo, view, starts, remotes, local_only };
    view.tasks
        .iter()
        .map(|task| match tried.get(&task.identity) {
            // What was tried and waited may have been delivered since.
            Some(reason) if task.stage() != Some(Stage::Delivered) => Ok(Disposition::waiting(reason.clone())),
            Some(_) | None => selection.disposition(task),
        })
        .collect()
}

/// What a selection is made from.
pub(super) struct Selection<'a> {
    pub(super) repo: &'a Repo,
    pub(super) view: &'a View,
    pub(super) starts: &'a Starts<'a>,
    pub(super) remotes: &'a Remotes<'a>,
    local_only: bool,
}

impl Selection<'_> {
    fn disposition(&self, task: &TaskView) -> Result<Disposition> {
        Ok(match (&task.state, task.outcome()) {
            (State::Occupied(reason) | State::Invalid { reason, .. }, _) => Disposition::waiting(reason.clone()),
            (State::Owned(held, stage), outcome) => {
                // What it was begun on may have lost its proof since.
                if *stage < Stage::Bound
                    && let Some(reason) = self.unproven(task)
                {
                    return Ok(Disposition::waiting(reason));
                }
                match (stage, LoopMode::of(self.view, task.loop_index, self.local_only)) {
                    (Stage::Delivered, _) => {
                        let failed = outcome == Outcome::Failed;
                        Disposition::settled(failed.then(|| crate::task::first_reason(&held.receipt)))
                    }
                    (_, LoopMode::Published(pr)) => Disposition::waiting(published(&pr)),
                    (_, LoopMode::Remote(_)) if !held.receipt.local_only && outcome != Outcome::Failed => {
                        self.remote_owned(task, held, *stage)?
                    }
                    _ => Disposition::going(Next::Resume),
                }
            }
            (State::Absent, Outcome::Blocked) => {
                let by = task.blocked_by.as_ref().map(|(by, _)| format!("blocked-prerequisite:{by}"));
                Disposition::settled(by)
            }
            (State::Absent, Outcome::Pending) => self.pending(task)?,
            (State::Absent, _) => Disposition::settled(task.row.failure.as_ref().map(|failure| failure.reason.clone())),
        })
    }

    fn pending(&self, task: &TaskView) -> Result<Disposition> {
        let Some(found) = self.view.loop_of(task) else { return Ok(Disposition::waiting("its loop is gone")) };
        if let Some(fault) = found.fault_of(&task.identity) {
            return Ok(Disposition::waiting(fault));
        }
        let manifest = match &found.manifest {
            Ok(manifest) => manifest,
            Err(why) => return Ok(Disposition::waiting(why.clone())),
        };
        if !manifest.tasks.iter().any(|known| known.id == task.identity.task) {
            return Ok(Disposition::waiting(format!("{} does not name it in its manifest", found.id.meta_file())));
        }
        let mode = LoopMode::of(self.view, task.loop_index, self.local_only);
        if let LoopMode::Published(pr) = &mode {
            return Ok(Disposition::waiting(published(pr)));
        }
        if let Some(reason) = self.unproven(task) {
            return Ok(Disposition::waiting(reason));
        }
        match mode {
            LoopMode::Remote(_) => self.remote_pending(task, found, manifest),
            LoopMode::Local | LoopMode::Published(_) => self.local(task),
        }
    }

    fn local(&self, task: &TaskView) -> Result<Disposition> {
        if let Some(sibling) = self.view.tasks_of(task.loop_index).find(|other| is_barrier(other)) {
            return Ok(Disposition::waiting(format!(
                "{} is active, and a local loop runs one task at a time",
                sibling.identity
            )));
        }
        let start = match self.starts.local(self.view, task)? {
            Ok(start) => start,
            Err(reason) => return Ok(Disposition::waiting(reason)),
        };
        let Some(found) = self.view.loop_of(task) else { return Ok(Disposition::waiting("its loop is gone")) };
        Ok(match self.starts.unfit(found, start.commit())? {
            Some(reason) => Disposition::waiting(reason),
            None => Disposition::going(Next::Begin(start)),
        })
    }

    /// The first prerequisite of the task that nothing here proves, and why.
    fn unproven(&self, task: &TaskView) -> Option<String> {
        let found = self.view.loop_of(task)?;
        found.prerequisites(&task.identity).iter().find_map(|prerequisite| self.unmet(prerequisite))
    }

    /// Why a prerequisite is none yet.
    fn unmet(&self, prerequisite: &Identity) -> Option<String> {
        let Some(task) = self.view.task(prerequisite) else {
            return Some(format!("its prerequisite {prerequisite} is not queued; queue the whole loop"));
        };
        match (&task.state, task.row.mark) {
            (State::Owned(_, Stage::Delivered), _) if task.outcome() == Outcome::Accepted => None,
            (State::Absent, Mark::Accepted) => {
                Some(format!("its prerequisite {prerequisite} is marked as accepted, and no receipt here proves it"))
            }
            (State::Invalid { .. } | State::Occupied(_), _) => {
                Some(format!("its prerequisite {prerequisite} waits for inspection"))
            }
            _ => Some(format!("waits for its prerequisite {prerequisite}")),
        }
    }
}

fn published(pr: &str) -> String {
    format!("the loop has the published pull request {pr} and is never run locally; drain without --local-only")
}

/// Whether a task keeps every other one of its local loop from beginning.
fn is_barrier(task: &TaskView) -> bool {
    match &task.state {
        State::Owned(_, stage) => *stage < Stage::Bound,
        State::Invalid { possible_writer, .. } => *possible_writer,
        State::Absent | State::Occupied(_) => false,
    }
}
