//! The one recovery that is left to a person: undoing an allocation that was never finished. It shows what the worktree,
//! the branch and the receipt's directory hold, proves that nothing of it is anybody's work, and takes them away, the
//! receipt last, so that running it again finishes what was interrupted. Everything else it refuses.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Result, inputs, leftover, refuse};
use crate::git::{MAKING, Oid, RefChange, Registration, Repo, Worktree, shown};
use crate::os::{tree, writers};
use crate::package::{Identity, Key};
use crate::store::{Allocation, Layout, Lock, Receipt, ReceiptDir, StoreError, is_there, remove_file, sync_dir};

/// What was found, and what became of it.
#[derive(Debug, Serialize)]
pub struct Recovered {
    /// `RECOVERED`, or `RECOVERABLE` where it was only shown.
    pub status: &'static str,
    /// The task.
    pub task: String,
    /// The worktree that the receipt names, where there is a receipt.
    pub worktree: Option<PathBuf>,
    /// The branch that the task would own.
    pub branch: String,
    /// The receipt's directory.
    pub receipt: PathBuf,
    /// What each of them holds, in words.
    pub holds: Holds,
}

/// What an unfinished allocation left, in words.
#[derive(Debug, Serialize)]
pub struct Holds {
    /// In the worktree.
    pub worktree: String,
    /// On the branch.
    pub branch: String,
    /// In the receipt's directory.
    pub receipt: String,
}

/// Undoes the unfinished allocation of `task`, or only shows what would be undone.
///
/// # Errors
/// Where it is no unfinished allocation, or something of it may be somebody's work; then nothing was changed.
pub fn recover(repo: &Repo, layout: &Layout, task: &str, dry_run: bool) -> Result<Recovered> {
    let dir = find(layout, task)?;
    let _drain = match Lock::at_once(&layout.drain_lock()) {
        Err(StoreError::Held(path)) => {
            return refuse(format!(
                "a drain works in this repository ({}); wait for it, or end it, and recover then",
                path.display()
            ));
        }
        lock => lock?,
    };
    let _worktrees = Lock::wait(&layout.worktree_lock())?;
    let _receipt = if dry_run { None } else { Some(Lock::wait(&dir.lock())?) };
    let left = Left::look(repo, layout, task, &dir)?;
    if !dry_run {
        left.remove(repo, &dir)?;
    }
    let status = if dry_run { "RECOVERABLE" } else { "RECOVERED" };
    let Left { branch, worktree, holds, .. } = left;
    Ok(Recovered { status, task: task.to_owned(), worktree, branch, receipt: dir.path().to_owned(), holds })
}

/// The directory of the receipt that belongs to the task.
fn find(layout: &Layout, task: &str) -> Result<ReceiptDir> {
    if let Ok(identity) = Identity::parse(task) {
        let dir = layout.receipt_dir(&identity.key());
        if std::fs::symlink_metadata(dir.path()).is_ok_and(|meta| meta.is_dir()) {
            return Ok(dir);
        }
    }
    // A task that was allocated by hand has any name and any branch; only its receipt tells which is its own.
    for entry in std::fs::read_dir(layout.completions()).into_iter().flatten().flatten() {
        let dir = ReceiptDir::new(entry.path());
        if matches!(Receipt::read(&dir), Ok(Some(receipt)) if receipt.task == task) {
            return Ok(dir);
        }
    }
    refuse(format!(
        "nothing is left of an allocation of {task:?}; a queued task is allocated by `git devlyn drain`, and \
         `git devlyn status` names them all"
    ))
}

/// What an unfinished allocation left, none of which is anybody's work.
struct Left {
    branch: String,
    /// Where the branch is, where it is there.
    head: Option<Oid>,
    worktree: Option<PathBuf>,
    registered: Option<Registration>,
    /// Registrations that never came so far as to name a worktree.
    debris: Vec<Registration>,
    holds: Holds,
}

impl Left {
    fn look(repo: &Repo, layout: &Layout, task: &str, dir: &ReceiptDir) -> Result<Self> {
        let receipt = Receipt::read(dir)?;
        let branch = match &receipt {
            None => Identity::parse(task).map_or_else(|_| String::new(), |identity| identity.branch()),
            Some(receipt) => unfinished(layout, dir, receipt)?.branch.clone(),
        };
        let (names, surplus) = leftover::allocation(dir)?;
        if let Some(surplus) = surplus {
            return refuse(format!(
                "{} is nothing that an allocation leaves; look at it, and take it elsewhere if it is anybody's work",
                surplus.display()
            ));
        }
        let debris = debris(repo)?;
        let worktree =
            if debris.is_empty() { "nothing is there" } else { "nothing is there, and Git began to make one" };
        let head = repo.resolve(&format!("refs/heads/{branch}"))?;
        let mut left = Self {
            head,
            worktree: None,
            registered: None,
            debris,
            holds: Holds {
                worktree: worktree.to_owned(),
                branch: "is not there".to_owned(),
                receipt: names.join(", "),
            },
            branch,
        };
        match receipt {
            Some(receipt) => left.prove(repo, &receipt)?,
            None if left.head.is_some() => {
                return refuse(format!(
                    "the branch {} is there, and no receipt says that it is the task's; look at it with \
                     `git log {}`, move it away with `git branch -m`, and recover again",
                    left.branch, left.branch
                ));
            }
            None => {}
        }
        Ok(left)
    }

