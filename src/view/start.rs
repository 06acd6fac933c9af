//! Where a task would start, and what that commit must hold before anything is allocated on it.

use std::cell::RefCell;
use std::collections::HashMap;

use super::{Held, Loop, Result, TaskView, View, drifted, unix_lines};
use crate::exchange::EVIDENCE;
use crate::git::{Oid, Repo};
use crate::package::Package;
use crate::queue::{Mark, QueueFile};
use crate::store::ReceiptDir;

/// Where a local task starts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Start {
    /// At this commit.
    Base(Oid),
    /// At the accepted source of this receipt.
    Accepted(ReceiptDir, Oid),
}

impl Start {
    /// The commit.
    #[must_use]
    pub fn commit(&self) -> Oid {
        match self {
            Self::Base(id) | Self::Accepted(_, id) => *id,
        }
    }
}

/// Finds starts; what it learns of a commit it remembers.
pub struct Starts<'a> {
    repo: &'a Repo,
    unfit: RefCell<HashMap<Oid, Option<String>>>,
    descends: RefCell<HashMap<(Oid, Oid), bool>>,
}

impl<'a> Starts<'a> {
    /// Finds starts in `repo`, under the instructions of its checkout.
    #[must_use]
    pub fn new(repo: &'a Repo) -> Self {
        Self { repo, unfit: RefCell::default(), descends: RefCell::default() }
    }

    /// Where the local task starts, or why it waits.
    ///
    /// # Errors
    /// Where Git cannot tell.
    pub fn local(&self, view: &View, task: &TaskView) -> Result<std::result::Result<Start, String>> {
        let Some(found) = view.loop_of(task) else { return Ok(Err("its loop is gone".to_owned())) };
        let Some(record) = &found.record else {
            return Ok(Err(format!(
                "this repository has no add record of {}, so it does not know the branch that local work starts from; \
                 drain where the loop was added, or plan its work as a new loop here",
                found.id
            )));
        };
        if let Some(frontier) = self.frontier(view, task.loop_index)? {
            return self.behind_frontier(view, found, task, &frontier);
        }
        let fixed = view
            .tasks_of(task.loop_index)
            .filter_map(TaskView::held)
            .find(|held| held.receipt.allocated_from.is_none());
        if let Some(held) = fixed {
            return Ok(Ok(Start::Base(held.receipt.baseline)));
        }
        let Some(head) = self.repo.resolve(&format!("refs/heads/{}", record.branch))? else {
            return Ok(Err(format!(
                "the branch {} that the loop was added on is gone; make it again where its work starts",
                record.branch
            )));
        };
        let Ok(manifest) = &found.manifest else { return Ok(Ok(Start::Base(head))) };
        let base = self.repo.exact_commit(&manifest.base_sha)?;
        if !base.map_or(Ok(false), |base| self.descends(base, head))? {
            return Ok(Err(format!(
                "{} is at {head}, which does not descend from the package's base_sha {}; bring that commit into {}",
                record.branch, manifest.base_sha, record.branch
            )));
        }
        Ok(Ok(Start::Base(head)))
    }

    fn behind_frontier(
        &self,
        view: &View,
        found: &Loop,
        task: &TaskView,
        frontier: &Held,
    ) -> Result<std::result::Result<Start, String>> {
        let Some(source) = frontier.receipt.source_sha else { return Ok(Err("its frontier has no source".to_owned())) };
        for prerequisite in found.prerequisites(&task.identity) {
            let Some(needed) = view.task(&prerequisite).and_then(TaskView::accepted_source) else { continue };
            if !self.descends(needed, source)? {
                return Ok(Err(format!(
                    "the accepted sources diverge: {source} of {} does not contain {needed} of {prerequisite}; plan a task \
                     that integrates both",
                    frontier.receipt.task
                )));
            }
        }
        Ok(Ok(Start::Accepted(frontier.dir.clone(), source)))
    }

