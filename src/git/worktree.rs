//! Linked worktrees: made, listed, looked at and brought from one commit to the next by `git` itself, so that
//! filters, hooks and sparse checkouts behave as their user expects.

use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};

use super::refs::Backend;
use super::{Git, GitError, Head, Oid, RefChange, Registration, Repo, Result};
use crate::os::locks;

/// The reason that a worktree is locked with while it is made.
pub const MAKING: &str = "git-devlyn is making it";

/// A registered worktree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Worktree {
    /// Its top, as Git has it on record.
    pub path: PathBuf,
    /// The full name of the branch that it has checked out, if any.
    pub branch: Option<String>,
    /// Why it is locked, where it is.
    pub locked: Option<String>,
    /// Whether it is the repository's bare directory and no checkout at all.
    pub bare: bool,
}

/// A worktree of this repository, looked at from outside.
#[derive(Debug, Clone)]
pub struct Checkout {
    path: PathBuf,
    /// The Git directory that it must have, whatever the `.git` in it says.
    pinned: Option<PathBuf>,
}

impl Repo {
    /// Every registered worktree, the main one first. As `git` lists them, or, where one was cut off in its making so
    /// that `git` lists none at all, as their files say.
    ///
    /// # Errors
    /// Where they cannot be listed.
    pub fn worktrees(&self) -> Result<Vec<Worktree>> {
        let registrations = self.registrations()?;
        if registrations.iter().any(Registration::is_cut_off) {
            return Ok(self.worktrees_on_file(&registrations));
        }
        Ok(parse_worktrees(&self.git().args(["worktree", "list", "--porcelain", "-z"]).run()?.stdout))
    }

    /// The tops of all registered worktrees, as far as they can be told without asking `git`.
    ///
    /// # Errors
    /// Where the registrations cannot be read.
    pub fn worktree_paths(&self) -> Result<Vec<PathBuf>> {
        let mut paths: Vec<PathBuf> =
            self.inner.main_repo().ok().and_then(|main| main.workdir().map(PathBuf::from)).into_iter().collect();
        for proxy in self.inner.worktrees().map_err(GitError::gix)? {
            paths.extend(proxy.base().ok());
        }
        Ok(paths.into_iter().map(|path| std::fs::canonicalize(&path).unwrap_or(path)).collect())
    }

    /// Makes the new branch `branch` at `baseline`, moves it on to `start`, and makes a worktree at `path` that has it
    /// checked out there. It is locked until [`Checkout::unlock`], so that no pruning elsewhere takes away what is being
    /// made.
    ///
    /// # Errors
    /// Where `git` refuses; where no worktree came of it, the branch is gone again too.
    pub fn add_worktree(&self, path: &Path, branch: &str, baseline: Oid, start: Oid) -> Result<Checkout> {
        // Left by one that was killed while it made this branch; where somebody holds it, `git` says so.
        let _ = self.release_branch(branch);
        let name = format!("refs/heads/{branch}");
        // Not by `worktree add -b`: that would start another process for it, which knows of no flushing.
        self.update_refs(&[RefChange::Create { name: name.clone(), new: baseline }])?;
        let moved = if start == baseline {
            Ok(())
        } else {
            self.update_refs(&[RefChange::Update { name: name.clone(), new: start, old: baseline }])
        };
        let at = if moved.is_ok() { start } else { baseline };
        // An interrupt on the terminal is for the drain to hear: half a worktree would have to be recovered by hand.
        let call = self.git().undisturbed().args(["worktree", "add", "-q", "--lock", "--reason", MAKING]);
        match moved.and_then(|()| call.arg(path).arg(branch).run()) {
            Ok(_) => Ok(self.checkout(path)),
            Err(error) => {
                if std::fs::symlink_metadata(path).is_err() {
                    let _ = self.update_refs(&[RefChange::Delete { name, old: at }]);
                }
                Err(error)
            }
        }
    }

