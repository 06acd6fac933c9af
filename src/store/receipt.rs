//! The receipt of a task (formats, "Receipt"): what it owns, what was bound, where its delivery stands. Reading
//! validates its place and shape; what it claims of references and commits is for the caller to hold against Git.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{FileRecord, Files, Layout, Lock, ReceiptDir, Result, StoreError, read_state, write_state};
use crate::git::Oid;
use crate::json::{Map, Value};
use crate::package::Key;

/// How far the allocation came.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Allocation {
    /// Begun; nothing that may lie around is known to be ours.
    Allocating,
    /// Finished: worktree, branch and scratch are the task's own.
    Owned,
}

/// The latest outcome of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Delivery {
    /// Kept here, with no remote effect.
    LocalOnly,
    /// A pull request waits for a person.
    Pr,
    /// A pull request merges by itself once its host lets it.
    Pending,
    /// Merged.
    Complete,
    /// The result failed; it is never published.
    Failed,
}

impl Delivery {
    /// The word that stands in receipts, items and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::LocalOnly => "LOCAL_ONLY",
            Self::Pr => "PR",
            Self::Pending => "PENDING",
            Self::Complete => "COMPLETE",
            Self::Failed => "FAILED",
        }
    }

    /// Whether nothing more will happen to it by itself.
    #[must_use]
    pub fn is_final(self) -> bool {
        match self {
            Self::LocalOnly | Self::Complete | Self::Failed => true,
            Self::Pr | Self::Pending => false,
        }
    }
}

/// How a pull request is brought to its end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Merged as soon as the host's rules allow it.
    Auto,
    /// Left to a person.
    Pr,
}

/// A remote's URL as it is stored, and as Git uses it for fetch and push.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoteUrl {
    /// As stored.
    pub literal: String,
    /// After `insteadOf`.
    pub fetch: String,
    /// After `pushInsteadOf` and `pushurl`.
    pub push: String,
}

/// The accepted result that an allocation started from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct From {
    /// The key of its receipt.
    pub receipt: String,
    /// Its source.
    pub source_sha: Oid,
}

/// The terminal commit once it is attached.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Queue {
    /// The commit.
    pub commit: Oid,
    /// The queue file that it changes.
    pub file: String,
}

/// How the cleanup of a worktree or scratch stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "status")]
pub enum Cleanup {
    /// Done.
    #[serde(rename = "CLEAN")]
    Clean {
        /// What the emptied files had in bytes, as they were listed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        logical_bytes_removed: Option<u64>,
    },
    /// Kept, for a reason.
    #[serde(rename = "RETAINED")]
    Retained {
        /// Why.
        reason: String,
        /// The command line that tries again.
        resume: String,
    },
    /// There is nothing of the task's to clean.
    #[serde(rename = "NOT_OWNED")]
    NotOwned,
}

/// The scratch directory's cleanup.
pub type Scratch = Cleanup;

/// The verdict of an acceptance.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
pub enum Verdict {
    /// Proven.
    Accepted,
    /// Not proven.
    Failed,
}

/// A bound acceptance document, kept whole, with what the rest of the program asks of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Acceptance(pub Map<String, Value>);

/// A check of a `direct` acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub struct DirectCheck {
    /// The command that was run.
    pub command: String,
    /// Where its evidence is, relative to the worktree.
    pub evidence: String,
}

impl Acceptance {
    /// The text under `key`.
    #[must_use]
    pub fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key).and_then(Value::as_str)
    }

    /// The verdict; a `direct` acceptance has none and counts as accepted.
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        if self.text("verdict") == Some("FAILED") { Verdict::Failed } else { Verdict::Accepted }
    }

    /// The texts in the list under `key`.
    #[must_use]
    pub fn texts(&self, key: &str) -> Vec<String> {
        let items = self.0.get(key).and_then(Value::as_array).into_iter().flatten();
        items.filter_map(Value::as_str).map(str::to_owned).collect()
    }

    /// Why it failed; empty where it did not.
    #[must_use]
    pub fn reasons(&self) -> Vec<String> {
        self.texts("reasons")
    }
}

