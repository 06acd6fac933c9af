//! One task's life, from allocation to cleanup. Each step reads what is on disk, does one thing, and leaves what names
//! the next step; each is idempotent and checks its precondition again under the lock that guards it.

mod accept;
mod allocate;
mod attach;
mod cleanup;
mod complete;
mod deliver;
mod execute;
mod inputs;
pub mod leftover;
mod packet;
mod policy;
mod reconcile;
mod recover;
mod scratch;
mod summary;
mod terminal;

pub use accept::{Accepted, accept, bind};
pub use allocate::{Allocated, Request, Where, allocate, prospective};
pub use attach::{Attached, attach, attach_to};
pub use cleanup::prune_empty;
pub use complete::{Completed, Completion, complete, complete_locked, resume_line};
pub use execute::{Ran, execute};
pub use inputs::{commit_inputs, make_inputs};
pub use packet::{placed, write_packet};
pub use policy::{base_is_default, merge_commit};
pub use reconcile::Reconciled;
pub use recover::{Holds, Recovered, recover};
pub use scratch::{ScratchCleaned, clean_scratch};
pub use terminal::{check_out, commit_terminal, first_reason, terminal_fault};

use crate::acceptance::AcceptanceError;
use crate::forge::ForgeError;
use crate::git::GitError;
use crate::os::process::ProcessError;
use crate::store::{CustodyError, StoreError};
use crate::view::ViewError;

/// Why a step was not taken, or not to its end. What was durable before is still so.
#[derive(Debug, thiserror::Error)]
pub enum TaskError {
    /// Something speaks against it; nothing was changed.
    #[error("{0}")]
    Refused(String),
    /// A state file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Evidence or custody is not what it must be.
    #[error(transparent)]
    Custody(#[from] CustodyError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The host that merges, or the way to it, failed.
    #[error(transparent)]
    Forge(#[from] ForgeError),
    /// The queue is not known.
    #[error(transparent)]
    View(#[from] ViewError),
    /// A candidate could not be judged.
    #[error(transparent)]
    Acceptance(#[from] AcceptanceError),
    /// A program could not be watched.
    #[error(transparent)]
    Process(#[from] ProcessError),
}

/// What this module returns.
pub type Result<T, E = TaskError> = std::result::Result<T, E>;

fn refuse<T>(why: impl Into<String>) -> Result<T> {
    Err(TaskError::Refused(why.into()))
}