    /// Proves that worktree and branch hold nothing but the receipt's baseline, or the inputs that are made on it before
    /// there is a worktree.
    fn prove(&mut self, repo: &Repo, receipt: &Receipt) -> Result<()> {
        let (place, baseline) = (&receipt.worktree, receipt.baseline);
        if let Some(head) = self.head {
            self.holds.branch = if head == baseline {
                format!("is at {head}, without a commit of its own")
            } else if inputs::are_inputs(repo, receipt, head)? {
                format!("is at its inputs {head}, and nothing was done on them")
            } else {
                return refuse(format!(
                    "the branch {} is at {head} and was made at {baseline}; look at `git log {baseline}..{head}`, take \
                     what is yours elsewhere, and recover again",
                    self.branch
                ));
            };
        }
        let start = self.head.unwrap_or(baseline);
        if !place.is_absolute() {
            return refuse(format!("its receipt names the worktree {}, which is no absolute path", place.display()));
        }
        let full = format!("refs/heads/{}", self.branch);
        let registrations = repo.registrations()?;
        for Worktree { path: other, branch, .. } in repo.worktrees()? {
            match (same(&other, place), branch) {
                (false, Some(branch)) if branch == full => {
                    return refuse(format!("the branch {} is checked out in {}", self.branch, other.display()));
                }
                (true, Some(branch)) if branch != full => {
                    let branch = branch.trim_start_matches("refs/heads/");
                    return refuse(format!("{} has another branch checked out, {branch}", place.display()));
                }
                _ => {}
            }
        }
        self.worktree = Some(place.clone());
        self.registered =
            registrations.into_iter().find(|found| found.worktree.as_deref().is_some_and(|path| same(path, place)));
        if let Some(why) = self.registered.as_ref().and_then(|found| found.locked.as_ref())
            && why != MAKING
        {
            let why = if why.is_empty() { "without a reason".to_owned() } else { format!("{why:?}") };
            return refuse(format!(
                "{} was locked by somebody else ({why}); `git worktree unlock` it if nobody needs it",
                place.display()
            ));
        }
        let meta = match std::fs::symlink_metadata(place) {
            Ok(meta) => meta,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                if self.registered.is_some() {
                    self.holds.worktree = "nothing is there, and Git has it on record".to_owned();
                }
                return Ok(());
            }
            Err(error) => return Err(StoreError::io(place)(error).into()),
        };
        if !meta.is_dir() {
            return refuse(format!("{} is no directory, and not what an allocation makes", place.display()));
        }
        let strict = repo.config("devlyn.writers").as_deref() == Some("strict");
        writers::observe(place, meta.created().ok(), strict)
            .map_err(|why| super::TaskError::Refused(why.to_string()))?;
        self.holds.worktree = prove_tree(repo, self.registered.as_ref(), place, start)?;
        Ok(())
    }

    /// Takes all of it away, what names the rest last.
    fn remove(&self, repo: &Repo, dir: &ReceiptDir) -> Result<()> {
        if let Some(place) = &self.worktree {
            remove_worktree(repo, self.registered.as_ref(), place)?;
        }
        for debris in &self.debris {
            for name in ["gitdir", "locked"] {
                remove_file(&debris.git_dir.join(name))?;
            }
            std::fs::remove_dir(&debris.git_dir).map_err(StoreError::io(&debris.git_dir))?;
        }
        if let Some(old) = self.head {
            repo.update_refs(&[RefChange::Delete { name: format!("refs/heads/{}", self.branch), old }])?;
        }
        // A `git` that outlived its drain may have gone on making what was just removed.
        if let Some(place) = &self.worktree
            && (is_there(place)? || repo.resolve(&format!("refs/heads/{}", self.branch))?.is_some())
        {
            return refuse(format!("{} came back while it was removed; recover again", place.display()));
        }
        leftover::remove_allocation(dir)?;
        Ok(())
    }
}

