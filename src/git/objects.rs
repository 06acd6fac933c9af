//! Objects: files and folders of a commit, and new commits whose every object is on the disk before a reference may
//! name it.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::{Path, PathBuf};

use gix::bstr::{BStr, BString, ByteSlice};

use super::{Author, GitError, Oid, Repo, Result};
use crate::os::disk::flush;

/// What an entry of a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A folder.
    Tree,
    /// A file.
    File,
    /// A file that may be executed.
    Executable,
    /// A symbolic link.
    Link,
    /// A submodule's commit.
    Submodule,
}

impl EntryKind {
    fn of(kind: gix::object::tree::EntryKind) -> Self {
        use gix::object::tree::EntryKind as Gix;
        match kind {
            Gix::Tree => Self::Tree,
            Gix::Blob => Self::File,
            Gix::BlobExecutable => Self::Executable,
            Gix::Link => Self::Link,
            Gix::Commit => Self::Submodule,
        }
    }
}

/// An entry of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its name within the folder.
    pub name: BString,
    /// What it is.
    pub kind: EntryKind,
    /// Its object.
    pub id: Oid,
}

/// A file as a commit holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Blob {
    /// What kind of file it is.
    pub kind: EntryKind,
    /// Its object.
    pub id: Oid,
    /// Its bytes.
    pub data: Vec<u8>,
}

/// A commit to be made.
#[derive(Debug)]
pub struct NewCommit<'a> {
    /// The commit whose files are the start; none for a tree that holds nothing but the edits.
    pub base: Option<Oid>,
    /// Files to put (path and bytes).
    pub files: &'a [(String, Vec<u8>)],
    /// The parents.
    pub parents: &'a [Oid],
    /// The message.
    pub message: &'a str,
    /// Who makes it.
    pub author: &'a Author,
}

impl Repo {
    /// The entry at `path` (with slashes) of the commit or tree `at`.
    ///
    /// # Errors
    /// Where `at` is not there or an object on the way cannot be read.
    pub fn entry(&self, at: Oid, path: &str) -> Result<Option<Entry>> {
        let tree = self.tree(at)?;
        let entry = tree.lookup_entry_by_path(path).map_err(GitError::gix)?;
        Ok(entry.map(|entry| Entry {
            name: entry.filename().to_owned(),
            kind: EntryKind::of(entry.mode().kind()),
            id: Oid(entry.id().detach()),
        }))
    }

    /// The file at `path` of the commit or tree `at`; `None` where there is none, or a folder.
    ///
    /// # Errors
    /// As [`Repo::entry`].
    pub fn file(&self, at: Oid, path: &str) -> Result<Option<Blob>> {
        match self.entry(at, path)? {
            Some(Entry { kind: EntryKind::Tree | EntryKind::Submodule, .. }) | None => Ok(None),
            Some(Entry { kind, id, .. }) => Ok(Some(Blob { kind, id, data: self.blob(id)? })),
        }
    }

    /// The bytes of the blob `id`.
    ///
    /// # Errors
    /// Where it is not there or no blob.
    pub fn blob(&self, id: Oid) -> Result<Vec<u8>> {
        let found = self.inner.try_find_object(id.0).map_err(GitError::gix)?;
        match found.map(gix::Object::detach) {
            Some(object) if object.kind == gix::objs::Kind::Blob => Ok(object.data),
            // A partial clone has it elsewhere, and only `git` knows how to get it.
            None if self.is_partial() => Ok(self.git().args(["cat-file", "blob", &id.to_string()]).run()?.stdout),
            Some(_) | None => Err(GitError::Object(format!("there is no blob {id}"))),
        }
    }

    /// Whether objects may be missing here on purpose.
    pub(super) fn is_partial(&self) -> bool {
        let snapshot = self.inner.config_snapshot();
        snapshot.string("extensions.partialClone").is_some()
            || snapshot
                .plumbing()
                .sections_by_name("remote")
                .is_some_and(|mut remotes| remotes.any(|remote| remote.body().value("promisor").is_some()))
    }

