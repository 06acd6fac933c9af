//! The controller: reconcile, select, advance one task, again. It keeps nothing in memory that is not on disk but which
//! tasks it has tried already, so that recovery is running it again.

mod advance;
mod item;
mod remote;
mod report;
mod select;
mod status;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::PathBuf;

use serde::Serialize;

pub use item::{Counts, Item};
pub use select::{Disposition, LoopMode, Next};
pub use status::{Status, status};

use self::remote::{Reach, Remotes};
use crate::add::{AddError, finish_cleanup};
use crate::git::{GitError, Repo};
use crate::os::process::{Program, find_program, interrupted};
use crate::package::Identity;
use crate::store::{Layout, Lock, StoreError};
use crate::task::TaskError;
use crate::view::{Captures, Starts, View, ViewError};

/// Why a drain stopped, or never began.
#[derive(Debug, thiserror::Error)]
pub enum DrainError {
    /// Something speaks against it before anything is allocated.
    #[error("{0}")]
    Refused(String),
    /// Another controller works.
    #[error("another drain works in this repository ({}); wait for it, or end it", .0.display())]
    Held(PathBuf),
    /// The queue is not known.
    #[error(transparent)]
    View(#[from] ViewError),
    /// The end of an `add` could not be reached.
    #[error(transparent)]
    Add(#[from] AddError),
    /// A state file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A task's step failed in a way that is not the task's own.
    #[error(transparent)]
    Task(#[from] TaskError),
}

/// What a drain is asked for.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Keep every loop local.
    pub local_only: bool,
    /// Where worktrees stand; beside the repository otherwise.
    pub worktree_root: Option<PathBuf>,
    /// The executor's argv, with `{packet}` in it.
    pub executor: Vec<OsString>,
}

/// Something durable that happened to a task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The task.
    pub task: Identity,
    /// What happened, beginning with the event's word.
    pub text: String,
}

/// How a drain ended.
#[derive(Debug, Serialize)]
pub struct Drained {
    /// `DRAINED`, `WAITING` or `BLOCKED`.
    pub status: &'static str,
    /// Why it does not go on.
    pub reason: Option<String>,
    /// How many tasks came out how.
    pub counts: Counts,
    /// Every task.
    pub tasks: Vec<Item>,
    /// The reports that were written.
    pub reports: Vec<PathBuf>,
    /// What was kept or could not be cleaned or reported.
    pub cleanup: Vec<String>,
    /// The signal that ended it early.
    #[serde(skip)]
    pub interrupted: Option<i32>,
    /// What can be brought in: the loop, the branch it goes into, and the command, for a person.
    #[serde(skip)]
    pub bring: Vec<(String, String, String)>,
}

/// Runs the queue until no task can go on.
///
/// # Errors
/// Where the drain is refused, or the queue is not known.
pub fn drain(repo: &Repo, options: &Options, tell: &mut dyn FnMut(Event)) -> Result<Drained, DrainError> {
    let layout = Layout::new(repo.common_dir());
    preflight(repo, &options.executor)?;
    let _lock = match Lock::at_once(&layout.drain_lock()) {
        Err(StoreError::Held(path)) => return Err(DrainError::Held(path)),
        lock => lock?,
    };
    // Whoever makes commits must be known before the first task needs one.
    repo.author()?;
    let mut controller = Controller {
        repo,
        layout: &layout,
        options,
        captures: Captures::default(),
        tried: HashMap::new(),
        remotes: Remotes::new(repo, Reach::Network),
        diagnostics: Vec::new(),
        tell,
    };
    controller.retry_cleanups()?;
    while interrupted().is_none() && controller.step()? {}
    controller.finish()
}

/// Refuses an argv that cannot be an executor's.
fn preflight(repo: &Repo, argv: &[OsString]) -> Result<(), DrainError> {
    let refuse = |why: String| Err(DrainError::Refused(why));
    let Some(program) = argv.first() else {
        return refuse(
            "no executor was named; write it behind `--`, with {packet} where it takes its packet".to_owned(),
        );
    };
    if !argv.iter().any(|word| word.to_string_lossy().contains("{packet}")) {
        return refuse(
            "the executor is not given its packet; write {packet} where it takes the packet's path".to_owned(),
        );
    }
    let path = std::env::var_os("PATH");
    let by_path = program.to_string_lossy().contains('/');
    match find_program(program, path.as_deref(), repo.work_dir()) {
        Program::NotFound if !by_path => {
            refuse(format!("the executor {:?} is not found on PATH", program.to_string_lossy()))
        }
        Program::NotExecutable(place) => {
            refuse(format!("the executor {} is no file that may be executed", place.display()))
        }
        // A path may be there again when its task comes, and a relative one is the worktree's: each task finds out.
        Program::Found(_) | Program::NotFound => Ok(()),
    }
}

/// A drain at work.
struct Controller<'a> {
    repo: &'a Repo,
    layout: &'a Layout,
    options: &'a Options,
    captures: Captures,
    /// The tasks that were tried and wait, and why: each is tried once a drain.
    tried: HashMap<Identity, String>,
    /// What is known of where loops are delivered.
    remotes: Remotes<'a>,
    diagnostics: Vec<String>,
    tell: &'a mut dyn FnMut(Event),
}

