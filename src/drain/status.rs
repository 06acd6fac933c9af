//! The reconciled view, as one object. It changes nothing but that it reaches the end of an interrupted `add`.

use std::collections::HashMap;

use serde::Serialize;

use super::item::{self, Counts, Item};
use super::remote::{Reach, Remotes};
use super::{DrainError, Options, select};
use crate::add::finish_cleanup;
use crate::git::Repo;
use crate::queue::LegacyRow;
use crate::store::{Layout, Lock, is_there};
use crate::view::{Captures, Stage, Starts, View};

/// Where everything stands.
#[derive(Debug, Serialize)]
pub struct Status {
    /// Always `OK`.
    pub status: &'static str,
    /// How many tasks came out how.
    pub counts: Counts,
    /// The task that a drain would take up next.
    pub next: Option<String>,
    /// What does not go on, and why.
    pub blockers: Vec<String>,
    /// Deliveries that are not final, each with the command that goes on.
    pub delivery: Vec<Item>,
    /// Package copies that were kept or could not be removed.
    pub cleanup: Vec<String>,
    /// Every task, for a person.
    #[serde(skip)]
    pub tasks: Vec<Item>,
    /// The blockers that are no task's, for a person.
    #[serde(skip)]
    pub others: Vec<String>,
}

/// The reconciled view of the repository.
///
/// # Errors
/// Where the queue is not known.
pub fn status(repo: &Repo, local_only: bool) -> Result<Status, DrainError> {
    let layout = Layout::new(repo.common_dir());
    let captures = Captures::default();
    let (view, cleanup) = {
        // Looking at a repository in which nothing was ever added leaves it as it is, without a lock in it.
        let _lock = is_there(&layout.loops())?.then(|| Lock::wait(&layout.queue_lock())).transpose()?;
        let cleanup = finish_cleanup(repo, &layout)?;
        (View::read(repo, &layout, &captures)?, cleanup)
    };
    let starts = Starts::new(repo);
    let remotes = Remotes::new(repo, Reach::Here);
    let dispositions = select::dispositions(repo, &view, &starts, &remotes, local_only, &HashMap::new())?;
    let options = Options { local_only, ..Options::default() };
    let tasks: Vec<Item> = view
        .tasks
        .iter()
        .zip(&dispositions)
        .map(|(task, told)| item::item(task, told.reason.clone(), &options))
        .collect();
    let mut blockers: Vec<String> = view
        .tasks
        .iter()
        .zip(&dispositions)
        .filter(|(task, told)| told.waits || task.outcome() == crate::view::Outcome::Blocked)
        .filter_map(|(task, told)| Some(format!("{}: {}", task.identity, told.reason.as_ref()?)))
        .collect();
    let others: Vec<String> = view.queue.unplanned().map(unplanned).chain(view.unreadable.iter().cloned()).collect();
    blockers.extend(others.iter().cloned());
    let delivery = view
        .tasks
        .iter()
        .zip(&tasks)
        .filter(|(task, _)| matches!(task.stage(), Some(Stage::Bound | Stage::Terminal | Stage::Attached)))
        .map(|(_, item)| item.clone())
        .collect();
    Ok(Status {
        status: "OK",
        counts: Counts::of(&view),
        next: select::next(&dispositions).map(|at| view.tasks[at].identity.to_string()),
        blockers,
        delivery,
        cleanup,
        tasks,
        others,
    })
}

/// What is said of an intent that waits for planning.
pub(super) fn unplanned(row: &LegacyRow) -> String {
    format!("legacy row {} needs planning: {}", row.line, row.text.trim_end())
}
