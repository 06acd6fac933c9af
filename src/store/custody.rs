//! Evidence in custody: copies that no agent can reach by the way it was told, held against their list byte for byte
//! and mode for mode. Copies that no receipt names are set aside, never overwritten and never deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::Read;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{ReceiptDir, StoreError, is_there, sync_dir, write_state};
use crate::os::disk::flush;
use crate::os::of_the_machine;
use crate::package::hex;

/// What is kept of one file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// How many there are.
    pub bytes: u64,
    /// Its permission bits.
    pub mode: u32,
}

/// The evidence by its path relative to the worktree.
pub type Files = BTreeMap<String, FileRecord>;

/// Why evidence is not, or no longer, what it is said to be.
#[derive(Debug, thiserror::Error)]
pub enum CustodyError {
    /// A path that is no evidence.
    #[error("evidence {0}: {1}")]
    Evidence(String, String),
    /// A copy that is not what was bound.
    #[error("custody {}: {}", .0.display(), .1)]
    Changed(PathBuf, String),
    /// A state file or directory failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The relative paths of regular files below a worktree.
pub type Evidence = BTreeSet<String>;

/// The regular files that `paths`, relative to `root`, stand for; a directory stands for every file below it.
///
/// # Errors
/// Where a path is not plainly relative, is missing, is or passes a symbolic link, or is no file; [`CustodyError::Store`]
/// where the machine cannot tell.
pub fn collect(root: &Path, paths: &[String]) -> Result<Evidence, CustodyError> {
    let mut found = Evidence::new();
    for path in paths {
        let refuse = |why: &str| CustodyError::Evidence(format!("{path:?}"), why.to_owned());
        let parts: Vec<Component<'_>> = Path::new(path).components().collect();
        if path.is_empty() || !parts.iter().all(|part| matches!(part, Component::Normal(_))) {
            return Err(refuse("is no relative path inside the worktree"));
        }
        let mut place = root.to_owned();
        for part in &parts {
            place.push(part);
            let meta = fs::symlink_metadata(&place).map_err(unlooked(&place, refuse))?;
            if meta.file_type().is_symlink() {
                return Err(refuse("lies at or behind a symbolic link"));
            }
        }
        let plain: PathBuf = parts.iter().collect();
        below(root, &plain, &mut found)?;
    }
    Ok(found)
}

/// The error of a `place` that could not be looked at: what this machine cannot do now says nothing of the evidence.
fn unlooked(place: &Path, refuse: impl Fn(&str) -> CustodyError) -> impl FnOnce(std::io::Error) -> CustodyError {
    move |error| if of_the_machine(&error) { StoreError::io(place)(error).into() } else { refuse(&error.to_string()) }
}

fn below(root: &Path, path: &Path, found: &mut Evidence) -> Result<(), CustodyError> {
    let refuse = |why: &str| CustodyError::Evidence(format!("{path:?}"), why.to_owned());
    let place = root.join(path);
    let meta = fs::symlink_metadata(&place).map_err(unlooked(&place, refuse))?;
    if meta.is_file() {
        found.insert(path.to_str().ok_or_else(|| refuse("has a name that is not UTF-8"))?.to_owned());
        return Ok(());
    }
    if !meta.is_dir() {
        return Err(refuse("is no regular file"));
    }
    for entry in fs::read_dir(&place).map_err(unlooked(&place, refuse))? {
        let entry = entry.map_err(unlooked(&place, refuse))?;
        below(root, &path.join(entry.file_name()), found)?;
    }
    Ok(())
}

/// Copies `evidence` of the worktree `root` into the receipt's custody, writes its list, and returns it. Copies
/// that are there already are set aside first: no receipt names them.
///
/// # Errors
/// Where a file changes while it is copied, or a copy cannot be made or flushed.
pub fn take(dir: &ReceiptDir, root: &Path, evidence: &Evidence) -> Result<Files, CustodyError> {
    set_aside(dir)?;
    let staging = tempfile::Builder::new()
        .prefix(".custody-copying-")
        .disable_cleanup(true)
        .tempdir_in(dir.path())
        .map_err(StoreError::io(dir.path()))?;
    let staging = staging.path();
    let (mut files, mut folders) = (Files::new(), BTreeSet::from([staging.to_owned()]));
    for path in evidence {
        let (from, to) = (root.join(path), staging.join(path));
        let above = to.parent().unwrap_or(staging);
        fs::create_dir_all(above).map_err(StoreError::io(above))?;
        folders.extend(above.ancestors().take_while(|folder| *folder != staging).map(PathBuf::from));
        let record = copy(path, &from, &to)?;
        if look(&to)? != record || look(&from)? != record {
            return Err(CustodyError::Evidence(format!("{path:?}"), "changed while it was copied".to_owned()));
        }
        files.insert(path.clone(), record);
    }
    let copies = evidence.iter().map(|path| staging.join(path));
    flush(&copies.chain(folders).collect::<Vec<_>>()).map_err(|error| StoreError::io(&error.path)(error.source))?;
    fs::rename(staging, dir.custody()).map_err(StoreError::io(&dir.custody()))?;
    // Flushes the rename too: both names stand in the receipt's directory.
    write_state(&dir.manifest(), &files)?;
    Ok(files)
}

/// Sets custody that no receipt names aside in a hidden sibling. Called only for a receipt that is not bound.
///
/// # Errors
/// Where it cannot be renamed.
pub fn set_aside(dir: &ReceiptDir) -> Result<(), CustodyError> {
    let custody = dir.custody();
    if !is_there(&custody)? {
        return Ok(());
    }
    let number = (1..).find(|n| fs::symlink_metadata(dir.path().join(format!(".custody-{n}"))).is_err()).unwrap_or(1);
    let aside = dir.path().join(format!(".custody-{number}"));
    fs::rename(&custody, &aside).map_err(StoreError::io(&aside))?;
    Ok(sync_dir(dir.path())?)
}

/// Whether the list beside the copies is `files`.
fn listed(dir: &ReceiptDir, files: &Files) -> Result<(), CustodyError> {
    let manifest = dir.manifest();
    let changed = |why: &str| CustodyError::Changed(manifest.clone(), why.to_owned());
    let (listed, _) = super::read_state(&manifest)?.ok_or_else(|| changed("is missing"))?;
    let listed: Files = serde_json::from_value(listed.into()).map_err(|error| changed(&error.to_string()))?;
    if listed == *files { Ok(()) } else { Err(changed("lists other evidence than the receipt")) }
}

/// Holds the copies against `files` and the list beside them.
///
/// # Errors
/// Where a copy is missing, changed, of another mode, a link, or the list tells something else.
pub fn verify(dir: &ReceiptDir, files: &Files) -> Result<(), CustodyError> {
    listed(dir, files)?;
    let all: Vec<String> = files.keys().cloned().collect();
    collect(&dir.custody(), &all).map_err(|error| match error {
        CustodyError::Store(error) => CustodyError::Store(error),
        error => CustodyError::Changed(dir.custody(), error.to_string()),
    })?;
    for (path, record) in files {
        let place = dir.custody().join(path);
        let found = look(&place)?;
        if found != *record {
            let why =
                if found.sha256 == record.sha256 { "has another mode than was bound" } else { "is not what was bound" };
            return Err(CustodyError::Changed(place, why.to_owned()));
        }
    }
    Ok(())
}

/// Whether the copies of `files` are all there, each as long as it was and with the rights that it had, and the list
/// beside them says the same: what can be told without reading them.
///
/// # Errors
/// As [`verify`].
pub fn present(dir: &ReceiptDir, files: &Files) -> Result<(), CustodyError> {
    listed(dir, files)?;
    for (path, record) in files {
        let place = dir.custody().join(path);
        let changed = |why: &str| CustodyError::Changed(place.clone(), why.to_owned());
        match fs::symlink_metadata(&place) {
            Ok(meta) if !meta.is_file() => return Err(changed("is no regular file")),
            Ok(meta) if meta.len() != record.bytes || meta.permissions().mode() & 0o7777 != record.mode => {
                return Err(changed("is not what was bound"));
            }
            Ok(_) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Err(changed("is missing")),
            Err(error) => return Err(StoreError::io(&place)(error).into()),
        }
    }
    Ok(())
}

/// Holds the evidence in the worktree `root` against `files`.
///
/// # Errors
/// Where a file is missing, changed, of another mode, or behind a link.
pub fn unchanged(root: &Path, files: &Files) -> Result<(), CustodyError> {
    let all: Vec<String> = files.keys().cloned().collect();
    collect(root, &all)?;
    for (path, record) in files {
        if look(&root.join(path))? != *record {
            return Err(CustodyError::Evidence(format!("{path:?}"), "is not what was bound any more".to_owned()));
        }
    }
    Ok(())
}

fn open(path: &Path) -> Result<File, StoreError> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(StoreError::io(path))
}

