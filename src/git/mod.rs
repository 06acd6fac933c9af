//! The door to Git. Reads, objects, ancestry and tree diffs happen in-process; references are written by one
//! `git update-ref` that is kept open, and `git` is spawned besides only for what it alone does right
//! (worktrees, status, patches, transport). Never knows what a task is.

mod ancestry;
mod command;
mod diff;
mod history;
mod hooked;
mod hooks_dir;
mod ident;
mod ignore;
mod index;
mod index_file;
mod notes;
mod objects;
mod patch;
mod refs;
mod registration;
mod remote;
mod repo;
mod revlist;
mod secret;
mod worktree;

use std::path::PathBuf;

pub use crate::oid::Oid;
pub use command::{Git, Output};
pub use diff::Change;
pub use history::{Author, Commit};
pub use hooks_dir::git_version;
pub use notes::NOTES_REF;
pub use objects::{Blob, Entry, EntryKind, NewCommit, shown};
pub use patch::Patch;
pub use refs::RefChange;
pub use registration::{Beside, Registration};
pub use remote::{Remote, RemoteUrls};
pub use repo::{Head, Repo};
pub use revlist::Revisions;
pub use secret::{has_credentials, without_secrets};
pub use worktree::{Checkout, MAKING, Worktree, parse_worktrees, status_path};

/// What went wrong at the door, told so that it reads after "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// The directory lies in no repository.
    #[error("{} is in no Git repository; run `git init` there, or name another directory", .0.display())]
    NotARepository(PathBuf),
    /// The repository has no checkout.
    #[error("{} is a bare repository; git devlyn needs a checkout: run it in a worktree (`git worktree add`)", .0.display())]
    Bare(PathBuf),
    /// The repository belongs to somebody else.
    #[error(
        "{} belongs to another user; if you trust it, run `git config --global --add safe.directory {}`",
        .0.display(), .0.display()
    )]
    Untrusted(PathBuf),
    /// The repository uses an extension that this program does not know.
    #[error("the repository uses the extension `extensions.{0}`, which git-devlyn does not know")]
    Extension(String),
    /// Nobody to name as the author of a commit.
    #[error("Git does not know who you are: {0}; run `git config user.name \"…\"` and `git config user.email \"…\"`")]
    Identity(String),
    /// A reference was not where it was expected, or cannot stand where it should.
    #[error("a reference was not moved: {0}")]
    Ref(String),
    /// An object that must be there is not, or is of another kind.
    #[error("{0}")]
    Object(String),
    /// `git` could not be started.
    #[error("git cannot be started: {0}")]
    Spawn(#[source] std::io::Error),
    /// `git` failed.
    #[error("`git {argv}` in {} failed ({status}): {stderr}", .dir.display())]
    Failed {
        /// What was asked of it.
        argv: String,
        /// Where.
        dir: PathBuf,
        /// Its exit status in words.
        status: String,
        /// The end of what it said.
        stderr: String,
    },
    /// A file or directory of the repository could not be read or flushed.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Anything else that the library inside says.
    #[error("{0}")]
    Gix(String),
}

impl GitError {
    /// With its causes: what the system said stands in the last of them.
    fn gix(error: impl std::error::Error) -> Self {
        let mut text = error.to_string();
        let mut cause = error.source();
        while let Some(why) = cause {
            let why_text = why.to_string();
            if !text.contains(&why_text) {
                text.push_str(": ");
                text.push_str(&why_text);
            }
            cause = why.source();
        }
        Self::Gix(text)
    }

    fn io(path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { path, source }
    }
}

/// What this module returns.
pub type Result<T, E = GitError> = std::result::Result<T, E>;
