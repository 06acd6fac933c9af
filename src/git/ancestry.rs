//! Which commits lie behind which.

use super::{GitError, Oid, Repo, Result};

impl Repo {
    /// Whether `old` is `new` or lies behind it.
    ///
    /// # Errors
    /// Where a commit cannot be read.
    pub fn is_ancestor(&self, old: Oid, new: Oid) -> Result<bool> {
        if old == new {
            return Ok(true);
        }
        let bases = self.inner.merge_bases_many(old.0, &[new.0]).map_err(GitError::gix)?;
        Ok(bases.iter().any(|base| base.detach() == old.0))
    }

    /// Flushes every object that `new` brings beyond `old`, commits, trees and files: whoever made them may not have,
    /// and a reference of ours is about to rely on them.
    ///
    /// # Errors
    /// Where one of them cannot be read or flushed.
    pub fn flush_between(&self, old: Oid, new: Oid) -> Result<()> {
        let mut ids = std::collections::BTreeSet::new();
        for id in self.commits_between(old, new)? {
            let Some(commit) = self.commit(id)? else { continue };
            let before = commit.parents.first().copied();
            ids.extend([id, commit.tree]);
            ids.extend(self.objects_between(before, id)?);
        }
        self.flush_objects(ids)
    }

    /// The commits that `new` is made of beyond `old`.
    ///
    /// # Errors
    /// Where history cannot be read.
    pub fn commits_between(&self, old: Oid, new: Oid) -> Result<Vec<Oid>> {
        let walk = self.inner.rev_walk([new.0]).with_hidden([old.0]).all().map_err(GitError::gix)?;
        walk.map(|info| Ok(Oid(info.map_err(GitError::gix)?.id))).collect()
    }
}