    /// The entries of the folder at `path` (`""` for the root) of the commit or tree `at`; none where it is no folder.
    ///
    /// # Errors
    /// As [`Repo::entry`].
    pub fn folder(&self, at: Oid, path: &str) -> Result<Vec<Entry>> {
        let at = if path.is_empty() {
            at
        } else {
            match self.entry(at, path)? {
                Some(Entry { kind: EntryKind::Tree, id, .. }) => id,
                _ => return Ok(Vec::new()),
            }
        };
        let tree = self.tree(at)?;
        tree.iter()
            .map(|entry| {
                let entry = entry.map_err(GitError::gix)?;
                Ok(Entry {
                    name: entry.filename().to_owned(),
                    kind: EntryKind::of(entry.mode().kind()),
                    id: Oid(entry.id().detach()),
                })
            })
            .collect()
    }

    /// The id that `data` has, or would have, as a blob of this repository.
    ///
    /// # Errors
    /// Where it cannot be computed.
    pub fn blob_id(&self, data: &[u8]) -> Result<Oid> {
        gix::objs::compute_hash(self.inner.object_hash(), gix::objs::Kind::Blob, data).map(Oid).map_err(GitError::gix)
    }

    fn tree(&self, at: Oid) -> Result<gix::Tree<'_>> {
        let missing = || GitError::Object(format!("there is no commit or tree {at}"));
        let object = self.inner.try_find_object(at.0).map_err(GitError::gix)?.ok_or_else(missing)?;
        match object.kind {
            gix::objs::Kind::Tree => Ok(object.into_tree()),
            gix::objs::Kind::Commit => object.into_commit().tree().map_err(GitError::gix),
            _ => Err(GitError::Object(format!("{at} is neither a commit nor a tree"))),
        }
    }

    /// The tree that `commit` would have, and the commit itself, written and flushed; no reference names it yet.
    ///
    /// # Errors
    /// Where an object cannot be read, written or flushed.
    pub fn commit_new(&self, commit: &NewCommit<'_>) -> Result<(Oid, Oid)> {
        let memory = self.inner.clone().with_object_memory();
        let start = match commit.base {
            Some(base) => self.tree(base)?.id,
            None => gix::ObjectId::empty_tree(self.inner.object_hash()),
        };
        let start =
            if commit.base.is_none() { memory.empty_tree() } else { memory.find_tree(start).map_err(GitError::gix)? };
        // The detached editor does not ask whether unchanged blobs are there: in a partial clone they need not be.
        let mut editor = start.edit().map_err(GitError::gix)?.detach();
        for (path, data) in commit.files {
            let blob = memory.write_blob(data).map_err(GitError::gix)?.detach();
            let parts = path.split('/').map(BStr::new);
            editor.upsert(parts, gix::object::tree::EntryKind::Blob, blob).map_err(GitError::gix)?;
        }
        let tree = editor.write(|tree| memory.write_object(tree).map(gix::Id::detach)).map_err(GitError::gix)?;
        let id = self.write_commit(&memory, tree, commit.parents, commit.message, commit.author)?;
        Ok((Oid(tree), id))
    }

    /// The commit of `tree`, written and flushed with everything that `memory` holds.
    pub(super) fn write_commit(
        &self,
        memory: &gix::Repository,
        tree: gix::ObjectId,
        parents: &[Oid],
        message: &str,
        author: &Author,
    ) -> Result<Oid> {
        if self.config_is_true("devlyn.sign") {
            self.keep(memory)?;
            return self.signed(Oid(tree), parents, message);
        }
        let signature = author.signature_now();
        let object = gix::objs::Commit {
            tree,
            parents: parents.iter().map(|parent| parent.0).collect(),
            author: signature.clone(),
            committer: signature,
            encoding: None,
            message: BString::from(message),
            extra_headers: Vec::new(),
        };
        let id = memory.write_object(&object).map_err(GitError::gix)?.detach();
        self.keep(memory)?;
        Ok(Oid(id))
    }

    /// The same commit made by `git`, which knows every way to sign one.
    fn signed(&self, tree: Oid, parents: &[Oid], message: &str) -> Result<Oid> {
        let parents = parents.iter().flat_map(|parent| ["-p".to_owned(), parent.to_string()]);
        let call = self.git().config("core.fsync=committed").args(["commit-tree", "-S"]).args(parents);
        let output = call.arg(tree.to_string()).input(message).run()?;
        output.line().parse().map_err(GitError::Object)
    }

    /// Writes what `memory` holds as loose objects, each flushed before it gets its name, and flushes the folders that
    /// they stand in. After a power failure an object is there whole or not at all: an empty one under its own name
    /// would never be written again. What a crash leaves has a name that `git prune` knows as litter.
    fn keep(&self, memory: &gix::Repository) -> Result<()> {
        let Some(objects) = memory.objects.reset_object_memory() else { return Ok(()) };
        let database = self.inner.objects.store_ref().path().to_owned();
        let mut files = Vec::new();
        for (id, (kind, data)) in objects.iter() {
            files.push((Oid(*id), loose_file(&database, *kind, data).map_err(GitError::io(&database))?));
        }
        flushed(files.iter().map(|(_, file)| file.to_path_buf()))?;
        let mut folders = BTreeSet::new();
        let mut kept = Vec::new();
        for (id, file) in files {
            let to = self.loose_path(&id.0);
            let folder = to.parent().unwrap_or(&database);
            match std::fs::create_dir(folder) {
                Ok(()) => drop(folders.insert(database.clone())),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(GitError::io(folder)(error)),
            }
            folders.insert(folder.to_owned());
            file.persist(&to).map_err(|error| GitError::io(&to)(error.error))?;
            kept.push(id);
        }
        flushed(folders)?;
        self.on_disk.borrow_mut().extend(kept);
        Ok(())
    }

    /// Flushes the loose files of these objects and the folders that they stand in, but for those that this process
    /// has flushed before. What a pack holds was flushed by Git when the pack was made.
    pub(super) fn flush_objects(&self, ids: impl IntoIterator<Item = Oid>) -> Result<()> {
        let mut on_disk = self.on_disk.borrow_mut();
        let ids: BTreeSet<Oid> = ids.into_iter().filter(|id| !on_disk.contains(id)).collect();
        let mut paths = BTreeSet::new();
        for id in &ids {
            let path = self.loose_path(&id.0);
            if path.exists() {
                paths.extend(path.parent().map(PathBuf::from));
                paths.insert(path);
            }
        }
        flushed(paths)?;
        on_disk.extend(ids);
        Ok(())
    }

    fn loose_path(&self, id: &gix::oid) -> PathBuf {
        let hex = id.to_hex().to_string();
        self.inner.objects.store_ref().path().join(&hex[..2]).join(&hex[2..])
    }
}

/// A new loose object under a temporary name below `database`, with the name and the rights that Git would give it.
fn loose_file(database: &Path, kind: gix::objs::Kind, data: &[u8]) -> std::io::Result<tempfile::TempPath> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(0o444);
    let file = tempfile::Builder::new().prefix("tmp_obj_").permissions(permissions).tempfile_in(database)?;
    let (file, path) = file.into_parts();
    let mut packed = gix::zlib::stream::deflate::Write::new(file, gix::zlib::Compression::BEST_SPEED);
    packed.write_all(&gix::objs::encode::loose_header(kind, data.len() as u64))?;
    packed.write_all(data)?;
    packed.flush()?;
    Ok(path)
}

/// Flushes all of `paths`.
fn flushed(paths: impl IntoIterator<Item = PathBuf>) -> Result<()> {
    let paths: Vec<PathBuf> = paths.into_iter().collect();
    flush(&paths).map_err(|error| GitError::Io { path: error.path, source: error.source })
}

/// The path with everything that is no text made visible.
#[must_use]
pub fn shown(path: &BStr) -> String {
    path.to_str_lossy().escape_debug().to_string()
}
