//! What the repository has on file of its linked worktrees, whole or half made, read without asking `git`, which does
//! not show the half-made ones. And what a tree holds that a commit does not.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use gix::bstr::{BString, ByteSlice};

use super::worktree::{Worktree, path_of, status_path};
use super::{Git, GitError, Oid, Repo, Result};

/// A worktree's own directory below the common one, `worktrees/<name>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registration {
    /// That directory.
    pub git_dir: PathBuf,
    /// The top of the worktree, as it is on file; none where its making did not come so far.
    pub worktree: Option<PathBuf>,
    /// Why it is locked, where it is.
    pub locked: Option<String>,
}

/// What a tree holds beside the files of a commit.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Beside {
    /// Whether its files were never written to their end: Git had not written its index.
    pub half_made: bool,
    /// Every path that is not as the commit has it, sorted; a file that is missing is none.
    pub paths: Vec<BString>,
}

impl Repo {
    /// Everything that stands in the place of linked worktrees, sorted.
    ///
    /// # Errors
    /// Where it cannot be listed.
    pub fn registrations(&self) -> Result<Vec<Registration>> {
        let folder = self.common_dir().join("worktrees");
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(GitError::io(&folder)(error)),
        };
        let mut found = Vec::new();
        for entry in entries {
            let git_dir = entry.map_err(GitError::io(&folder))?.path();
            if !git_dir.is_dir() {
                continue;
            }
            let read = |name: &str| fs::read(git_dir.join(name)).ok();
            let line = |bytes: Vec<u8>| path_of(bytes.trim_end_with(|c| c == '\n' || c == '\r'));
            let worktree = read("gitdir").filter(|bytes| !bytes.is_empty()).map(line);
            let worktree = worktree.and_then(|dot_git| git_dir.join(dot_git).parent().map(Path::to_owned));
            let locked = read("locked").map(|why| why.to_str_lossy().trim_end().to_owned());
            found.push(Registration { git_dir, worktree, locked });
        }
        found.sort_by(|a, b| a.git_dir.cmp(&b.git_dir));
        Ok(found)
    }
}

impl Repo {
    /// The worktrees as their files say, the main one first.
    pub(super) fn worktrees_on_file(&self, registrations: &[Registration]) -> Vec<Worktree> {
        let main =
            Worktree { path: self.main_work_dir(), branch: branch_in(self.common_dir()), locked: None, bare: false };
        let linked = registrations.iter().filter_map(|found| {
            let (path, locked) = (found.worktree.clone()?, found.locked.clone());
            Some(Worktree { path, branch: found.branch(), locked, bare: false })
        });
        std::iter::once(main).chain(linked).collect()
    }
}

fn branch_in(git_dir: &Path) -> Option<String> {
    let head = fs::read(git_dir.join("HEAD")).ok()?;
    Some(head.strip_prefix(b"ref: ")?.to_str().ok()?.trim_end().to_owned())
}

impl Registration {
    /// Whether Git can work with it: there is a `HEAD` that says where it stands, and a way to the common directory.
    /// Versions of Git differ in which of the two they write first.
    #[must_use]
    pub fn has_head(&self) -> bool {
        ["HEAD", "commondir"].iter().all(|name| fs::metadata(self.git_dir.join(name)).is_ok_and(|meta| meta.len() > 0))
    }

    /// Whether `git` was cut off while it wrote the file that leads from here to the common directory. As long as that is
    /// so every `git worktree` command of the repository fails.
    #[must_use]
    pub fn is_cut_off(&self) -> bool {
        fs::metadata(self.git_dir.join("commondir")).is_ok_and(|meta| meta.len() == 0)
    }

    /// The full name of the branch that its `HEAD` is on.
    #[must_use]
    pub fn branch(&self) -> Option<String> {
        branch_in(&self.git_dir)
    }

    /// A call of `git` on the tree at `tree`, also where the `.git` file that leads from there to here is gone.
    fn git(&self, tree: &Path) -> Git {
        Git::new(tree).env("GIT_DIR", &self.git_dir).env("GIT_WORK_TREE", tree)
    }

    /// Where its `HEAD` is.
    ///
    /// # Errors
    /// Where `git` cannot be started.
    pub fn head(&self, tree: &Path) -> Result<Option<Oid>> {
        let output = self.git(tree).args(["rev-parse", "-q", "--verify", "HEAD^{commit}"]).output()?;
        Ok(if output.code == Some(0) { output.line().parse().ok() } else { None })
    }

    /// What the tree at `tree` holds beside the files of the commit `at`, ignored and staged files too. Where Git never
    /// came to write its index, a file that is a beginning of what the commit has counts as the commit's. Changes
    /// nothing.
    ///
    /// # Errors
    /// Where `git` cannot tell.
    pub fn beside(&self, repo: &Repo, tree: &Path, at: Oid) -> Result<Beside> {
        let half_made = fs::symlink_metadata(self.git_dir.join("index")).map_or(true, |meta| meta.len() == 0);
        let aside = tempfile::tempdir().map_err(GitError::io(std::env::temp_dir()))?;
        // Held against an index of our own, so that nothing that the worktree's own one says is believed.
        let index = aside.path().join("index");
        self.git(tree).env("GIT_INDEX_FILE", &index).args(["read-tree", &at.to_string()]).run()?;
        let mut paths = self.differing(tree, Some(&index))?;
        if half_made {
            let mut kept = BTreeSet::new();
            for path in paths {
                if !begins_as(repo, tree, at, &path)? {
                    kept.insert(path);
                }
            }
            paths = kept;
        } else {
            paths.extend(self.differing(tree, None)?);
        }
        Ok(Beside { half_made, paths: paths.into_iter().collect() })
    }

    fn differing(&self, tree: &Path, index: Option<&Path>) -> Result<BTreeSet<BString>> {
        let mut call = self.git(tree).args([
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=all",
            "--ignored=matching",
            "--ignore-submodules=none",
            "--no-renames",
        ]);
        if let Some(index) = index {
            call = call.env("GIT_INDEX_FILE", index);
        }
        let output = call.run()?;
        let fields = output.stdout.split(|byte| *byte == 0);
        // "1 .D …" is a tracked file that is not there.
        Ok(fields.filter(|field| !field.starts_with(b"1 .D ")).filter_map(status_path).collect())
    }
}

/// Whether the file at `path` below `tree` is the beginning of what the commit `at` has there.
fn begins_as(repo: &Repo, tree: &Path, at: Oid, path: &BString) -> Result<bool> {
    let place = tree.join(path_of(path));
    let Ok(path) = path.to_str() else { return Ok(false) };
    let Some(blob) = repo.file(at, path)? else { return Ok(false) };
    match fs::symlink_metadata(&place) {
        Ok(meta) if meta.is_file() && meta.len() <= blob.data.len() as u64 => {}
        _ => return Ok(false),
    }
    let bytes = fs::read(&place).map_err(GitError::io(&place))?;
    Ok(blob.data.starts_with(&bytes))
}
