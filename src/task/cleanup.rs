//! What goes once a task was merged: its worktree, its branch here and on the remote, the empty folders above it. What
//! is not as the receipt says stays, with the reason; nothing is ever forced.

use std::path::{Path, PathBuf};

use super::resume_line;
use crate::git::{Head, Oid, RefChange, Remote, Repo};
use crate::os::{mounts, tree, writers};
use crate::package::Identity;
use crate::store::{Cleanup, Layout, Lock, Receipt, ReceiptDir, is_there, keep_records};
use crate::view::checkout_of;

/// What Git keeps in a worktree's own directory while something is half done there.
const HALF_DONE: [&str; 6] =
    ["MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply"];

/// Why something is kept.
#[derive(Debug)]
pub(super) struct Kept(pub(super) String);

impl<E: std::error::Error> From<E> for Kept {
    fn from(error: E) -> Self {
        Self(error.to_string())
    }
}

fn keep<T>(why: impl Into<String>) -> Result<T, Kept> {
    Err(Kept(why.into()))
}

/// Cleans up behind the merged task of `receipt`, whose lock is held; `reached` is its remote and the head of its base
/// there, or why they are out of reach. Returns why something was retained, nothing once all of it is gone.
pub(super) fn workspace(
    repo: &Repo,
    dir: &ReceiptDir,
    receipt: &Receipt,
    reached: Result<(Remote<'_>, Oid), Kept>,
) -> Option<Cleanup> {
    let cleaning = Cleaning { repo, dir, receipt };
    let kept = match reached {
        Ok((remote, base)) => cleaning.all(&remote, base),
        Err(why) => vec![why],
    };
    (!kept.is_empty()).then(|| Cleanup::Retained {
        reason: kept.into_iter().map(|kept| kept.0).collect::<Vec<_>>().join("; "),
        resume: resume_line(dir, &Receipt { writers_released: true, ..receipt.clone() }),
    })
}

/// Removes the folder above the worktree where it is empty and is the loop's: what stands above it is not ours.
pub(super) fn prune_parent(layout: &Layout, receipt: &Receipt) {
    let Ok(identity) = Identity::parse(&receipt.task) else { return };
    if let Some(folder) = receipt.worktree.parent()
        && receipt.worktree.file_name().is_some_and(|name| name == identity.task.as_str())
        && folder.file_name().is_some_and(|name| name == identity.loop_id.as_str())
    {
        prune_empty(layout, folder);
    }
}

/// Removes the folder `path` where it is empty, while nobody makes a worktree in it.
pub fn prune_empty(layout: &Layout, path: &Path) {
    if let Ok(_lock) = Lock::wait(&layout.worktree_lock()) {
        // A folder that holds something, or is a link, is refused by the system itself.
        let _ = std::fs::remove_dir(path);
    }
}

struct Cleaning<'a> {
    repo: &'a Repo,
    dir: &'a ReceiptDir,
    receipt: &'a Receipt,
}

