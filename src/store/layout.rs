//! Where each state file is (formats, "Where state lives").

use std::path::{Path, PathBuf};

use crate::package::{Key, LoopId};

/// The places below one common Git directory.
#[derive(Debug, Clone)]
pub struct Layout {
    common: PathBuf,
}

/// The directory of one receipt.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ReceiptDir(PathBuf);

impl Layout {
    /// The places below `common`, which is absolute.
    #[must_use]
    pub fn new(common: impl Into<PathBuf>) -> Self {
        Self { common: common.into() }
    }

    /// The common Git directory itself.
    #[must_use]
    pub fn common(&self) -> &Path {
        &self.common
    }

    /// Where loops are on record.
    #[must_use]
    pub fn loops(&self) -> PathBuf {
        self.common.join("devlyn-loops")
    }

    /// The lock of a controller's lifetime.
    #[must_use]
    pub fn drain_lock(&self) -> PathBuf {
        self.loops().join("drain.lock")
    }

    /// The lock of short mutations.
    #[must_use]
    pub fn queue_lock(&self) -> PathBuf {
        self.loops().join("queue.lock")
    }

    /// The lock under which worktrees are made.
    #[must_use]
    pub fn worktree_lock(&self) -> PathBuf {
        self.loops().join("worktree.lock")
    }

    /// The loop's add record.
    #[must_use]
    pub fn record(&self, loop_id: &LoopId) -> PathBuf {
        self.loops().join(loop_id.as_str()).join("added.json")
    }

    /// The loop's last report.
    #[must_use]
    pub fn report(&self, loop_id: &LoopId) -> PathBuf {
        self.loops().join(loop_id.as_str()).join("drain-report.md")
    }

    /// Where tasks are on record.
    #[must_use]
    pub fn completions(&self) -> PathBuf {
        self.common.join("devlyn-completion")
    }

    /// The directory of the receipt `key`.
    #[must_use]
    pub fn receipt_dir(&self, key: &Key) -> ReceiptDir {
        ReceiptDir(self.completions().join(key.as_str()))
    }
}

impl ReceiptDir {
    /// The directory `path`.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self(path.into())
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.0
    }

    /// Its name: the key of the receipt.
    #[must_use]
    pub fn key(&self) -> String {
        self.0.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }

    /// The receipt.
    #[must_use]
    pub fn receipt(&self) -> PathBuf {
        self.0.join("receipt.json")
    }

    /// The lock that serialises work on it.
    #[must_use]
    pub fn lock(&self) -> PathBuf {
        self.0.join("lock")
    }

    /// What the executor is given.
    #[must_use]
    pub fn packet(&self) -> PathBuf {
        self.0.join("packet.json")
    }

    /// What the executor answers.
    #[must_use]
    pub fn submission(&self) -> PathBuf {
        self.0.join("submission.json")
    }

    /// The log of executions.
    #[must_use]
    pub fn executions(&self) -> PathBuf {
        self.0.join("executions.log")
    }

    /// The copies of the evidence.
    #[must_use]
    pub fn custody(&self) -> PathBuf {
        self.0.join("custody")
    }

    /// The list of the copies.
    #[must_use]
    pub fn manifest(&self) -> PathBuf {
        self.0.join("manifest.json")
    }

    /// The task's disposable directory.
    #[must_use]
    pub fn scratch(&self) -> PathBuf {
        self.0.join("scratch")
    }

    /// What is kept of a worktree that was removed.
    #[must_use]
    pub fn records(&self) -> PathBuf {
        self.0.join("records")
    }
}
