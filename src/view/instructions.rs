//! Whether a commit holds the instruction files of a checkout, so that whoever starts there works under them.

use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use super::Result;
use crate::git::{EntryKind, GitError, Oid, Repo};

/// The files that tell an agent how to work here.
pub const INSTRUCTIONS: [&str; 2] = ["CLAUDE.md", "AGENTS.md"];

/// The first instruction file that the checkout of `repo` and `commit` do not hold alike, compared as `git status`
/// would: what a checkout's filters change is no difference.
///
/// # Errors
/// Where one of them cannot be read.
pub fn drifted(repo: &Repo, commit: Oid) -> Result<Option<&'static str>> {
    for name in INSTRUCTIONS {
        if !alike(repo, commit, name)? {
            return Ok(Some(name));
        }
    }
    Ok(None)
}

fn alike(repo: &Repo, commit: Oid, name: &str) -> Result<bool> {
    let committed = repo.entry(commit, name)?;
    let path = repo.work_dir().join(name);
    let meta = match std::fs::symlink_metadata(&path) {
        Ok(meta) => meta,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Ok(committed.is_none() || is_sparse(repo, name)?);
        }
        Err(source) => return Err(GitError::Io { path, source }.into()),
    };
    let Some(committed) = committed else { return Ok(false) };
    if meta.file_type().is_symlink() {
        let target = std::fs::read_link(&path).map_err(|source| GitError::Io { path, source })?;
        return Ok(committed.kind == EntryKind::Link && repo.blob_id(target.as_os_str().as_bytes())? == committed.id);
    }
    if !meta.is_file() || committed.kind == EntryKind::Link {
        return Ok(false);
    }
    let bytes = std::fs::read(&path).map_err(|source| GitError::Io { path: path.clone(), source })?;
    Ok(repo.blob_id(&bytes)? == committed.id || filtered_id(repo, name, &path)? == committed.id)
}

/// The id that the file would have once the checkout's filters are undone.
fn filtered_id(repo: &Repo, name: &str, path: &Path) -> Result<Oid> {
    let output = repo.git().args(["hash-object", "--path", name, "--"]).arg(path).run()?;
    Ok(output.line().parse().map_err(GitError::Object)?)
}

/// Whether the file is absent because this checkout is sparse.
fn is_sparse(repo: &Repo, name: &str) -> Result<bool> {
    let output = repo.git().args(["ls-files", "-t", "--", name]).run()?;
    Ok(output.stdout.starts_with(b"S "))
}