impl Cleaning<'_> {
    fn all(&self, remote: &Remote<'_>, base: Oid) -> Vec<Kept> {
        let publish = match self.may_begin(base).and_then(|publish| self.tree(publish).map(|()| publish)) {
            Ok(publish) => publish,
            Err(kept) => return vec![kept],
        };
        let branches = [self.remote_branch(remote, publish), self.local_branch(publish)];
        prune_parent(&Layout::new(self.repo.common_dir()), self.receipt);
        branches.into_iter().filter_map(Result::err).collect()
    }

    /// What was published, where everything that is to outlive the worktree is where it must be.
    fn may_begin(&self, base: Oid) -> Result<Oid, Kept> {
        let receipt = self.receipt;
        if !receipt.writers_released {
            return keep("its writers were not said to have stopped; say so with --writers-stopped");
        }
        let (Some(publish), Some(merge)) = (receipt.publish_sha, super::policy::merge_commit(receipt)) else {
            return keep("its receipt names no merge");
        };
        super::accept::intact(self.repo, self.dir, receipt)?;
        let there = self.repo.commit(merge)?.is_some();
        if !there || !self.repo.is_ancestor(merge, base)? {
            return keep(format!("its merge {merge} is not on {} any more, which is at {base}", receipt.base));
        }
        Ok(publish)
    }

    fn tree(&self, publish: Oid) -> Result<(), Kept> {
        let place = &self.receipt.worktree;
        let _lock = Lock::wait(&Layout::new(self.repo.common_dir()).worktree_lock())?;
        let registered = self.repo.worktrees()?;
        let own = registered.iter().find(|known| known.path == *place);
        let there = is_there(place)?;
        if let Some(why) = own.and_then(|own| own.locked.as_ref()) {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            return keep(format!("{} is locked{why}; unlock it with `git worktree unlock`", place.display()));
        }
        match (there, own.is_some()) {
            (false, false) => return Ok(()),
            (true, false) => return keep(format!("{} is no worktree of this repository any more", place.display())),
            (false, true) => self.owned_git_dir()?,
            (true, true) => {
                self.owned(publish)?;
                self.nothing_inside(registered.iter().map(|known| &known.path))?;
                keep_records(self.dir, place)?;
                self.unused()?;
            }
        }
        self.repo.git().args(["worktree", "remove"]).arg(place).run()?;
        if is_there(place)? {
            return keep(format!("{} was removed and is there again", place.display()));
        }
        Ok(())
    }

    fn owned_git_dir(&self) -> Result<(), Kept> {
        let recorded = self.receipt.worktree_identity.zip(self.receipt.worktree_gitdir.as_ref());
        let same = recorded.is_some_and(|([_, id], git_dir)| tree::identity(git_dir).is_ok_and(|found| found == id));
        if same { Ok(()) } else { keep("the worktree's Git directory is not the one that was allocated") }
    }

    /// Whether the worktree is the very one, on its branch at `commit`, with nothing in it that is not committed.
    fn owned(&self, commit: Oid) -> Result<(), Kept> {
        let (receipt, place) = (self.receipt, &self.receipt.worktree);
        let shown = place.display();
        self.owned_git_dir()?;
        let checkout = checkout_of(self.repo, receipt);
        let recorded = receipt.worktree_identity.map(|[id, _]| id);
        if recorded.is_none() || tree::identity(place).ok() != recorded {
            return keep(format!("{shown} is not the directory that was allocated"));
        }
        let git_dir = checkout.git_dir()?;
        if Some(&git_dir) != receipt.worktree_gitdir.as_ref() {
            return keep(format!("{shown} belongs to another Git directory than was allocated"));
        }
        if self.repo.head_of(&checkout)? != Head::Branch(receipt.branch.clone(), commit) {
            return keep(format!("{shown} does not have {} checked out at {commit}", receipt.branch));
        }
        if let Some(name) = HALF_DONE.iter().find(|name| git_dir.join(name).exists()) {
            return keep(format!("something is half done in {shown} ({name})"));
        }
        let dirty = checkout.dirty()?;
        if let Some(path) = dirty.first() {
            return keep(format!("{shown} holds what is not committed ({})", crate::git::shown(path.as_ref())));
        }
        if let Some(path) = checkout.hidden(self.repo)? {
            return keep(format!("Git was told not to look at {} in {shown}", crate::git::shown(path.as_ref())));
        }
        Ok(())
    }

    /// Whether no other repository, worktree or file system lives in it.
    fn nothing_inside<'p>(&self, mut others: impl Iterator<Item = &'p PathBuf>) -> Result<(), Kept> {
        let place = &self.receipt.worktree;
        if self.repo.work_dir().starts_with(place) {
            return keep(format!("this very call works on {}; call from another worktree", place.display()));
        }
        if let Some(other) = others.find(|other| *other != place && other.starts_with(place)) {
            return keep(format!("the worktree {} lies in it", other.display()));
        }
        match mounts::mounted_below(place) {
            Ok(None) => {}
            Ok(Some(mount)) => return keep(format!("something is mounted at {}", mount.display())),
            Err(error) => return keep(format!("what is mounted in {} cannot be told: {error}", place.display())),
        }
        match nested_repository(place) {
            Ok(None) => Ok(()),
            Ok(Some(nested)) => keep(format!("the repository {} lies in it", nested.display())),
            Err((path, error)) => keep(format!("{} cannot be looked into: {error}", path.display())),
        }
    }

    fn unused(&self) -> Result<(), Kept> {
        let place = &self.receipt.worktree;
        let since = std::fs::metadata(place).and_then(|meta| meta.created()).ok();
        let strict = self.repo.config("devlyn.writers").as_deref() == Some("strict");
        Ok(writers::observe(place, since, strict)?)
    }

    fn remote_branch(&self, remote: &Remote<'_>, publish: Oid) -> Result<(), Kept> {
        let branch = &self.receipt.branch;
        let elsewhere = |at: Oid| keep(format!("{branch} on {} is at {at}, not at {publish}", remote.name()));
        match remote.head(branch)? {
            None => {}
            Some(at) if at != publish => return elsewhere(at),
            Some(_) => {
                let deleted = remote.delete(branch, publish);
                match (remote.head(branch)?, deleted) {
                    (None, _) => {}
                    (Some(at), _) if at != publish => return elsewhere(at),
                    (Some(_), Err(error)) => return Err(error.into()),
                    (Some(_), Ok(())) => {
                        return keep(format!("{branch} was deleted on {} and is there", remote.name()));
                    }
                }
            }
        }
        let name = remote.tracking_ref(branch);
        if self.repo.resolve(&name)? == Some(publish) {
            self.repo.update_refs(&[RefChange::Delete { name, old: publish }])?;
        }
        Ok(())
    }

    fn local_branch(&self, publish: Oid) -> Result<(), Kept> {
        let branch = &self.receipt.branch;
        let name = format!("refs/heads/{branch}");
        match self.repo.resolve(&name)? {
            None => return Ok(()),
            Some(at) if at != publish => return keep(format!("{branch} is at {at}, not at {publish}")),
            Some(_) => {}
        }
        let worktrees = self.repo.worktrees()?;
        if let Some(other) = worktrees.iter().find(|other| other.branch.as_ref() == Some(&name)) {
            return keep(format!("{branch} is checked out in {}", other.path.display()));
        }
        Ok(self.repo.update_refs(&[RefChange::Delete { name, old: publish }])?)
    }
}

