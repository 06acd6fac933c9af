//! Loops that are delivered: whether anything can go to their remote now, where their base is, who carries the package
//! there, and what waits for whose merge. Asks the network once a step at most, and nothing where it may not.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, Instant};

use super::select::{Disposition, LoopMode, Next, Selection};
use super::{Controller, DrainError};
use crate::forge::Target;
use crate::git::{Oid, Repo};
use crate::package::{Identity, Manifest};
use crate::store::{Delivery, Lock, Receipt, Verdict};
use crate::task::{Completed, Completion, TaskError, base_is_default, complete_locked, merge_commit, prune_empty};
use crate::view::{Held, Loop, Outcome, Result, Stage, Start, State, TaskView, View};

/// The remote that loops are delivered to.
pub(super) const REMOTE: &str = "origin";
/// How long what was seen of a remote counts for an execution that follows.
const FRESH: Duration = Duration::from_secs(30);

/// Whether the network may be asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// It may.
    Network,
    /// Only what was fetched before counts.
    Here,
}

/// The head of a base, or why nothing can be delivered there.
type Base = std::result::Result<Oid, String>;

/// What is known of the remote that loops are delivered to.
pub(super) struct Remotes<'a> {
    repo: &'a Repo,
    reach: Reach,
    bases: RefCell<HashMap<String, (Instant, Base)>>,
    /// The deliveries that were looked at and are open, and what they wait for.
    open: RefCell<HashMap<Identity, String>>,
}

impl<'a> Remotes<'a> {
    /// Nothing is known yet.
    pub(super) fn new(repo: &'a Repo, reach: Reach) -> Self {
        Self { repo, reach, bases: RefCell::default(), open: RefCell::default() }
    }

    /// The head of the base `name` on the remote, or why nothing can be delivered there now.
    pub(super) fn base(&self, name: &str) -> Base {
        if let Some((_, known)) = self.bases.borrow().get(name) {
            return known.clone();
        }
        let found = self.look(name).map_err(|error| format!("nothing can be delivered: {error}"));
        self.bases.borrow_mut().insert(name.to_owned(), (Instant::now(), found.clone()));
        found
    }

    fn look(&self, name: &str) -> std::result::Result<Oid, TaskError> {
        let remote = self.repo.remote(REMOTE)?;
        let target = Target::of(&remote)?;
        if self.reach == Reach::Here {
            let seen = self.repo.resolve(&remote.tracking_ref(name))?;
            return seen.ok_or_else(|| {
                TaskError::Refused(format!("{REMOTE}/{name} was not fetched yet; a drain fetches what it needs"))
            });
        }
        if let Some(forge) = target.forge() {
            base_is_default(&forge.repository()?, name)?;
        }
        Ok(remote.fetch(name)?)
    }

    /// The repository that the remote is, where its host has names for such.
    pub(super) fn repository(&self) -> std::result::Result<Option<String>, TaskError> {
        Ok(Target::of(&self.repo.remote(REMOTE)?)?.repository())
    }

    /// Looks again when it is asked the next time.
    pub(super) fn forget(&self) {
        self.bases.borrow_mut().clear();
    }

    /// Looks again where what was seen is older than an execution may rely on.
    fn refresh(&self) {
        self.bases.borrow_mut().retain(|_, (seen, _)| seen.elapsed() < FRESH);
    }

    /// Remembers that the delivery of a task was looked at and is open.
    pub(super) fn opened(&self, identity: &Identity, completed: &Completed, receipt: &Receipt) {
        if let Some(waits) = open_reason(receipt, completed.merge_refused.as_deref()) {
            self.open.borrow_mut().insert(identity.clone(), waits);
        }
    }

    /// What the open delivery of a task waits for, where it was looked at or may not be.
    fn waits(&self, identity: &Identity, receipt: &Receipt) -> Option<String> {
        match self.reach {
            Reach::Network => self.open.borrow().get(identity).cloned(),
            Reach::Here if receipt.pushed => open_reason(receipt, None),
            Reach::Here => None,
        }
    }
}

/// What an open delivery waits for.
fn open_reason(receipt: &Receipt, merge_refused: Option<&str>) -> Option<String> {
    let place = receipt.pr_url.clone().unwrap_or_else(|| format!("branch {} on {REMOTE}", receipt.branch));
    match (receipt.delivery?, merge_refused) {
        (Delivery::Pr, None) => Some(format!("its {} waits for a person to merge it", named(receipt, &place))),
        (Delivery::Pr, Some(why)) => {
            Some(format!("its {} waits for a person: its merge was refused: {why}", named(receipt, &place)))
        }
        (Delivery::Pending, _) => {
            Some(format!("its {} merges once the rules of the repository allow it", named(receipt, &place)))
        }
        (Delivery::LocalOnly | Delivery::Complete | Delivery::Failed, _) => None,
    }
}