/// The receipt, where it is one of an allocation that was never finished.
fn unfinished<'a>(layout: &Layout, dir: &ReceiptDir, receipt: &'a Receipt) -> Result<&'a Receipt> {
    let path = dir.receipt();
    receipt.check_place(layout, dir).map_err(|why| StoreError::invalid(&path, why))?;
    match receipt.allocation {
        Allocation::Owned => {
            let word = match receipt.verdict() {
                None => "goes on with `git devlyn drain`",
                Some(_) => "has a result, which is never undone",
            };
            refuse(format!(
                "the allocation of {} was finished, and the task {word}; see {}",
                receipt.task,
                path.display()
            ))
        }
        Allocation::Allocating if receipt.is_bound() => {
            refuse(format!("{} has a result and says that it was never allocated; inspect it", path.display()))
        }
        Allocation::Allocating if Key::of_branch(&receipt.branch).as_str() != dir.key() => {
            refuse(format!("{} names the branch {:?}, which is not its own", path.display(), receipt.branch))
        }
        Allocation::Allocating => Ok(receipt),
    }
}

/// Proves that the directory `place` holds nothing but files of the commit `start`, and says what it holds.
fn prove_tree(repo: &Repo, registered: Option<&Registration>, place: &Path, start: Oid) -> Result<String> {
    let entries = std::fs::read_dir(place).map_err(StoreError::io(place))?;
    let names: Vec<OsString> =
        entries.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>().map_err(StoreError::io(place))?;
    if names.is_empty() {
        return Ok("is an empty directory".to_owned());
    }
    let Some(registered) = registered else {
        return refuse(format!(
            "{} is not empty, and Git does not know it as a worktree; look at what it holds, and move it away",
            place.display()
        ));
    };
    let leads = repo.checkout(place).git_dir();
    if names.iter().any(|name| name == ".git") && leads.is_ok_and(|leads| leads != registered.git_dir) {
        return refuse(format!("{} belongs to another repository or worktree than Git has on record", place.display()));
    }
    if names.iter().all(|name| name == ".git") && !registered.has_head() {
        return Ok("was never filled".to_owned());
    }
    if let Some(head) = registered.head(place)?.filter(|head| *head != start) {
        return refuse(format!(
            "{} stands at {head} and was made at {start}; look at `git log {start}..{head}`",
            place.display()
        ));
    }
    let beside = registered.beside(repo, place, start)?;
    match beside.paths.first() {
        None if beside.half_made => Ok(format!("holds some files, each as {start} has it")),
        None => Ok(format!("holds nothing but the files of {start}")),
        Some(path) => {
            let more = beside.paths.len() - 1;
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            refuse(format!(
                "{} holds {}{more}, which {start} does not have so; take it elsewhere or remove it, and recover again",
                place.display(),
                shown(path.as_ref())
            ))
        }
    }
}

/// Removes the worktree, whatever an earlier removal left of it.
fn remove_worktree(repo: &Repo, registered: Option<&Registration>, place: &Path) -> Result<()> {
    if let Some(registered) = registered {
        if registered.is_cut_off() {
            remove_file(&registered.git_dir.join("commondir"))?;
        }
        remove_file(&registered.git_dir.join("locked"))?;
        let forced = || repo.git().args(["worktree", "remove", "--force", "--"]).arg(place);
        // Git refuses one that was never whole, or that an interrupted removal left without its `.git`.
        let whole = registered.has_head() && is_there(&place.join(".git"))?;
        if !whole && is_there(place)? {
            empty_place(place)?;
        }
        forced().run()?;
        return Ok(());
    }
    if is_there(place)? { empty_place(place) } else { Ok(()) }
}

/// Removes the directory `place`, whose every file was proven to be somewhere else.
fn empty_place(place: &Path) -> Result<()> {
    // The file that leads to the registration, which names the same place.
    remove_file(&place.join(".git"))?;
    let identity = tree::identity(place).map_err(StoreError::io(place))?;
    tree::empty(place, identity).map_err(|why| super::TaskError::Refused(why.to_string()))?;
    std::fs::remove_dir(place).map_err(StoreError::io(place))?;
    sync_dir(place.parent().unwrap_or(place))?;
    Ok(())
}

/// The registrations of ours that an interruption left before they named a worktree: empty, or with no more in them than
/// the beginning of the reason that they are locked with, and an empty file for the name.
fn debris(repo: &Repo) -> Result<Vec<Registration>> {
    let found = repo.registrations()?.into_iter().filter(|found| {
        let ours = found.locked.as_deref().is_some_and(|why| MAKING.starts_with(why));
        let mut entries = std::fs::read_dir(&found.git_dir).into_iter().flatten().flatten();
        let empty = |name: &OsString| std::fs::metadata(found.git_dir.join(name)).is_ok_and(|meta| meta.len() == 0);
        let begun = |name: OsString| name == "locked" || (name == "gitdir" && empty(&name));
        ours && found.worktree.is_none() && entries.all(|entry| begun(entry.file_name()))
    });
    Ok(found.collect())
}

fn same(a: &Path, b: &Path) -> bool {
    let real = |path: &Path| std::fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    a == b || real(a) == real(b)
}
