//! What a worktree holds below `.devlyn/`, kept before the worktree goes: every byte and every mode, or nothing and the
//! reason. Copies that are there already and differ are set aside, never overwritten.

use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use super::custody::{copy, look};
use super::{CustodyError, FileRecord, ReceiptDir, StoreError, make_dir, sync_dir};
use crate::exchange::EVIDENCE;

/// What stands in the folder, by its path in it.
type Listing = BTreeMap<PathBuf, Kept>;

#[derive(Debug, Clone, PartialEq, Eq)]
enum Kept {
    Folder { mode: u32 },
    File(FileRecord),
}

/// Copies `.devlyn/` of the worktree `root` to the receipt's records and verifies the copy. Where there is no such
/// folder nothing is kept; where it was kept already nothing is done.
///
/// # Errors
/// Where something in it is neither a folder nor a regular file, changes meanwhile, or cannot be copied.
pub fn keep_records(dir: &ReceiptDir, root: &Path) -> Result<(), CustodyError> {
    let from = root.join(EVIDENCE);
    match fs::symlink_metadata(&from) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(StoreError::io(&from)(error).into()),
        Ok(_) => {}
    }
    let wanted = list(&from)?;
    let place = dir.records();
    let target = place.join(EVIDENCE);
    if fs::symlink_metadata(&place).is_ok() {
        if list(&target).is_ok_and(|found| found == wanted) {
            return Ok(());
        }
        set_aside(dir, &place)?;
    }
    let staging = tempfile::Builder::new()
        .prefix(".records-copying-")
        .disable_cleanup(true)
        .tempdir_in(dir.path())
        .map_err(StoreError::io(dir.path()))?;
    let staging = staging.path();
    let staged = staging.join(EVIDENCE);
    for (path, kept) in &wanted {
        let to = staged.join(path);
        match kept {
            Kept::Folder { .. } => make_dir(&to)?,
            Kept::File(record) => {
                if copy(&path.to_string_lossy(), &from.join(path), &to)? != *record {
                    return Err(changed(&from.join(path)));
                }
            }
        }
    }
    // From the deepest up: a folder that may not be written to gets its mode when everything in it is there.
    for (path, kept) in wanted.iter().rev() {
        if let Kept::Folder { mode } = kept {
            let to = staged.join(path);
            sync_dir(&to)?;
            fs::set_permissions(&to, Permissions::from_mode(*mode)).map_err(StoreError::io(&to))?;
        }
    }
    sync_dir(staging)?;
    if list(&staged)? != wanted || list(&from)? != wanted {
        return Err(changed(&from));
    }
    fs::rename(staging, &place).map_err(StoreError::io(&place))?;
    Ok(sync_dir(dir.path())?)
}

fn changed(path: &Path) -> CustodyError {
    CustodyError::Evidence(path.display().to_string(), "changed while it was copied".to_owned())
}

fn set_aside(dir: &ReceiptDir, place: &Path) -> Result<(), StoreError> {
    let free = |n: &u32| fs::symlink_metadata(dir.path().join(format!(".records-{n}"))).is_err();
    let aside = dir.path().join(format!(".records-{}", (1..).find(free).unwrap_or(1)));
    fs::rename(place, &aside).map_err(StoreError::io(&aside))?;
    sync_dir(dir.path())
}

/// Everything at and below the folder `top`; its own path in the list is empty.
fn list(top: &Path) -> Result<Listing, CustodyError> {
    let mut found = Listing::new();
    let mut waiting = vec![PathBuf::new()];
    while let Some(path) = waiting.pop() {
        let place = if path.as_os_str().is_empty() { top.to_owned() } else { top.join(&path) };
        let meta = fs::symlink_metadata(&place).map_err(StoreError::io(&place))?;
        let kept = if meta.is_file() {
            Kept::File(look(&place)?)
        } else if meta.is_dir() {
            for entry in fs::read_dir(&place).map_err(StoreError::io(&place))? {
                waiting.push(path.join(entry.map_err(StoreError::io(&place))?.file_name()));
            }
            Kept::Folder { mode: meta.permissions().mode() & 0o7777 }
        } else {
            let why = "is neither a folder nor a regular file, and records are kept of nothing else";
            return Err(CustodyError::Evidence(place.display().to_string(), why.to_owned()));
        };
        found.insert(path, kept);
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::super::write_bytes;
    use super::*;

    /// A directory that goes with its test, whatever rights the folders in it have.
    struct Temporary(tempfile::TempDir);

    impl Drop for Temporary {
        fn drop(&mut self) {
            let mut folders = vec![self.0.path().to_owned()];
            while let Some(folder) = folders.pop() {
                let _ = fs::set_permissions(&folder, Permissions::from_mode(0o700));
                let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
                folders.extend(
                    entries.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir())).map(|e| e.path()),
                );
            }
        }
    }

    fn place() -> (Temporary, ReceiptDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let (dir, root) = (temp.path().join("key"), temp.path().join("tree"));
        make_dir(&dir).unwrap();
        make_dir(&root.join(".devlyn/deep/empty")).unwrap();
        write_bytes(&root.join(".devlyn/deep/raw"), b"\0\x01\n").unwrap();
        fs::set_permissions(root.join(".devlyn/deep/raw"), Permissions::from_mode(0o640)).unwrap();
        fs::set_permissions(root.join(".devlyn/deep"), Permissions::from_mode(0o550)).unwrap();
        (Temporary(temp), ReceiptDir::new(dir), root)
    }

    #[test]
    fn bytes_modes_and_empty_folders_are_kept_and_kept_once() {
        let (_temp, dir, root) = place();
        keep_records(&dir, &root).unwrap();
        assert_eq!(list(&dir.records().join(EVIDENCE)).unwrap(), list(&root.join(EVIDENCE)).unwrap());
        let before = fs::symlink_metadata(dir.records()).unwrap().modified().unwrap();
        keep_records(&dir, &root).unwrap();
        assert_eq!(fs::symlink_metadata(dir.records()).unwrap().modified().unwrap(), before);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
    }

    #[test]
    fn records_that_differ_are_set_aside() {
        let (_temp, dir, root) = place();
        make_dir(&dir.records()).unwrap();
        write_bytes(&dir.records().join("old"), b"old").unwrap();
        keep_records(&dir, &root).unwrap();
        assert_eq!(fs::read(dir.path().join(".records-1/old")).unwrap(), b"old");
        assert!(dir.records().join(".devlyn/deep/raw").is_file());
    }

    #[test]
    fn a_link_or_a_pipe_among_the_records_keeps_everything_where_it_is() {
        for make in [
            |path: &Path| std::os::unix::fs::symlink("/etc/passwd", path).unwrap(),
            |path: &Path| rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RUSR).unwrap(),
        ] {
            let (_temp, dir, root) = place();
            make(&root.join(".devlyn/odd"));
            assert!(keep_records(&dir, &root).unwrap_err().to_string().contains("odd"));
            assert!(!dir.records().exists());
        }
        let (_temp, dir, root) = place();
        keep_records(&dir, &root.join(".devlyn/deep")).unwrap();
        assert!(!dir.records().exists(), "nothing to keep");
    }
}
