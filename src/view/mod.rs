//! What is known of the work, read from captures, queue files, receipts and references, and held against each other.
//!
//! Reading only: it never writes a file, a reference or an object. Everything here can be read again at any moment.

mod instructions;
mod loops;
mod package;
mod receipts;
mod start;
mod tasks;

pub use instructions::{INSTRUCTIONS, drifted};
pub use loops::{Captures, Loop, Queue, unix_lines};
pub use package::CheckoutSource;
pub(crate) use receipts::attempt;
pub use receipts::{Held, checkout_of};
pub use start::{Start, Starts};
pub use tasks::{Outcome, Stage, State, TaskView, View};

use crate::git::GitError;
use crate::store::StoreError;

/// Why the queue is not known. All of it stops until this is put right.
#[derive(Debug, thiserror::Error)]
pub enum ViewError {
    /// A queue file or capture that cannot be relied on.
    #[error("{place}: {why}")]
    Queue {
        /// The file or loop.
        place: String,
        /// What is wrong with it.
        why: String,
    },
    /// A state file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What this module returns.
pub type Result<T, E = ViewError> = std::result::Result<T, E>;