/// The first repository below `top`, whose own `.git` does not count: anything of that name, or a bare one.
fn nested_repository(top: &Path) -> Result<Option<PathBuf>, (PathBuf, std::io::Error)> {
    let mut waiting = vec![top.to_owned()];
    while let Some(folder) = waiting.pop() {
        let failed = |error| (folder.clone(), error);
        let mut bare = [("HEAD", false), ("objects", false), ("refs", false)];
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (name, path) = (entry.file_name(), entry.path());
            if name.eq_ignore_ascii_case(".git") {
                if folder != top {
                    return Ok(Some(path));
                }
                continue;
            }
            for (wanted, found) in &mut bare {
                *found |= name == *wanted;
            }
            if entry.file_type().map_err(failed)?.is_dir() {
                waiting.push(path);
            }
        }
        if bare.iter().all(|(_, found)| *found) {
            return Ok(Some(folder));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repository_is_found_however_deep_it_lies_and_whatever_it_is_called() {
        let top = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(top.path().join(".git")).unwrap();
        std::fs::create_dir_all(top.path().join("a/b")).unwrap();
        std::os::unix::fs::symlink("/", top.path().join("root")).unwrap();
        assert_eq!(nested_repository(top.path()).unwrap(), None);
        for name in [".git", ".GIT"] {
            let path = top.path().join("a/b").join(name);
            std::fs::create_dir(&path).unwrap();
            assert_eq!(nested_repository(top.path()).unwrap(), Some(path.clone()));
            std::fs::remove_dir(path).unwrap();
        }
        for name in ["objects", "refs", "HEAD"] {
            assert_eq!(nested_repository(top.path()).unwrap(), None);
            std::fs::create_dir(top.path().join("a/b").join(name)).unwrap();
        }
        assert_eq!(nested_repository(top.path()).unwrap(), Some(top.path().join("a/b")));
    }
}
