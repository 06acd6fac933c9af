//! The add record of a loop (formats, "Add record").

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Layout, Result, StoreError, read_state, write_state};
use crate::git::Oid;
use crate::package::{Delivery, LoopId};
use crate::queue::Claim;

/// What `add` made of a package: where it is captured, and where its work starts and goes back to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// Always 1.
    pub schema_version: u64,
    /// The loop.
    pub loop_id: LoopId,
    /// The delivery that its manifest asks for.
    pub delivery: Delivery,
    /// The full name of the ref that holds the capture.
    pub capture: String,
    /// The captured commit.
    pub commit: Oid,
    /// Its tree.
    pub tree: Oid,
    /// The checkout that the loop was added in, absolute.
    pub origin: PathBuf,
    /// The short name of the branch that was checked out there.
    pub branch: String,
    /// One more than the highest there was.
    pub sequence: u64,
    /// The legacy row in whose place the loop stands.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub materialize: Option<Claim>,
}

impl Record {
    /// Every add record, in the order of their sequence.
    ///
    /// # Errors
    /// Where one of them cannot be relied on: without it the queue is not known.
    pub fn read_all(layout: &Layout) -> Result<Vec<Self>> {
        let folder = layout.loops();
        let entries = match std::fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(StoreError::io(&folder)(error)),
        };
        let mut records = Vec::new();
        for entry in entries {
            let entry = entry.map_err(StoreError::io(&folder))?;
            // What is no loop's directory is not ours to judge; the locks stand here too.
            let Some(loop_id) = entry.file_name().to_str().and_then(|name| LoopId::new(name).ok()) else { continue };
            if let Some(record) = Self::read(layout, &loop_id)? {
                records.push(record);
            }
        }
        records.sort_by(|a, b| (a.sequence, &a.loop_id).cmp(&(b.sequence, &b.loop_id)));
        Ok(records)
    }

    /// The record of the loop, `None` where it has none.
    ///
    /// # Errors
    /// Where it cannot be relied on.
    pub fn read(layout: &Layout, loop_id: &LoopId) -> Result<Option<Self>> {
        let path = layout.record(loop_id);
        let Some((object, _)) = read_state(&path)? else { return Ok(None) };
        let record: Self = serde_json::from_value(object.into()).map_err(|error| StoreError::invalid(&path, error))?;
        record.check(&path, loop_id)?;
        Ok(Some(record))
    }

    fn check(&self, path: &Path, loop_id: &LoopId) -> Result<()> {
        let wrong = if self.schema_version != 1 {
            format!("schema_version is {}, not 1", self.schema_version)
        } else if self.loop_id != *loop_id {
            format!("is the record of {}", self.loop_id)
        } else if self.capture != loop_id.capture_ref() {
            format!("names the capture {:?}", self.capture)
        } else if self.branch.is_empty() || !self.origin.is_absolute() {
            "names no branch or no absolute origin".to_owned()
        } else {
            return Ok(());
        };
        Err(StoreError::invalid(path, wrong))
    }

    /// Makes this the record of its loop.
    ///
    /// # Errors
    /// Where it cannot be written.
    pub fn write(&self, layout: &Layout) -> Result<()> {
        let path = layout.record(&self.loop_id);
        if let Some(folder) = path.parent() {
            super::make_dir(folder)?;
        }
        write_state(&path, self)
    }
}