fn named(receipt: &Receipt, place: &str) -> String {
    if receipt.pr_url.is_some() { format!("pull request {place}") } else { place.to_owned() }
}

impl Selection<'_> {
    /// What can be done for a task that is owned and goes to a remote.
    pub(super) fn remote_owned(&self, task: &TaskView, held: &Held, stage: Stage) -> Result<Disposition> {
        if stage < Stage::Bound {
            return Ok(match self.unready(task, held)? {
                Some(reason) => Disposition::waiting(reason),
                None => Disposition::going(Next::Resume),
            });
        }
        Ok(match self.remotes.waits(&task.identity, &held.receipt) {
            Some(reason) if stage == Stage::Attached => Disposition::settled(Some(reason)),
            _ => Disposition::going(Next::Resume),
        })
    }

    /// Why a task that was allocated may not be executed now.
    fn unready(&self, task: &TaskView, held: &Held) -> Result<Option<String>> {
        unready(self.repo, self.view, self.remotes, task, held)
    }

    /// What can be done for a task that is not begun, whose prerequisites are delivered.
    pub(super) fn remote_pending(&self, task: &TaskView, found: &Loop, manifest: &Manifest) -> Result<Disposition> {
        if let Some(carrier) = self.carrier_in_flight(task, found)? {
            return Ok(Disposition::waiting(format!(
                "waits for {carrier}, which carries the package of the loop to {}",
                manifest.base_ref
            )));
        }
        let base = match self.remotes.base(&manifest.base_ref) {
            Ok(base) => base,
            Err(reason) => return Ok(Disposition::waiting(reason)),
        };
        if let Some(reason) = lost_merge(self.repo, self.view, task, base, &manifest.base_ref)? {
            return Ok(Disposition::waiting(reason));
        }
        if self.repo.entry(base, &found.id.queue_file())?.is_none() {
            if found.record.is_none() {
                return Ok(Disposition::waiting(format!(
                    "{REMOTE}/{} does not hold the loop, and this repository has no capture that could bring it there",
                    manifest.base_ref
                )));
            }
            if let Some(reason) = self.lost_carrier(found, base, &manifest.base_ref)? {
                return Ok(Disposition::waiting(reason));
            }
        }
        Ok(match self.starts.unfit(found, base)? {
            Some(reason) => Disposition::waiting(reason),
            None => Disposition::going(Next::Begin(Start::Base(base))),
        })
    }

    /// The task that was allocated to carry the loop's package to the base, and neither did so nor failed yet.
    fn carrier_in_flight(&self, task: &TaskView, found: &Loop) -> Result<Option<Identity>> {
        for other in self.view.tasks_of(task.loop_index).filter(|other| other.identity != task.identity) {
            let in_flight = match &other.state {
                State::Owned(held, stage) if *stage < Stage::Delivered => Some(held),
                State::Invalid { held, .. } => held.as_ref(),
                State::Owned(..) | State::Absent | State::Occupied(_) => None,
            };
            if let Some(held) = in_flight
                && held.receipt.verdict() != Some(Verdict::Failed)
                && self.carries(held, found)?
            {
                return Ok(Some(other.identity.clone()));
            }
        }
        Ok(None)
    }

    /// Why a base without the loop waits, though a carrier was merged.
    fn lost_carrier(&self, found: &Loop, base: Oid, name: &str) -> Result<Option<String>> {
        for other in self.view.tasks.iter().filter(|other| other.identity.loop_id == found.id) {
            if let Some(held) = other.held()
                && let Some(merge) = merge_commit(&held.receipt)
                && !contains(self.repo, base, merge)?
            {
                return Ok(Some(lost(&other.identity, merge, name, base)));
            }
        }
        Ok(None)
    }

    /// Whether the task began where the package of its loop was not.
    fn carries(&self, held: &Held, found: &Loop) -> Result<bool> {
        let baseline = held.receipt.baseline;
        Ok(self.repo.commit(baseline)?.is_some() && self.repo.entry(baseline, &found.id.queue_file())?.is_none())
    }
}

/// Why a task that was allocated may not be executed now: nothing could be delivered, or a merge that it builds on is
/// not where it was.
fn unready(repo: &Repo, view: &View, remotes: &Remotes<'_>, task: &TaskView, held: &Held) -> Result<Option<String>> {
    let name = &held.receipt.base;
    let base = match remotes.base(name) {
        Ok(base) => base,
        Err(reason) => return Ok(Some(reason)),
    };
    if let Some(reason) = lost_merge(repo, view, task, base, name)? {
        return Ok(Some(reason));
    }
    let own = format!("its start {}", held.receipt.baseline);
    lost_merge(repo, view, task, held.receipt.baseline, &own)
}

