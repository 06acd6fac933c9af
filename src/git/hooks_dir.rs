//! Where Git looks for hooks.

use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;

use super::{Git, GitError, Repo, Result};

impl Repo {
    /// The directory that Git takes hooks from: `core.hooksPath`, else `hooks/` of the common Git directory, which all
    /// worktrees share. It need not be there.
    #[must_use]
    pub fn hooks_dir(&self) -> PathBuf {
        match self.configured_hooks_dir() {
            // Hooks run at the top of the worktree, in a bare repository in its Git directory.
            Some(path) => self.work_dir().join(path),
            None => self.common_dir().join("hooks"),
        }
    }

    /// What `core.hooksPath` says, where it says anything.
    #[must_use]
    pub fn configured_hooks_dir(&self) -> Option<PathBuf> {
        let path = self.inner.config_snapshot().trusted_path("core.hooksPath").ok().flatten();
        path.filter(|path| !path.as_os_str().is_empty())
    }

    /// Whether the repository's own configuration, and not only the user's, has `key`.
    #[must_use]
    pub fn config_here(&self, key: &str) -> bool {
        let own = |meta: &gix::config::file::Metadata| meta.source == gix::config::Source::Local;
        self.inner.config_snapshot().plumbing().strings_filter(key, own).is_some()
    }

    /// All values of `key` in the configuration.
    #[must_use]
    pub fn config_values(&self, key: &str) -> Vec<String> {
        let values = self.inner.config_snapshot().plumbing().strings(key).unwrap_or_default();
        values.iter().map(|value| value.to_str_lossy().into_owned()).collect()
    }
}

/// The version of the `git` on `PATH`: its first two numbers.
///
/// # Errors
/// Where it cannot be started, or says no version.
pub fn git_version(dir: &Path) -> Result<(u32, u32)> {
    let said = Git::new(dir).arg("version").run()?.line();
    let mut numbers = said.trim_start_matches("git version ").split('.').map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => Ok((major, minor)),
        _ => Err(GitError::Object(format!("`git version` said {said:?}"))),
    }
}