    /// Takes away the lock of a branch that a killed `git` left; whether none is left.
    #[must_use]
    pub fn release_branch(&self, branch: &str) -> bool {
        self.release(&self.common_dir().join(format!("refs/heads/{branch}.lock")))
    }

    /// What `HEAD` is in `checkout`.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn head_of(&self, checkout: &Checkout) -> Result<Head> {
        // A worktree of this very repository is on a branch of it, nearly always; the rest is told by opening it.
        if self.backend == Backend::Files
            && let Ok(git_dir) = checkout.git_dir()
            && git_dir.starts_with(self.common_dir().join("worktrees"))
            && let Ok(text) = std::fs::read_to_string(git_dir.join("HEAD"))
            && let Some(name) = text.strip_prefix("ref: ").map(str::trim_end)
            && let Some(branch) = name.strip_prefix("refs/heads/")
            && let Some(id) = self.resolve(name)?
        {
            return Ok(Head::Branch(branch.to_owned(), id));
        }
        Self::at(&checkout.path)?.head()
    }

    /// The worktree at `path`, which need not be there.
    #[must_use]
    pub fn checkout(&self, path: &Path) -> Checkout {
        Checkout { path: path.to_owned(), pinned: None }
    }
}

impl Checkout {
    /// The same, with the Git directory that it was allocated with. Whoever works in it can make its `.git` lead to
    /// another one, the user's own, and what is done in it would be done there.
    #[must_use]
    pub fn pinned(self, git_dir: Option<&Path>) -> Self {
        Self { pinned: git_dir.map(Path::to_owned), ..self }
    }

    /// A call of `git` in it, which finds the repository from there where it has no Git directory of its own.
    #[must_use]
    pub fn git(&self) -> Git {
        let call = Git::new(&self.path);
        match &self.pinned {
            Some(git_dir) => call.env("GIT_DIR", git_dir).env("GIT_WORK_TREE", &self.path),
            None => call,
        }
    }

    /// Its top.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its Git directory, absolute and without links, as the `.git` file in it names it.
    ///
    /// # Errors
    /// Where it is no linked worktree, or its `.git` leads to another one than it must.
    pub fn git_dir(&self) -> Result<PathBuf> {
        let dot_git = self.path.join(".git");
        let text = std::fs::read(&dot_git).map_err(GitError::io(&dot_git))?;
        let named = text
            .strip_prefix(b"gitdir: ")
            .map(|rest| path_of(rest.trim_end_with(|c| c == '\n' || c == '\r')))
            .ok_or_else(|| GitError::Object(format!("{} names no Git directory", dot_git.display())))?;
        let named = self.path.join(named);
        let named = std::fs::canonicalize(&named).map_err(GitError::io(named))?;
        match &self.pinned {
            Some(own) if *own != named => {
                let (dot_git, named, own) = (dot_git.display(), named.display(), own.display());
                Err(GitError::Object(format!("{dot_git} leads to {named}; write `gitdir: {own}` into it")))
            }
            _ => Ok(named),
        }
    }

