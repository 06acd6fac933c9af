//! The durable state in the common Git directory: where each file is, how it is locked, and how it is written so
//! that a reader finds the old or the new one, whatever happens. Never knows what a task is for.

mod custody;
mod durable;
mod layout;
mod lock;
mod receipt;
mod record;
mod records;

use std::path::{Path, PathBuf};

pub use custody::{CustodyError, Evidence, FileRecord, Files, collect, present, set_aside, take, unchanged, verify};
pub use durable::{
    StateFile, append_line, is_temporary, is_there, make_dir, read_bytes, read_state, remove_file, sync_dir,
    write_bytes, write_state,
};
pub use layout::{Layout, ReceiptDir};
pub use lock::Lock;
pub use receipt::{
    Acceptance, Allocation, Cleanup, Delivery, DirectCheck, From, Mode, Queue, Receipt, RemoteUrl, Scratch, Verdict,
};
pub use record::Record;
pub use records::keep_records;

/// What went wrong with a state file; every variant names it.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// It could not be read, written or flushed.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// It holds something else than it must.
    #[error("{}: {why}", .path.display())]
    Invalid {
        /// Which.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Somebody else holds the lock.
    #[error("{} is held by another process", .0.display())]
    Held(PathBuf),
}

impl StoreError {
    pub(crate) fn io(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }

    pub(crate) fn invalid(path: &Path, why: impl std::fmt::Display) -> Self {
        Self::Invalid { path: path.to_owned(), why: why.to_string() }
    }
}

/// What this module returns.
pub type Result<T, E = StoreError> = std::result::Result<T, E>;
