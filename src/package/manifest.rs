//! The manifest: the order of the tasks, what each waits for, and how the loop is delivered.
//!
//! Never says where a task stands; that is the queue's.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{LoopId, TaskId};

/// A manifest that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The loop.
    pub loop_id: LoopId,
    /// The branch that the work is for, without `refs/heads/`.
    pub base_ref: String,
    /// The commit that the plan was made against, 40 or 64 hex digits.
    pub base_sha: String,
    /// How results leave the repository.
    pub delivery: Delivery,
    /// The tasks, each after all it depends on.
    pub tasks: Vec<ManifestTask>,
    /// The last task, which depends on every other and checks the assembled product.
    pub integration_task_id: TaskId,
}

/// A task as the manifest has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestTask {
    /// The task.
    pub id: TaskId,
    /// The earlier tasks that must be accepted before it.
    pub depends_on: Vec<TaskId>,
}

/// How the results of a loop leave the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// A pull request that is merged when its checks pass.
    Auto,
    /// A pull request that a person merges.
    Pr,
    /// Nothing leaves.
    LocalOnly,
}

impl Delivery {
    /// As it is written in the manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Pr => "pr",
            Self::LocalOnly => "local-only",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
