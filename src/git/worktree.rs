//! Linked worktrees: made, listed, looked at and brought from one commit to the next by `git` itself, so that
//! filters, hooks and sparse checkouts behave as their user expects.

use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};

use super::{Git, GitError, Head, Oid, Repo, Result};

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
}

impl Repo {
    /// Every registered worktree, the main one first.
    ///
    /// # Errors
    /// Where `git` cannot list them.
    pub fn worktrees(&self) -> Result<Vec<Worktree>> {
        let output = self.git().args(["worktree", "list", "--porcelain", "-z"]).run()?;
        let mut found: Vec<Worktree> = Vec::new();
        for field in output.stdout.split(|byte| *byte == 0) {
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
        Ok(found)
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

    /// Makes the new branch `branch` at `start` and a worktree at `path` that has it checked out. It is locked until
    /// [`Checkout::unlock`], so that no pruning elsewhere takes away what is being made.
    ///
    /// # Errors
    /// Where `git` refuses.
    pub fn add_worktree(&self, path: &Path, branch: &str, start: Oid) -> Result<Checkout> {
        self.git()
            .config("core.fsync=reference")
            .args([
                "worktree",
                "add",
                "-q",
                "--no-track",
                "--lock",
                "--reason",
                "git-devlyn is making it",
                "-b",
                branch,
            ])
            .arg(path)
            .arg(start.to_string())
            .run()?;
        Ok(self.checkout(path))
    }

    /// The worktree at `path`, which need not be there.
    #[must_use]
    pub fn checkout(&self, path: &Path) -> Checkout {
        Checkout { path: path.to_owned() }
    }
}

impl Checkout {
    /// A call of `git` in it, which finds the repository from there.
    #[must_use]
    pub fn git(&self) -> Git {
        Git::new(&self.path)
    }

    /// Its top.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Its Git directory, absolute and without links, as the `.git` file in it names it.
    ///
    /// # Errors
    /// Where it is no linked worktree.
    pub fn git_dir(&self) -> Result<PathBuf> {
        let dot_git = self.path.join(".git");
        let text = std::fs::read(&dot_git).map_err(GitError::io(&dot_git))?;
        let named = text
            .strip_prefix(b"gitdir: ")
            .map(|rest| path_of(rest.trim_end_with(|c| c == '\n' || c == '\r')))
            .ok_or_else(|| GitError::Object(format!("{} names no Git directory", dot_git.display())))?;
        let named = self.path.join(named);
        std::fs::canonicalize(&named).map_err(GitError::io(named))
    }

    /// What `HEAD` is in it.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn head(&self) -> Result<Head> {
        Repo::at(&self.path)?.head()
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

    /// Brings index and files from the commit `old` to the commit `new` that `HEAD` is at already. What is not
    /// committed stays, or the whole is refused; doing it again changes nothing.
    ///
    /// # Errors
    /// Where a file that differs between the two has changes that are not committed.
    pub fn advance(&self, old: Oid, new: Oid) -> Result<()> {
        self.git().args(["read-tree", "-m", "-u", &old.to_string(), &new.to_string()]).run()?;
        Ok(())
    }
}

/// The path in a field of `status --porcelain=v2 -z`.
fn status_path(field: &[u8]) -> Option<BString> {
    // "1 XY sub mH mI mW hH hI path", "u XY sub m1 m2 m3 mW h1 h2 h3 path", "? path"
    let before = match field.first()? {
        b'1' => 8,
        b'u' => 10,
        b'?' => 1,
        _ => return None,
    };
    field.splitn(before + 1, |byte| *byte == b' ').nth(before).map(BString::from)
}

fn path_of(bytes: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt;
    PathBuf::from(std::ffi::OsStr::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::status_path;

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
