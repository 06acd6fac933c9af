//! What was asked: the files of a package, read into values, with every fault and its place.
//!
//! Pure: it never reads a file or a repository; what it needs to know of them comes in as values.

mod contract;
mod diagnostics;
mod expected;
mod id;
mod manifest;
mod meta;
mod pattern;

pub use contract::Contract;
pub use diagnostics::Fault;
pub use expected::{CommandSpec, CommandWords, Expected, ForbiddenPattern, Severity};
pub use id::{Identity, InvalidId, Key, LoopId, TaskId, hex, sha256_hex};
pub use manifest::{Delivery, Manifest, ManifestTask};
pub use meta::Meta;
pub use pattern::{Pattern, PatternError};

/// What stands at a path of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// Nothing.
    Missing,
    /// A file with these bytes.
    Bytes(Vec<u8>),
    /// Something that is not read: the text says what it is ("a directory", "a FIFO", "larger than 16 MiB").
    Unreadable(String),
}

/// Where a package's files come from: a checkout, a commit, an index.
pub trait Source {
    /// What stands at `path`, relative to the repository's root.
    fn file(&self, path: &str) -> FileState;

    /// Whether `id`, 40 or 64 hex digits, is a commit of this repository.
    fn is_commit(&self, id: &str) -> bool;
}

/// A package without a fault.
#[derive(Debug, Clone)]
pub struct Package {
    /// The loop.
    pub loop_id: LoopId,
    /// `meta.md`.
    pub meta: Meta,
    /// The tasks in manifest order.
    pub tasks: Vec<TaskPackage>,
    /// Every file of the package, as [`Package::paths`] lists them.
    pub files: Vec<String>,
}

/// One task of a package.
#[derive(Debug, Clone)]
pub struct TaskPackage {
    /// The task.
    pub id: TaskId,
    /// `spec.md`.
    pub contract: Contract,
    /// `spec.expected.json`.
    pub expected: Expected,
}
