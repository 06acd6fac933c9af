//! What a commit may not do, for everyone who commits to the repository: the rules H1 to H8, the hooks of Git that
//! hold commits against them, and how those hooks are installed. Never decides about a task.

mod chain;
mod commit;
mod facts;
mod init;
mod judge;
mod merge;
mod push;
mod rules;
mod shims;
mod transaction;
mod verify;
mod violation;

pub use chain::{Chained, run_local};
pub use commit::{CommitCall, judge_commit};
pub use init::{Init, InitReport, Step, init};
pub use push::{judge_push, judge_received, judge_update};
pub use transaction::{concerns, judge_transaction};
pub use verify::{Verified, verify};
pub use violation::{Rule, Violation};

use crate::git::GitError;
use crate::store::StoreError;

/// Why nothing could be judged or installed; it reads after "failed to …".
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// Git could not answer.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A state file could not be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What Git hands to a hook is not what its manual says.
    #[error("{0}")]
    Input(String),
    /// A file of the hooks directory, or beside it.
    #[error("{}: {source}", .path.display())]
    Io {
        /// Which.
        path: std::path::PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl HookError {
    fn io(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { path, source }
    }
}

/// What this module returns.
pub type Result<T, E = HookError> = std::result::Result<T, E>;

/// The hooks that git-devlyn knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Event {
    /// Before `git commit` makes a commit.
    PreCommit,
    /// Before `git merge` makes a commit.
    PreMergeCommit,
    /// Before `git am` makes a commit.
    PreApplypatch,
    /// Before `git cherry-pick`, `git revert` and `git rebase` make a commit, which ask no other hook.
    PrepareCommitMsg,
    /// Before anything is pushed.
    PrePush,
    /// Before a server takes a push.
    PreReceive,
    /// Before a server moves one reference.
    Update,
    /// While references change.
    ReferenceTransaction,
}

impl Event {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::PreCommit,
        Self::PreMergeCommit,
        Self::PreApplypatch,
        Self::PrepareCommitMsg,
        Self::PrePush,
        Self::PreReceive,
        Self::Update,
        Self::ReferenceTransaction,
    ];

    /// The name that Git gives it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::PreCommit => "pre-commit",
            Self::PreMergeCommit => "pre-merge-commit",
            Self::PreApplypatch => "pre-applypatch",
            Self::PrepareCommitMsg => "prepare-commit-msg",
            Self::PrePush => "pre-push",
            Self::PreReceive => "pre-receive",
            Self::Update => "update",
            Self::ReferenceTransaction => "reference-transaction",
        }
    }

    /// The hook with that name.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|event| event.name() == name)
    }

    /// Whether Git says more on its standard input.
    #[must_use]
    pub fn has_input(self) -> bool {
        match self {
            Self::PrePush | Self::PreReceive | Self::ReferenceTransaction => true,
            Self::PreCommit | Self::PreMergeCommit | Self::PreApplypatch | Self::PrepareCommitMsg | Self::Update => {
                false
            }
        }
    }
}