/// Digest, length and mode of the regular file `path`.
pub(super) fn look(path: &Path) -> Result<FileRecord, StoreError> {
    let file = open(path)?;
    let meta = file.metadata().map_err(StoreError::io(path))?;
    if !meta.is_file() {
        return Err(StoreError::invalid(path, "is no regular file"));
    }
    let mode = meta.permissions().mode() & 0o7777;
    let (sha256, bytes) = digest(file, |_| Ok(())).map_err(StoreError::io(path))?;
    Ok(FileRecord { sha256, bytes, mode })
}

pub(super) fn copy(name: &str, from: &Path, to: &Path) -> Result<FileRecord, CustodyError> {
    use std::io::Write;
    let source = open(from)?;
    let meta = source.metadata().map_err(StoreError::io(from))?;
    if !meta.is_file() {
        return Err(CustodyError::Evidence(format!("{name:?}"), "is no regular file".to_owned()));
    }
    let mode = meta.permissions().mode() & 0o7777;
    let mut target =
        OpenOptions::new().write(true).create_new(true).mode(0o600).open(to).map_err(StoreError::io(to))?;
    let (sha256, bytes) = digest(source, |chunk| target.write_all(chunk)).map_err(StoreError::io(to))?;
    target.set_permissions(Permissions::from_mode(mode)).map_err(StoreError::io(to))?;
    Ok(FileRecord { sha256, bytes, mode })
}

