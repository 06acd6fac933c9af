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
}
