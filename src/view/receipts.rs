//! Every receipt directory as it stands, by its key and by the task that it claims. What they say of each other and of the
//! queue is for the tasks to judge.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::{Queue, Result};
use crate::exchange::{Attempt, last_attempt};
use crate::git::{Checkout, Repo};
use crate::package::{Identity, LoopId};
use crate::store::{Layout, Receipt, ReceiptDir, StoreError, read_bytes};

/// A receipt and where it is.
#[derive(Debug, Clone)]
pub struct Held {
    /// Its directory.
    pub dir: ReceiptDir,
    /// The receipt.
    pub receipt: Receipt,
}

impl Held {
    /// Its worktree, with the Git directory that it was allocated with.
    #[must_use]
    pub fn checkout(&self, repo: &Repo) -> Checkout {
        checkout_of(repo, &self.receipt)
    }
}

/// The worktree that `receipt` is of, with the Git directory that it was allocated with.
#[must_use]
pub fn checkout_of(repo: &Repo, receipt: &Receipt) -> Checkout {
    repo.checkout(&receipt.worktree).pinned(receipt.worktree_gitdir.as_deref())
}

/// What stands in one receipt directory.
#[derive(Debug)]
pub(super) enum Found {
    Receipt(Rc<Held>),
    Nothing,
    Unreadable(String),
}

/// Every receipt directory, by its key and by the task that it claims.
#[derive(Debug)]
pub(super) struct Receipts {
    found: Vec<(ReceiptDir, Found)>,
    by_key: HashMap<String, usize>,
    by_task: HashMap<String, Vec<usize>>,
}

impl Receipts {
    pub(super) fn read(layout: &Layout) -> Result<Self> {
        let folder = layout.completions();
        let mut found = Vec::new();
        match std::fs::read_dir(&folder) {
            Ok(entries) => {
                for entry in entries {
                    let entry = entry.map_err(StoreError::io(&folder))?;
                    let dir = ReceiptDir::new(entry.path());
                    let state = match Receipt::read(&dir) {
                        Ok(Some(receipt)) => Found::Receipt(Rc::new(Held { dir: dir.clone(), receipt })),
                        Ok(None) => Found::Nothing,
                        Err(error) => Found::Unreadable(error.to_string()),
                    };
                    found.push((dir, state));
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => return Err(StoreError::io(&folder)(error).into()),
        }
        found.sort_by(|(a, _), (b, _)| a.cmp(b));
        let by_key = found.iter().enumerate().map(|(at, (dir, _))| (dir.key(), at)).collect();
        let mut by_task: HashMap<String, Vec<usize>> = HashMap::new();
        for (at, (_, state)) in found.iter().enumerate() {
            if let Found::Receipt(held) = state {
                by_task.entry(held.receipt.task.clone()).or_default().push(at);
            }
        }
        Ok(Self { found, by_key, by_task })
    }

    /// A receipt of a loop that was captured here and has no record any more, and that loop.
    pub(super) fn of_unknown(&self, repo: &Repo, queue: &Queue) -> Result<Option<(LoopId, &ReceiptDir)>> {
        let known: HashSet<&LoopId> = queue.loops.iter().map(|found| &found.id).collect();
        let mut asked = HashSet::new();
        for (task, at) in &self.by_task {
            let Ok(identity) = Identity::parse(task) else { continue };
            let loop_id = identity.loop_id;
            if known.contains(&loop_id) || !asked.insert(loop_id.clone()) {
                continue;
            }
            if let (Some(at), Some(_)) = (at.first(), repo.resolve(&loop_id.capture_ref())?) {
                return Ok(Some((loop_id, &self.found[*at].0)));
            }
        }
        Ok(None)
    }

    pub(super) fn own(&self, identity: &Identity) -> Option<&(ReceiptDir, Found)> {
        self.by_key.get(identity.key().as_str()).map(|at| &self.found[*at])
    }

    /// The directories of receipts that claim the task from another place than its own.
    pub(super) fn rivals(&self, identity: &Identity) -> Vec<&ReceiptDir> {
        let key = identity.key();
        let claims = self.by_task.get(&identity.to_string()).map(Vec::as_slice).unwrap_or_default();
        claims.iter().map(|at| &self.found[*at].0).filter(|dir| dir.key() != key.as_str()).collect()
    }

    pub(super) fn implicated(&self, identity: &Identity) -> Vec<ReceiptDir> {
        let own = self.own(identity).map(|(dir, _)| dir);
        own.into_iter().chain(self.rivals(identity)).cloned().collect()
    }

    pub(super) fn unreadable(&self) -> Vec<String> {
        let texts = self.found.iter().filter_map(|(_, state)| match state {
            Found::Unreadable(why) => Some(format!("unreadable receipt {why}")),
            Found::Receipt(_) | Found::Nothing => None,
        });
        texts.collect()
    }
}

/// How the last execution of the receipt's task stands; a log that cannot be read may hide one that is open.
pub(crate) fn attempt(dir: &ReceiptDir) -> Attempt {
    match read_bytes(&dir.executions()) {
        Ok(Some(bytes)) => last_attempt(&String::from_utf8_lossy(&bytes)),
        Ok(None) => Attempt::None,
        Err(_) => Attempt::Open,
    }
}