/// The receipt of a task.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The key.
    pub id: String,
    /// The task's identity.
    pub task: String,
    /// The owned branch's short name.
    pub branch: String,
    /// The base branch's short name.
    pub base: String,
    /// `owner/name`; null for local work.
    pub repository: Option<String>,
    /// The remote's name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote: Option<String>,
    /// The remote's URL; absent for local work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_url: Option<RemoteUrl>,
    /// The full name of the ref that keeps the result.
    pub recovery_ref: String,
    /// The common Git directory.
    pub common_gitdir: PathBuf,
    /// The checkout that the task was allocated from.
    pub anchor: PathBuf,
    /// The owned worktree.
    pub worktree: PathBuf,
    /// Its Git directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_gitdir: Option<PathBuf>,
    /// Device and inode of the worktree and its Git directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub worktree_identity: Option<[(u64, u64); 2]>,
    /// Device and inode of `scratch/` and the receipt's directory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch_identity: Option<[(u64, u64); 2]>,
    /// Always true.
    #[serde(default)]
    pub linked: bool,
    /// The commit that the branch was created at.
    pub baseline: Oid,
    /// The accepted predecessor that it started from.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated_from: Option<From>,
    /// Whether it is local for good.
    #[serde(default, skip_serializing_if = "is_false")]
    pub local_only: bool,
    /// How far the allocation came.
    pub allocation: Allocation,
    /// The bound acceptance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance: Option<Acceptance>,
    /// The SHA-256 of its file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acceptance_digest: Option<String>,
    /// The bound source.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source_sha: Option<Oid>,
    /// What would be published: the source, later the terminal commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub publish_sha: Option<Oid>,
    /// The evidence in custody.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<Files>,
    /// `FAILED` on a failed result, for older readers; the verdict decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub product: Option<String>,
    /// The attached terminal commit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Queue>,
    /// The latest outcome of the delivery.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub delivery: Option<Delivery>,
    /// The mode that was asked for this task.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode_override: Option<Mode>,
    /// Whether the branch was published.
    #[serde(default, skip_serializing_if = "is_false")]
    pub pushed: bool,
    /// The pull request's number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_number: Option<u64>,
    /// Its address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pr_url: Option<String>,
    /// The merged pull request as its host described it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<Map<String, Value>>,
    /// Whether the owner said that all its writers have stopped.
    #[serde(default, skip_serializing_if = "is_false")]
    pub writers_released: bool,
    /// How the scratch directory's cleanup stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scratch_cleanup: Option<Cleanup>,
    /// How the worktree's cleanup stands, where it is retained.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub workspace_cleanup: Option<Cleanup>,
    /// `COMPLETE` once cleaned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// What other versions wrote.
    #[serde(flatten)]
    pub other: BTreeMap<String, Value>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_false(value: &bool) -> bool {
    !value
}

impl Receipt {
    /// The receipt in `dir`, `None` where the directory holds none.
    ///
    /// # Errors
    /// Where it is no regular file, no strict JSON, or misshapen.
    pub fn read(dir: &ReceiptDir) -> Result<Option<Self>> {
        let path = dir.receipt();
        let Some((object, _)) = read_state(&path)? else { return Ok(None) };
        serde_json::from_value(object.into()).map(Some).map_err(|error| StoreError::invalid(&path, error))
    }