fn digest(mut file: File, mut each: impl FnMut(&[u8]) -> std::io::Result<()>) -> std::io::Result<(String, u64)> {
    let (mut hash, mut bytes, mut chunk) = (Sha256::new(), 0, vec![0; 64 << 10]);
    loop {
        let read = file.read(&mut chunk)?;
        if read == 0 {
            return Ok((hex(&hash.finalize()), bytes));
        }
        hash.update(&chunk[..read]);
        each(&chunk[..read])?;
        bytes += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::super::make_dir;
    use super::*;

    fn place() -> (tempfile::TempDir, ReceiptDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let (dir, root) = (temp.path().join("key"), temp.path().join("tree"));
        make_dir(&dir).unwrap();
        make_dir(&root.join(".devlyn/runs")).unwrap();
        super::super::write_bytes(&root.join(".devlyn/a.log"), b"1 passed\n").unwrap();
        super::super::write_bytes(&root.join(".devlyn/runs/b.log"), b"").unwrap();
        (temp, ReceiptDir::new(dir), root)
    }

    #[test]
    fn what_is_taken_is_verified_until_it_changes() {
        let (_temp, dir, root) = place();
        let evidence = collect(&root, &[".devlyn/a.log".into(), ".devlyn".into()]).unwrap();
        assert_eq!(evidence.iter().collect::<Vec<_>>(), [".devlyn/a.log", ".devlyn/runs/b.log"]);
        let files = take(&dir, &root, &evidence).unwrap();
        verify(&dir, &files).unwrap();
        fs::set_permissions(dir.custody().join(".devlyn/a.log"), Permissions::from_mode(0o755)).unwrap();
        assert!(verify(&dir, &files).unwrap_err().to_string().contains("another mode"));
        fs::remove_file(dir.custody().join(".devlyn/a.log")).unwrap();
        assert!(verify(&dir, &files).is_err());
        std::os::unix::fs::symlink(root.join(".devlyn/a.log"), dir.custody().join(".devlyn/a.log")).unwrap();
        assert!(verify(&dir, &files).is_err());
    }

    #[test]
    fn copies_without_a_receipt_are_set_aside_each_in_its_own_place() {
        let (_temp, dir, root) = place();
        for round in 1..=2 {
            make_dir(&dir.custody()).unwrap();
            super::super::write_bytes(&dir.custody().join("old"), format!("{round}").as_bytes()).unwrap();
            take(&dir, &root, &collect(&root, &[".devlyn/a.log".into()]).unwrap()).unwrap();
            set_aside(&dir).unwrap();
        }
        assert_eq!(fs::read(dir.path().join(".custody-1/old")).unwrap(), b"1");
        assert_eq!(fs::read(dir.path().join(".custody-3/old")).unwrap(), b"2");
    }

    #[test]
    fn evidence_is_plain_files_inside_the_worktree() {
        let (_temp, _dir, root) = place();
        std::os::unix::fs::symlink(&root, root.join(".devlyn/out")).unwrap();
        for bad in [
            "",
            "/etc/passwd",
            "../x",
            ".devlyn/../../x",
            ".devlyn/none",
            ".devlyn/out",
            ".devlyn/out/.devlyn/a.log",
            ".devlyn",
        ] {
            assert!(collect(&root, &[bad.to_owned()]).is_err(), "{bad:?}");
        }
    }
}
