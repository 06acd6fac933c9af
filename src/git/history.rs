//! Commits as they are, and who makes ours.

use gix::bstr::ByteSlice;

use super::{GitError, Oid, Repo, Result};

/// A commit as it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Commit {
    /// Its id.
    pub id: Oid,
    /// Its tree.
    pub tree: Oid,
    /// Its parents.
    pub parents: Vec<Oid>,
}

/// The name and address that our commits bear, as Git itself would choose them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Author {
    pub(super) name: String,
    pub(super) email: String,
    pub(super) offset: i32,
    /// The moment that the environment asks for, in seconds; each commit's own otherwise.
    pub(super) moment: Option<i64>,
}

impl Author {
    /// This author at this second.
    pub(super) fn signature_now(&self) -> gix::actor::Signature {
        let now = || {
            let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
            since.map_or(0, |since| i64::try_from(since.as_secs()).unwrap_or(0))
        };
        let seconds = self.moment.unwrap_or_else(now);
        gix::actor::Signature {
            name: self.name.as_str().into(),
            email: self.email.as_str().into(),
            time: gix::date::Time::new(seconds, self.offset),
        }
    }
}

impl Repo {
    /// The commit `id`; `None` where there is no such object or it is no commit.
    ///
    /// # Errors
    /// Where the object is there and cannot be read.
    pub fn commit(&self, id: Oid) -> Result<Option<Commit>> {
        let Some(object) = self.inner.try_find_object(id.0).map_err(GitError::gix)? else { return Ok(None) };
        if object.kind != gix::objs::Kind::Commit {
            return Ok(None);
        }
        let commit = object.into_commit();
        let tree = Oid(commit.tree_id().map_err(GitError::gix)?.detach());
        let parents = commit.parent_ids().map(|id| Oid(id.detach())).collect();
        Ok(Some(Commit { id, tree, parents }))
    }

    /// The commit that `text` names, `None` where it is not the whole id of a commit of this repository.
    ///
    /// # Errors
    /// As [`Repo::commit`].
    pub fn exact_commit(&self, text: &str) -> Result<Option<Oid>> {
        let Ok(id) = text.parse::<Oid>() else { return Ok(None) };
        if id.0.kind() != self.inner.object_hash() {
            return Ok(None);
        }
        Ok(self.commit(id)?.map(|commit| commit.id))
    }

    /// The message of the commit `id`.
    ///
    /// # Errors
    /// Where it is no commit.
    pub fn message(&self, id: Oid) -> Result<String> {
        let missing = || GitError::Object(format!("there is no commit {id}"));
        let object = self.inner.try_find_object(id.0).map_err(GitError::gix)?.ok_or_else(missing)?;
        let commit = object.try_into_commit().map_err(GitError::gix)?;
        Ok(commit.message_raw().map_err(GitError::gix)?.to_str_lossy().into_owned())
    }
}