    /// Takes the lock of [`Repo::add_worktree`] away.
    ///
    /// # Errors
    /// Where the file cannot be removed.
    pub fn unlock(&self) -> Result<()> {
        // The file `locked` is all that `git worktree unlock` would remove (gitrepository-layout).
        let lock = self.git_dir()?.join("locked");
        match std::fs::remove_file(&lock) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(GitError::io(lock)(error)),
            _ => Ok(()),
        }
    }

    /// What is not committed in it: tracked changes and untracked files that nothing ignores, sorted.
    ///
    /// # Errors
    /// Where `git` cannot tell.
    pub fn dirty(&self) -> Result<Vec<BString>> {
        let call = self.git().args([
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignore-submodules=none",
            "--no-renames",
        ]);
        let output = call.run()?;
        let mut paths: Vec<BString> = output.stdout.split(|byte| *byte == 0).filter_map(status_path).collect();
        paths.sort();
        Ok(paths)
    }

    /// The first path in it at whose changes Git was told not to look (`git update-index --assume-unchanged`,
    /// `--skip-worktree`), while a file is there to have some.
    ///
    /// # Errors
    /// Where its index cannot be read.
    pub fn hidden(&self, repo: &Repo) -> Result<Option<BString>> {
        use gix::index::{File, decode, entry::Flags, entry::Mode};
        let index = self.git_dir()?.join("index");
        if std::fs::symlink_metadata(&index).is_err() {
            return Ok(None);
        }
        let index =
            File::at(index, repo.inner.object_hash(), true, decode::Options::default()).map_err(GitError::gix)?;
        // A folder that a sparse index leaves out as a whole: whatever is put into it Git looks at.
        let mut files = index.entries().iter().filter(|entry| entry.mode != Mode::DIR);
        let found = files.find(|entry| {
            let there = || std::fs::symlink_metadata(self.path.join(path_of(entry.path(&index)))).is_ok();
            entry.flags.contains(Flags::ASSUME_VALID) || (entry.flags.contains(Flags::SKIP_WORKTREE) && there())
        });
        Ok(found.map(|entry| entry.path(&index).to_owned()))
    }

    /// Brings index and files from the commit `old` to the commit `new` that `HEAD` is at already. What is not
    /// committed stays, or the whole is refused; doing it again changes nothing, and takes up what a `git` left that was
    /// killed on the way.
    ///
    /// # Errors
    /// Where a file that differs between the two has changes that are not committed.
    pub fn advance(&self, old: Oid, new: Oid) -> Result<()> {
        let forward =
            || self.git().args(["read-tree", "-m", "-u", &old.to_string(), &new.to_string()]).run().map(|_| ());
        let Err(error) = forward() else { return Ok(()) };
        if !self.release_locks() {
            return Err(error);
        }
        let Err(error) = forward() else { return Ok(()) };
        if self.half_way(old, new)? { self.finish_files(old, new) } else { Err(error) }
    }

    /// Takes away the locks that a killed `git` left in its Git directory; whether none is left.
    #[must_use]
    pub fn release_locks(&self) -> bool {
        let Ok(git_dir) = self.git_dir() else { return false };
        ["index.lock", "HEAD.lock"].iter().all(|name| locks::release(&git_dir.join(name), &[&self.path, &git_dir]))
    }

    /// Whether every file that differs between `old` and `new` is the one or the other, missing, or the beginning of the
    /// new one: what a `git` leaves that was killed while it went from `old` to `new`, and nobody else's work.
    fn half_way(&self, old: Oid, new: Oid) -> Result<bool> {
        let repo = self.repository()?;
        for change in repo.changes(old, new)? {
            let Ok(name) = change.path.to_str() else { return Ok(false) };
            let Some(blob) = repo.file(new, name)? else { return Ok(false) };
            let bytes = match std::fs::read(self.path.join(name)) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(GitError::io(self.path.join(name))(error)),
            };
            // As it would be committed, so that line endings and filters of the checkout change nothing.
            let call = self.git().args(["hash-object", "--stdin", "--path", name]).input(bytes.clone());
            let committed = call.run()?.line();
            let before = repo.entry(old, name)?.map(|entry| entry.id.to_string());
            if committed != blob.id.to_string() && Some(committed) != before && !blob.data.starts_with(&bytes) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The repository that it is a worktree of.
    fn repository(&self) -> Result<Repo> {
        self.git_dir()?;
        Repo::at(&self.path)
    }

    /// Puts the files that differ between `old` and `new` into index and checkout as `new` holds them, whatever they are.
    fn finish_files(&self, old: Oid, new: Oid) -> Result<()> {
        let repo = self.repository()?;
        let (mut info, mut names) = (Vec::new(), Vec::new());
        let listed = self.git().args(["ls-tree", "-r", "-z", &new.to_string()]).run()?.stdout;
        let changes = repo.changes(old, new)?;
        for line in listed.split(|byte| *byte == 0) {
            let Some(tab) = line.iter().position(|byte| *byte == b'\t') else { continue };
            let name = &line[tab + 1..];
            if changes.iter().any(|change| change.path == name) {
                info.extend_from_slice(line);
                names.extend_from_slice(name);
                info.push(0);
                names.push(0);
            }
        }
        self.git().args(["update-index", "-z", "--index-info"]).input(info).run()?;
        self.git().args(["checkout-index", "-f", "-u", "-z", "--stdin"]).input(names).run()?;
        Ok(())
    }
}

