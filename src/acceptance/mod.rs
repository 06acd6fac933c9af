//! Evidence becomes a verdict: what is committed on the owned branch, what the declared commands did there, what the
//! guards and the reviews say of it. Nothing that an executor claims counts.
//!
//! It writes below `<worktree>/.devlyn/loop` only, and moves no reference.

mod candidate;
mod checks;
mod derive;
mod evidence;
mod guards;
mod judge;
mod reuse;
mod reviews;
mod run;
mod terms;
#[cfg(test)]
mod testing;

use std::path::{Path, PathBuf};

pub use derive::{Derived, derive, fail};
pub use run::{Ran, run};

use crate::git::GitError;
use crate::os::process::ProcessError;
use crate::store::StoreError;

/// Why there is no verdict. It is nobody's failure: the task waits until this is put right.
#[derive(Debug, thiserror::Error)]
pub enum AcceptanceError {
    /// A packet that cannot be relied on.
    #[error("the packet {}: {why}", .path.display())]
    Packet {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A contract that is not what it was, or cannot be read.
    #[error("{file} at the inputs {inputs}: {why}")]
    Contract {
        /// Which file.
        file: String,
        /// The commit that holds it.
        inputs: crate::git::Oid,
        /// What is wrong with it.
        why: String,
    },
    /// A worktree that is not the task's.
    #[error("the worktree {}: {why}", .path.display())]
    Worktree {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// A runner was asked for a candidate that cannot be checked.
    #[error("the candidate cannot be checked: {}", .0.join("; "))]
    Candidate(Vec<String>),
    /// There is nothing to derive a verdict from.
    #[error("there is no submission {}", .0.display())]
    NoSubmission(PathBuf),
    /// A file of evidence, or of an executor, failed.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A state file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A command could not be run to an end that means something.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

impl AcceptanceError {
    fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// What this module returns.
pub type Result<T, E = AcceptanceError> = std::result::Result<T, E>;

/// Some of `names` in one line: more than twenty are counted.
fn listed<T: AsRef<str>>(names: &[T]) -> String {
    const MOST: usize = 20;
    let shown = names.iter().take(MOST).map(AsRef::as_ref).collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(MOST) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