impl Controller<'_> {
    /// Everything that is known now, with what of the adds was left to clean.
    fn view(&self) -> Result<(View, Vec<String>), DrainError> {
        let _lock = Lock::wait(&self.layout.queue_lock())?;
        let cleanup = finish_cleanup(self.repo, self.layout)?;
        Ok((View::read(self.repo, self.layout, &self.captures)?, cleanup))
    }

    fn dispositions(&self, view: &View, starts: &Starts<'_>) -> Result<Vec<Disposition>, DrainError> {
        Ok(select::dispositions(self.repo, view, starts, &self.remotes, self.options.local_only, &self.tried)?)
    }

    /// Advances the next task as far as it goes; whether there was one.
    fn step(&mut self) -> Result<bool, DrainError> {
        let (view, _) = self.view()?;
        let starts = Starts::new(self.repo);
        let dispositions = self.dispositions(&view, &starts)?;
        let Some(at) = select::next(&dispositions) else { return Ok(false) };
        let (task, next) = (&view.tasks[at], dispositions[at].next.clone());
        if let Err(reason) = self.advance(&view, task, &next) {
            self.tell(&task.identity, format!("waiting; {reason}"));
            self.tried.insert(task.identity.clone(), reason);
        }
        if matches!(self.mode(&view, task), LoopMode::Remote(_)) {
            // Its delivery moves the base that the next one starts from.
            self.remotes.forget();
        }
        Ok(true)
    }

    fn tell(&mut self, task: &Identity, text: String) {
        (self.tell)(Event { task: task.clone(), text });
    }

    /// What is to be said when nothing goes on, with every loop's report written.
    fn finish(mut self) -> Result<Drained, DrainError> {
        let (view, mut cleanup) = self.view()?;
        if let Ok(root) = self.worktree_root() {
            self.prune_worktree_root(&view, &root);
        }
        let starts = Starts::new(self.repo);
        let dispositions = self.dispositions(&view, &starts)?;
        let tasks: Vec<Item> = view
            .tasks
            .iter()
            .zip(&dispositions)
            .map(|(task, told)| item::item(task, told.reason.clone(), self.options))
            .collect();
        let signal = interrupted();
        let waiting = view.tasks.iter().zip(&dispositions).find_map(|(task, told)| {
            let reason = told.reason.as_ref().filter(|_| told.waits)?;
            Some(format!("{}: {reason}", task.identity))
        });
        let unplanned = view.queue.unplanned().next().map(status::unplanned);
        let stopped = signal.map(|signal| format!("ended by signal {signal}; drain again to go on"));
        let reason = stopped.or(waiting).or(unplanned);
        let status = if reason.is_some() { "WAITING" } else { "DRAINED" };
        let (mut reports, mut bring) = (Vec::new(), Vec::new());
        let told = report::Told { status, reason: reason.as_deref(), items: &tasks };
        for found in view.queue.in_order() {
            let path = self.layout.report(&found.id);
            match report::write(self.repo, &path, &view, &starts, found, &told) {
                Ok(way) => {
                    reports.push(path);
                    bring.extend(way.map(|(branch, command)| (found.id.to_string(), branch, command)));
                }
                Err(why) => {
                    self.diagnostics.push(format!("{}: the report could not be written: {why}", path.display()));
                }
            }
        }
        cleanup.append(&mut self.diagnostics);
        let counts = Counts::of(&view);
        Ok(Drained { status, reason, counts, tasks, reports, cleanup, interrupted: signal, bring })
    }
}
