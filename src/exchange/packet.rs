//! Everything that a fresh executor needs, and that a runner can check a candidate by.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::oid::Oid;
use crate::package::{Delivery, Identity};

/// The folder of a worktree that is evidence, and never committed.
pub const EVIDENCE: &str = ".devlyn";
/// The folder in it that drain and runner write to.
pub const LOOP_EVIDENCE: &str = ".devlyn/loop";

/// A file of the worktree, and what it held when it was committed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Named {
    /// Where it is, absolute.
    pub path: PathBuf,
    /// The SHA-256 of its committed bytes.
    pub sha256: String,
}

/// An accepted prerequisite.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    /// Its identity.
    pub task: Identity,
    /// Its receipt, absolute.
    pub receipt: PathBuf,
    /// Its accepted source.
    pub source_sha: Oid,
}

/// The packet (formats, "Packet, submission, reviews, acceptance").
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Packet {
    /// Always 1.
    pub schema_version: u64,
    /// The task.
    pub task: Identity,
    /// Its title.
    pub title: String,
    /// What it delivers.
    pub kind: String,
    /// The owned worktree, absolute.
    pub worktree: PathBuf,
    /// The owned branch.
    pub branch: String,
    /// The receipt, absolute.
    pub receipt: PathBuf,
    /// The disposable directory, absolute.
    pub scratch: PathBuf,
    /// The commit that the branch was created at.
    pub allocation_base: Oid,
    /// The commit that the executor starts from.
    pub inputs_sha: Oid,
    /// The task's contract.
    pub contract: Named,
    /// The task's expected acceptance.
    pub expected: Named,
    /// The loop's meta-prompt.
    pub meta: Named,
    /// The requirements of the contract.
    pub requirements: Vec<String>,
    /// Those of them that need review evidence.
    pub review_requirements: Vec<String>,
    /// The constraints that all tasks of the loop share.
    pub shared_constraints: String,
    /// The accepted prerequisites.
    pub dependencies: Vec<Dependency>,
    /// The instruction files at the inputs commit.
    pub methodology: Vec<Named>,
    /// How the result is delivered.
    pub delivery: Delivery,
    /// Where evidence goes, absolute; Git ignores it.
    pub evidence_dir: PathBuf,
    /// What runs the declared checks on the committed candidate.
    pub runner: Vec<String>,
    /// Where the submission goes, absolute.
    pub submission: PathBuf,
    /// What the executor owes.
    pub obligations: Vec<String>,
}