/// The first prerequisite whose merge the commit `at`, which is called `name`, does not contain.
fn lost_merge(repo: &Repo, view: &View, task: &TaskView, at: Oid, name: &str) -> Result<Option<String>> {
    let Some(found) = view.loop_of(task) else { return Ok(Some("its loop is gone".to_owned())) };
    for prerequisite in found.prerequisites(&task.identity) {
        let merge = view.task(&prerequisite).and_then(TaskView::held).and_then(|held| merge_commit(&held.receipt));
        match merge {
            None => return Ok(Some(format!("its prerequisite {prerequisite} has no merge on record"))),
            Some(merge) if !contains(repo, at, merge)? => return Ok(Some(lost(&prerequisite, merge, name, at))),
            Some(_) => {}
        }
    }
    Ok(None)
}

fn lost(identity: &Identity, merge: Oid, name: &str, at: Oid) -> String {
    format!("the merge {merge} of {identity} is not in {name} ({at}); bring it back there")
}

fn contains(repo: &Repo, at: Oid, commit: Oid) -> Result<bool> {
    Ok(repo.commit(commit)?.is_some() && repo.is_ancestor(commit, at)?)
}

impl Controller<'_> {
    /// How the loop of the task is delivered by this drain.
    pub(super) fn mode(&self, view: &View, task: &TaskView) -> LoopMode {
        LoopMode::of(view, task.loop_index, self.options.local_only)
    }

    /// Looks once more before an execution, where what was seen is not fresh.
    pub(super) fn still_ready(&self, view: &View, task: &TaskView, held: &Held) -> std::result::Result<(), String> {
        if held.receipt.local_only || !matches!(self.mode(view, task), LoopMode::Remote(_)) {
            return Ok(());
        }
        self.remotes.refresh();
        match unready(self.repo, view, &self.remotes, task, held) {
            Ok(None) => Ok(()),
            Ok(Some(reason)) => Err(reason),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Tries once more to clean up behind tasks that were delivered before. Whatever comes of it, the queue goes on.
    pub(super) fn retry_cleanups(&mut self) -> std::result::Result<(), DrainError> {
        if self.options.local_only {
            return Ok(());
        }
        let (view, _) = self.view()?;
        for task in view.tasks.iter().filter(|task| task.stage() == Some(Stage::Delivered)) {
            if let Some(held) = task.held()
                && held.receipt.delivery == Some(Delivery::Complete)
                && held.receipt.status.is_none()
                && let Err(error) = self.retry_cleanup(held)
            {
                self.diagnostics.push(format!("{}: its cleanup was not tried again: {error}", task.identity));
            }
        }
        Ok(())
    }

    fn retry_cleanup(&self, held: &Held) -> std::result::Result<(), TaskError> {
        let _lock = Lock::at_once(&held.dir.lock())?;
        let mut receipt = Receipt::owned(self.layout, &held.dir)?;
        let asked = Completion { writers_stopped: true, ..Completion::default() };
        complete_locked(self.repo, &held.dir, &mut receipt, &asked).map(|_| ())
    }

    /// Removes the empty folders of loops all of whose worktrees were cleaned up. One that is only away, moved or on a
    /// disk that is not mounted, is expected back in its place.
    pub(super) fn prune_worktree_root(&self, view: &View, root: &Path) {
        for (index, found) in view.queue.loops.iter().enumerate() {
            let folder = root.join(found.id.as_str());
            let mut owned = view.tasks_of(index).filter_map(TaskView::held).peekable();
            let cleaned =
                owned.peek().is_some() && owned.all(|held| held.receipt.status.as_deref() == Some("COMPLETE"));
            if cleaned && folder.is_dir() {
                prune_empty(self.layout, &folder);
            }
        }
    }
}

/// The base that holds everything of a delivered loop, once all that was accepted of it is there.
pub(super) fn delivered_base(view: &View, loop_index: usize) -> Option<String> {
    let LoopMode::Remote(_) = LoopMode::of(view, loop_index, false) else { return None };
    let accepted: Vec<&TaskView> = view
        .tasks_of(loop_index)
        .filter(|task| task.outcome() == Outcome::Accepted && task.accepted_source().is_some())
        .collect();
    let delivered =
        |task: &&TaskView| task.held().is_some_and(|held| held.receipt.delivery == Some(Delivery::Complete));
    let manifest = view.queue.loops.get(loop_index)?.manifest.as_ref().ok()?;
    (!accepted.is_empty() && accepted.iter().all(delivered)).then(|| manifest.base_ref.clone())
}