    /// The accepted receipt of the loop whose source contains the others', whatever the order of rows.
    ///
    /// # Errors
    /// Where Git cannot tell.
    pub fn frontier(&self, view: &View, loop_index: usize) -> Result<Option<Held>> {
        let accepted: Vec<(&Held, Oid)> = view
            .tasks_of(loop_index)
            .filter_map(|task| Some((task.held()?.as_ref(), task.accepted_source()?)))
            .collect();
        let mut best: Option<(&Held, Oid)> = None;
        for (held, source) in &accepted {
            best = match best {
                Some((_, ahead)) if !self.descends(ahead, *source)? => best,
                _ => Some((held, *source)),
            };
        }
        Ok(best.map(|(held, _)| held.clone()))
    }

    /// Why nothing of the loop may be allocated at `start`, if anything speaks against it.
    ///
    /// # Errors
    /// Where Git cannot tell.
    pub fn unfit(&self, found: &Loop, start: Oid) -> Result<Option<String>> {
        let known = self.unfit.borrow().get(&start).cloned();
        let general = match known {
            Some(general) => general,
            None => {
                let general = self.generally_unfit(start)?;
                self.unfit.borrow_mut().insert(start, general.clone());
                general
            }
        };
        match general {
            Some(why) => Ok(Some(why)),
            None => self.other_package(found, start),
        }
    }

    fn generally_unfit(&self, start: Oid) -> Result<Option<String>> {
        if !self.repo.ignores_folder(start, EVIDENCE)? {
            return Ok(Some(format!(
                "the commit {start} that it starts from does not ignore .devlyn/; commit `.devlyn/` to .gitignore there, or \
                 write it into {}",
                self.repo.common_dir().join("info/exclude").display()
            )));
        }
        Ok(drifted(self.repo, start)?.map(|name| {
            format!(
                "{name} of this checkout and of the commit {start} that it starts from differ; commit it there, or put \
                 the checkout's back"
            )
        }))
    }

    /// The package file that `start` holds in another version than the capture, where `start` holds the loop.
    fn other_package(&self, found: &Loop, start: Oid) -> Result<Option<String>> {
        let (Some(record), Ok(manifest)) = (&found.record, &found.manifest) else { return Ok(None) };
        if self.repo.entry(start, &found.id.queue_file())?.is_none() {
            return Ok(None);
        }
        for path in Package::paths(manifest) {
            let (captured, there) = (self.repo.file(record.commit, &path)?, self.repo.file(start, &path)?);
            let (Some(captured), Some(there)) = (&captured, &there) else { continue };
            if captured.id != there.id && unix_lines(&captured.data) != unix_lines(&there.data) {
                return Ok(Some(format!(
                    "{path} in the commit {start} that it starts from is not the captured one; the work of a captured loop \
                     starts where its package is unchanged"
                )));
            }
        }
        Ok(None)
    }

    /// What `start` lacks of a loop that it holds the queue file of, and without which the task could not end there.
    ///
    /// # Errors
    /// Where Git cannot tell.
    pub fn lacking(&self, found: &Loop, task: &TaskView, start: Oid) -> Result<Option<String>> {
        let (queue, Ok(manifest)) = (found.id.queue_file(), &found.manifest) else { return Ok(None) };
        let Some(blob) = self.repo.file(start, &queue)? else { return Ok(None) };
        let rows = QueueFile::parse(&found.id, &blob.data).ok().flatten();
        if rows.and_then(|rows| rows.row(&task.identity).map(|row| row.mark)) != Some(Mark::Pending) {
            return Ok(Some(format!("{queue} in the commit {start} that it starts from has no pending row of it")));
        }
        for path in Package::paths(manifest) {
            if self.repo.entry(start, &path)?.is_none() {
                return Ok(Some(format!("the commit {start} that it starts from holds {queue} and lacks {path}")));
            }
        }
        Ok(None)
    }

    fn descends(&self, old: Oid, new: Oid) -> Result<bool> {
        if let Some(known) = self.descends.borrow().get(&(old, new)) {
            return Ok(*known);
        }
        let found = self.repo.is_ancestor(old, new)?;
        self.descends.borrow_mut().insert((old, new), found);
        Ok(found)
    }
}