/// The worktrees in what `worktree list --porcelain -z` prints, in its order. Fields that are not known say nothing.
#[must_use]
pub fn parse_worktrees(listed: &[u8]) -> Vec<Worktree> {
    let mut found: Vec<Worktree> = Vec::new();
    for field in listed.split(|byte| *byte == 0) {
        let (key, value) = field.split_once_str(" ").unwrap_or((field, b""));
        match (key, found.last_mut()) {
            (b"worktree", _) => {
                found.push(Worktree { path: path_of(value), branch: None, locked: None, bare: false });
            }
            (b"branch", Some(last)) => last.branch = Some(value.to_str_lossy().into_owned()),
            (b"locked", Some(last)) => last.locked = Some(value.to_str_lossy().into_owned()),
            (b"bare", Some(last)) => last.bare = true,
            _ => {}
        }
    }
    found
}

/// The path in a field of `status --porcelain=v2 -z`; `None` where it names none.
#[must_use]
pub fn status_path(field: &[u8]) -> Option<BString> {
    // "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path", "! path"
    let before = match field.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' | b'!' => 1,
        _ => return None,
    };
    field.splitn(before + 1, |byte| *byte == b' ').nth(before).map(BString::from)
}

pub(super) fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn head_is_told_as_git_tells_it_and_of_the_repository_that_a_worktree_belongs_to() {
        let temp = tempfile::tempdir().unwrap();
        let git = |dir: &str, args: &[&str]| {
            let call = Git::new(temp.path().join(dir)).config("user.name=A").config("user.email=a@b.example");
            call.args(args).run().unwrap().line()
        };
        git("", &["init", "-q", "-b", "main", "repo"]);
        git("repo", &["commit", "-q", "--allow-empty", "-m", "one"]);
        git("repo", &["worktree", "add", "-q", "-b", "a/b", "../tree"]);
        git("tree", &["commit", "-q", "--allow-empty", "-m", "two"]);
        git("", &["clone", "-q", "--no-hardlinks", "repo", "clone"]);
        git("clone", &["worktree", "add", "-q", "-b", "a/b", "../cloned", "origin/main"]);
        let repo = Repo::at(&temp.path().join("repo")).unwrap();
        let head = |dir: &str| repo.head_of(&repo.checkout(&temp.path().join(dir)));
        let id = |dir: &str| git(dir, &["rev-parse", "HEAD"]).parse::<Oid>().unwrap();
        for (dir, branch) in [("repo", "main"), ("tree", "a/b"), ("cloned", "a/b")] {
            assert_eq!(head(dir).unwrap(), Head::Branch(branch.to_owned(), id(dir)), "{dir}");
        }
        git("tree", &["checkout", "-q", "--detach"]);
        assert_eq!(head("tree").unwrap(), Head::Detached(id("tree")));
        git("tree", &["checkout", "-q", "--orphan", "new"]);
        assert_eq!(head("tree").unwrap(), Head::Unborn("new".to_owned()));
        assert!(head("nowhere").is_err());
    }

    #[test]
    fn paths_are_read_whole_from_status_fields() {
        let field = b"1 .M N... 100644 100644 100644 aaa bbb a b.txt";
        assert_eq!(status_path(field).unwrap(), "a b.txt");
        assert_eq!(status_path(b"? left over.txt").unwrap(), "left over.txt");
        assert_eq!(status_path(b"u UU N... 1 2 3 4 a b c both.txt").unwrap(), "both.txt");
        assert_eq!(status_path(b"# branch.head main"), None);
        assert_eq!(status_path(b""), None);
    }
}
