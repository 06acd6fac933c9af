//! A repository as a hook sees it: bare or not, and with the objects of a push that Git has not taken in yet.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use gix::bstr::ByteSlice;
use tempfile::TempDir;

use super::{GitError, Oid, Repo, Result};

const OBJECTS: &str = "GIT_OBJECT_DIRECTORY";
const ALTERNATES: &str = "GIT_ALTERNATE_OBJECT_DIRECTORIES";

/// Object directories that only the environment names: a push in quarantine, and what it builds on.
pub(super) struct Borrowed {
    objects: OsString,
    alternates: Option<OsString>,
    /// An empty object directory that has all of them as alternates.
    _directory: TempDir,
}

impl Borrowed {
    /// What a `git` needs in its environment to see the same objects.
    pub(super) fn environment(&self) -> impl Iterator<Item = (&'static str, &OsStr)> {
        let alternates = self.alternates.as_deref().map(|value| (ALTERNATES, value));
        std::iter::once((OBJECTS, self.objects.as_os_str())).chain(alternates)
    }
}

impl Repo {
    /// The repository that Git runs a hook for in the current directory `dir`. It may be bare, and it sees the objects
    /// of a push that is still in quarantine.
    ///
    /// # Errors
    /// As [`Repo::from_current_dir`], bare repositories aside.
    pub fn for_hook(dir: &Path) -> Result<Self> {
        let mut repo = Self::open(dir, true)?;
        let named = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let own = repo.inner.objects.store_ref().path().to_owned();
        let (objects, alternates) = match (named(OBJECTS), named(ALTERNATES)) {
            (None, None) => return Ok(repo),
            (Some(objects), alternates) => (dir.join(objects).into_os_string(), alternates),
            (None, alternates) => (own.clone().into_os_string(), alternates),
        };

        // The library reads alternates from a file only, so it is given an object directory that names all of them.
        let directory = TempDir::new().map_err(GitError::io("a temporary directory"))?;
        let mut list = entry(objects.as_bytes(), dir);
        for other in split(alternates.as_deref().unwrap_or_default()) {
            list.extend(entry(&other, dir));
        }
        list.extend(entry(own.as_os_str().as_bytes(), dir));
        let info = directory.path().join("info");
        std::fs::create_dir(&info).map_err(GitError::io(&info))?;
        let file = info.join("alternates");
        std::fs::File::create(&file)
            .and_then(|mut file| std::io::Write::write_all(&mut file, &list))
            .map_err(GitError::io(&file))?;
        let store = gix::odb::at(directory.path(), repo.inner.object_hash()).map_err(GitError::io(directory.path()))?;
        repo.inner.objects = gix::odb::memory::Proxy::from(store).with_write_passthrough();
        repo.borrowed = Some(Borrowed { objects, alternates, _directory: directory });
        Ok(repo)
    }
}

impl Repo {
    /// The repository that `dir` lies in, whatever the environment says; it may be bare.
    ///
    /// # Errors
    /// As [`Repo::at`], bare repositories aside.
    pub fn at_any(dir: &Path) -> Result<Self> {
        Self::open(dir, false)
    }

    /// The bytes of the blob `id`; none of them where it has more than `limit`.
    ///
    /// # Errors
    /// Where it is not there or no blob.
    pub fn blob_up_to(&self, id: Oid, limit: u64) -> Result<Vec<u8>> {
        let header = match self.inner.find_header(id.0) {
            Ok(header) => header,
            Err(_) if self.is_partial() => {
                return self.blob(id).map(|data| if data.len() as u64 > limit { Vec::new() } else { data });
            }
            Err(_) => return Err(GitError::Object(format!("there is no blob {id}"))),
        };
        if header.size() > limit { Ok(Vec::new()) } else { self.blob(id) }
    }
}

/// A line of an alternates file for `path`, which is made absolute from `dir` because the file lies elsewhere.
fn entry(path: &[u8], dir: &Path) -> Vec<u8> {
    let path = dir.join(OsStr::from_bytes(path));
    let mut line = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => line.extend([b'\\', *byte]),
            b'\n' => line.extend(b"\\n"),
            byte => line.push(*byte),
        }
    }
    line.extend(b"\"\n");
    line
}

/// The paths of a list with colons between them, in which Git quotes those that need it.
fn split(list: &OsStr) -> Vec<Vec<u8>> {
    let (mut rest, mut paths) = (list.as_bytes(), Vec::new());
    while !rest.is_empty() {
        if rest.starts_with(b"\"")
            && let Ok((path, length)) = gix::quote::ansi_c::undo(rest.as_bstr())
        {
            paths.push(path.to_vec());
            rest = rest[length..].strip_prefix(b":").unwrap_or(&rest[length..]);
        } else {
            let end = rest.find_byte(b':').unwrap_or(rest.len());
            paths.push(rest[..end].to_vec());
            rest = rest.get(end + 1..).unwrap_or_default();
        }
    }
    paths.retain(|path| !path.is_empty());
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn alternates_are_read_as_git_writes_them() {
        assert_eq!(split(OsStr::new("/a:/b c")), [b"/a".to_vec(), b"/b c".to_vec()]);
        assert_eq!(split(OsStr::new("\"/a:\\n\":/b")), [b"/a:\n".to_vec(), b"/b".to_vec()]);
        assert!(split(OsStr::new("")).is_empty());
        assert_eq!(entry(b"x\"\n", Path::new("/d")), b"\"/d/x\\\"\\n\"\n");
    }
}
