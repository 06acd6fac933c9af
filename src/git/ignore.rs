//! Whether a folder at the top of a checkout is ignored, or all that is put into it; judged from a commit and not from a
//! checkout.

use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString};
use gix::glob::pattern::Case;

use super::{GitError, Oid, Repo, Result};

/// A name that no list of what is ignored has.
const ANY: &str = "6a09e667-f3bc-c908-b2fb-1366ea957d3e";

impl Repo {
    /// Whether the folder `name` at the root would be ignored in a checkout of `commit`: by the `.gitignore` that
    /// the commit holds, or by the repository's `info/exclude`.
    ///
    /// # Errors
    /// Where the commit cannot be read.
    pub fn ignores_folder(&self, commit: Oid, name: &str) -> Result<bool> {
        let rules = self.file(commit, ".gitignore")?.map(|blob| blob.data);
        self.ignored(name, &[self.common_dir().join("info/exclude")], rules)
    }

    /// Whether the folder `name` at the root is ignored here: by the `.gitignore` that lies at the top of this
    /// worktree, or by the repository's `info/exclude`.
    ///
    /// # Errors
    /// Where a line of them cannot be understood.
    pub fn ignores_folder_here(&self, name: &str) -> Result<bool> {
        let rules = if self.is_bare() { None } else { std::fs::read(self.work_dir().join(".gitignore")).ok() };
        self.ignored(name, &[self.common_dir().join("info/exclude")], rules)
    }

    /// As [`Repo::ignores_folder`], and also by the user's own `core.excludesFile`.
    ///
    /// # Errors
    /// Where the commit or tree cannot be read.
    pub fn ignores_folder_for_user(&self, at: Oid, name: &str) -> Result<bool> {
        let mut files: Vec<PathBuf> = self.user_excludes().into_iter().collect();
        files.push(self.common_dir().join("info/exclude"));
        self.ignored(name, &files, self.file(at, ".gitignore")?.map(|blob| blob.data))
    }

    /// The user's own list of what is ignored everywhere.
    fn user_excludes(&self) -> Option<PathBuf> {
        if let Ok(Some(path)) = self.inner.config_snapshot().trusted_path("core.excludesFile") {
            return Some(path);
        }
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
        Some(config.join("git/ignore"))
    }

    /// Whether the folder is ignored by one of `files`, the later before the earlier, or by `rules` before all.
    fn ignored(&self, name: &str, files: &[PathBuf], rules: Option<Vec<u8>>) -> Result<bool> {
        let mut search = gix::ignore::Search::default();
        let mut add = |bytes: &[u8], source: &Path| {
            search
                .add_patterns_buffer(bytes, source, None, gix::ignore::search::Ignore::default())
                .map_err(GitError::gix)
        };
        for file in files {
            if let Ok(bytes) = std::fs::read(file) {
                add(&bytes, file)?;
            }
        }
        if let Some(rules) = rules {
            add(&rules, Path::new(".gitignore"))?;
        }
        let case = if self.config_is_true("core.ignoreCase") { Case::Fold } else { Case::Sensitive };
        let matches = |path: &str, folder: bool| {
            let path = BString::from(path);
            let found = search.pattern_matching_relative_path(BStr::new(&path), Some(folder), case);
            found.is_some_and(|found| !found.pattern.is_negative())
        };
        // `folder/*` leaves the folder itself and ignores whatever is put into it.
        let whatever = format!("{name}/{ANY}");
        Ok(matches(name, true) || (matches(&whatever, true) && matches(&whatever, false)))
    }
}
