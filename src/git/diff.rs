//! What differs between two commits, path by path; renames are a deletion and an addition.

use gix::bstr::BString;
use gix::diff::tree::recorder::Change as Recorded;

use super::{GitError, Oid, Repo, Result};

/// A path that differs, with its object on each side.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Change {
    /// The path.
    pub path: BString,
    /// What stood there before.
    pub old: Option<Oid>,
    /// What stands there after.
    pub new: Option<Oid>,
}

impl Repo {
    /// Every path that differs between two commits or trees, sorted.
    ///
    /// # Errors
    /// Where one of them cannot be read.
    pub fn changes(&self, old: Oid, new: Oid) -> Result<Vec<Change>> {
        let recorder = self.recorded(&self.tree_data(old)?, &self.tree_data(new)?)?;
        let mut changes: Vec<Change> = recorder.records.into_iter().filter_map(change).collect();
        changes.sort_by(|a, b| a.path.cmp(&b.path));
        Ok(changes)
    }

    /// The trees and files that `new` holds and `old` does not hold in the same place.
    pub(super) fn objects_between(&self, old: Option<Oid>, new: Oid) -> Result<Vec<Oid>> {
        let old = old.map_or(Ok(Vec::new()), |old| self.tree_data(old))?;
        let recorder = self.recorded(&old, &self.tree_data(new)?)?;
        let ids = recorder.records.into_iter().filter_map(|recorded| match recorded {
            Recorded::Addition { oid, .. } | Recorded::Modification { oid, .. } => Some(Oid(oid)),
            Recorded::Deletion { .. } => None,
        });
        Ok(ids.collect())
    }

    fn recorded(&self, old: &[u8], new: &[u8]) -> Result<gix::diff::tree::Recorder> {
        let mut recorder = gix::diff::tree::Recorder::default();
        let kind = self.inner.object_hash();
        gix::diff::tree(
            gix::objs::TreeRefIter::from_bytes(old, kind),
            gix::objs::TreeRefIter::from_bytes(new, kind),
            gix::diff::tree::State::default(),
            &self.inner.objects,
            &mut recorder,
        )
        .map_err(GitError::gix)?;
        Ok(recorder)
    }

    fn tree_data(&self, at: Oid) -> Result<Vec<u8>> {
        let missing = |_| GitError::Object(format!("there is no commit or tree {at}"));
        let object = self.inner.find_object(at.0).map_err(missing)?;
        let mut tree = object.peel_to_tree().map_err(GitError::gix)?;
        Ok(std::mem::take(&mut tree.data))
    }
}

fn change(recorded: Recorded) -> Option<Change> {
    let (path, mode, old, new) = match recorded {
        Recorded::Addition { entry_mode, oid, path, .. } => (path, entry_mode, None, Some(Oid(oid))),
        Recorded::Deletion { entry_mode, oid, path, .. } => (path, entry_mode, Some(Oid(oid)), None),
        Recorded::Modification { previous_oid, entry_mode, oid, path, .. } => {
            (path, entry_mode, Some(Oid(previous_oid)), Some(Oid(oid)))
        }
    };
    // A folder that appears or changes is told by the files in it.
    (!mode.is_tree()).then_some(Change { path, old, new })
}
