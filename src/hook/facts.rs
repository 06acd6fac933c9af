//! What the rules are judged on: a commit reduced to what they ask about, as plain values.

use std::collections::BTreeMap;

use crate::git::{EntryKind, Oid};
use crate::package::{Identity, LoopId};
use crate::store::Verdict;

/// When a commit is judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum When {
    /// Before it is made.
    Now,
    /// When it is published or looked at; it may be older than what this repository knows.
    Later,
}

/// A file as one side has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) kind: EntryKind,
    pub(super) id: Oid,
}

/// A queue file as one side has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct QueueVersion {
    pub(super) kind: EntryKind,
    pub(super) data: Vec<u8>,
}

/// A queue file that differs from a parent's.
#[derive(Debug)]
pub(super) struct QueueChange {
    /// One for each parent; one that is empty for a commit without parents.
    pub(super) parents: Vec<Option<QueueVersion>>,
    pub(super) new: Option<QueueVersion>,
    /// As the capture of the loop holds it.
    pub(super) captured: Option<Vec<u8>>,
}

/// A file below a loop's directory, its queue file aside, that differs from every parent's.
#[derive(Debug)]
pub(super) struct FileChange {
    /// From the root, with everything that is no text made visible.
    pub(super) path: String,
    pub(super) new: Option<Version>,
    /// As the capture of the loop holds it.
    pub(super) captured: Option<Version>,
    /// Whether this is a draft from before the capture: no parent is as captured, and the history ends as captured.
    pub(super) draft: bool,
}

/// What changes below `docs/specs/<loop>/`.
#[derive(Debug)]
pub(super) struct LoopChange {
    pub(super) loop_id: LoopId,
    pub(super) queue: Option<QueueChange>,
    pub(super) files: Vec<FileChange>,
}

/// What the receipt of a task says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Proof {
    /// The receipt with this key, and its result where it has one.
    Receipt(String, Option<Verdict>),
    /// There is one that cannot be read, and why.
    Unreadable(String),
}

/// A commit, reduced to what the rules ask about.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) when: When,
    /// Whether it has more than one parent.
    pub(super) merge: bool,
    /// A path at or below `.devlyn/` that it holds.
    pub(super) inside: Option<String>,
    /// Whether `.devlyn/` is not ignored after it although there is a loop.
    pub(super) exposed: bool,
    /// The loops whose directory changes.
    pub(super) loops: Vec<LoopChange>,
    /// Whether the legacy queue differs from every parent's.
    pub(super) legacy: bool,
    /// For each queue file that sees the legal transition: a path that changes besides.
    pub(super) besides: BTreeMap<LoopId, String>,
    /// The receipts of the tasks whose rows are settled, as far as there are any.
    pub(super) proofs: BTreeMap<Identity, Proof>,
    /// The task that owns the branch.
    pub(super) owner: Option<Identity>,
}
