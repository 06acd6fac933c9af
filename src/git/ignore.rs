//! Whether a folder at the top of a checkout is ignored, judged from a commit and not from a checkout.

use gix::bstr::{BStr, BString};
use gix::glob::pattern::Case;

use super::{GitError, Oid, Repo, Result};

impl Repo {
    /// Whether the folder `name` at the root would be ignored in a checkout of `commit`: by the `.gitignore` that
    /// the commit holds, or by the repository's `info/exclude`.
    ///
    /// # Errors
    /// Where the commit cannot be read.
    pub fn ignores_folder(&self, commit: Oid, name: &str) -> Result<bool> {
        let mut search = gix::ignore::Search::default();
        let exclude = self.common_dir().join("info/exclude");
        if let Ok(bytes) = std::fs::read(&exclude) {
            search
                .add_patterns_buffer(&bytes, exclude, None, gix::ignore::search::Ignore::default())
                .map_err(GitError::gix)?;
        }
        if let Some(blob) = self.file(commit, ".gitignore")? {
            search
                .add_patterns_buffer(&blob.data, ".gitignore", None, gix::ignore::search::Ignore::default())
                .map_err(GitError::gix)?;
        }
        let case = if self.config_is_true("core.ignoreCase") { Case::Fold } else { Case::Sensitive };
        let path = BString::from(name);
        let found = search.pattern_matching_relative_path(BStr::new(&path), Some(true), case);
        Ok(found.is_some_and(|found| !found.pattern.is_negative()))
    }
}