    /// Writes it into `dir`.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, dir: &ReceiptDir) -> Result<()> {
        write_state(&dir.receipt(), self)
    }

    /// The receipt at `path` and the lock on it, waited for: the addressed one, of this repository, owned.
    ///
    /// # Errors
    /// Where `path` is no receipt's own place in `layout`, or the receipt there contradicts it.
    pub fn locked(layout: &Layout, path: &Path) -> Result<(Lock, ReceiptDir, Self)> {
        let dir = Self::addressed(layout, path)?;
        let lock = Lock::wait(&dir.lock())?;
        let receipt = Self::owned(layout, &dir)?;
        Ok((lock, dir, receipt))
    }

    /// The directory of the receipt at `path`, which must be its own place.
    ///
    /// # Errors
    /// Where it is not.
    pub fn addressed(layout: &Layout, path: &Path) -> Result<ReceiptDir> {
        let path = std::path::absolute(path).map_err(StoreError::io(path))?;
        let meta = std::fs::symlink_metadata(&path).map_err(StoreError::io(&path))?;
        if !meta.is_file() {
            return Err(StoreError::invalid(&path, "is no regular file, so it is no receipt"));
        }
        let real = std::fs::canonicalize(&path).map_err(StoreError::io(&path))?;
        let folder = real.parent().unwrap_or(&real);
        let own = real.file_name().is_some_and(|name| name == "receipt.json")
            && folder.parent() == Some(&layout.completions())
            && std::fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
        if !own {
            let wanted = layout.completions().join("<key>/receipt.json");
            return Err(StoreError::invalid(&path, format!("is no receipt of this repository ({})", wanted.display())));
        }
        Ok(ReceiptDir::new(folder))
    }

    /// The receipt in `dir`, which agrees with its place and is owned.
    ///
    /// # Errors
    /// Where it does not, or is not.
    pub fn owned(layout: &Layout, dir: &ReceiptDir) -> Result<Self> {
        let path = dir.receipt();
        let receipt = Self::read(dir)?.ok_or_else(|| StoreError::invalid(&path, "there is no receipt"))?;
        receipt.check_place(layout, dir).map_err(|why| StoreError::invalid(&path, why))?;
        if receipt.allocation != Allocation::Owned {
            return Err(StoreError::invalid(&path, "its allocation was not finished; it is never adopted"));
        }
        Ok(receipt)
    }

    /// Whether directory, id, branch, recovery ref and repository agree.
    ///
    /// # Errors
    /// What does not.
    pub fn check_place(&self, layout: &Layout, dir: &ReceiptDir) -> std::result::Result<(), String> {
        let key = Key::of_branch(&self.branch);
        if self.id != dir.key() || self.id != key.as_str() {
            return Err(format!(
                "directory {}, id {:?} and branch {:?} do not belong together",
                dir.key(),
                self.id,
                self.branch
            ));
        }
        if self.recovery_ref != key.recovery_ref() {
            return Err(format!("names the recovery ref {:?} instead of {}", self.recovery_ref, key.recovery_ref()));
        }
        if self.common_gitdir != layout.common() {
            return Err(format!("belongs to the repository {}", self.common_gitdir.display()));
        }
        Ok(())
    }

    /// Whether a result is bound.
    #[must_use]
    pub fn is_bound(&self) -> bool {
        self.acceptance.is_some()
    }

    /// The verdict of the bound result.
    #[must_use]
    pub fn verdict(&self) -> Option<Verdict> {
        self.acceptance.as_ref().map(Acceptance::verdict)
    }

    /// The evidence in custody under its relative path.
    #[must_use]
    pub fn evidence(&self, path: &str) -> Option<&FileRecord> {
        self.files.as_ref().and_then(|files| files.get(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn sample() -> Value {
        json!({
            "id": Key::of_branch("devlyn/inv/t1").as_str(), "task": "inv.t1", "branch": "devlyn/inv/t1", "base": "main",
            "repository": null, "remote": "origin", "recovery_ref": Key::of_branch("devlyn/inv/t1").recovery_ref(),
            "common_gitdir": "/r/.git", "anchor": "/r", "worktree": "/r.devlyn/inv/t1", "linked": true,
            "baseline": "a".repeat(40), "local_only": true, "allocation": "owned",
            "scratch_identity": [[1, 2], [3, 4]], "later_version": {"by": ["another", 1]},
            "workspace_cleanup": {"status": "RETAINED", "reason": "r", "resume": "c"}
        })
    }

    #[test]
    fn a_receipt_keeps_what_it_does_not_know_and_writes_no_more_than_it_read() {
        let receipt: Receipt = serde_json::from_value(sample()).unwrap();
        assert_eq!(serde_json::to_value(&receipt).unwrap(), sample());
        assert!(receipt.local_only && !receipt.is_bound());
        assert_eq!(receipt.scratch_identity, Some([(1, 2), (3, 4)]));
    }

    #[test]
    fn a_receipt_agrees_with_its_place() {
        let layout = Layout::new("/r/.git");
        let receipt: Receipt = serde_json::from_value(sample()).unwrap();
        let dir = layout.receipt_dir(&Key::of_branch("devlyn/inv/t1"));
        receipt.check_place(&layout, &dir).unwrap();
        assert!(receipt.check_place(&layout, &layout.receipt_dir(&Key::of_branch("x"))).is_err());
        assert!(receipt.check_place(&Layout::new("/other"), &dir).is_err());
        let moved = Receipt { branch: "devlyn/inv/t2".into(), ..receipt };
        assert!(moved.check_place(&layout, &dir).is_err());
    }

    #[test]
    fn the_verdict_alone_decides() {
        let mut value = sample();
        value["acceptance"] = json!({"kind": "loop", "verdict": "FAILED", "reasons": ["failed: no"]});
        let receipt: Receipt = serde_json::from_value(value).unwrap();
        assert_eq!(receipt.verdict(), Some(Verdict::Failed));
        assert_eq!(receipt.acceptance.unwrap().reasons(), ["failed: no"]);
    }
}
