//! Files that are there whole or not at all: a temporary file beside the target, flushed, renamed over it, the
//! directory flushed. The one place that writes state.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use serde::Serialize;

use super::{Result, StoreError};
use crate::json::{self, Map, Value};

/// The largest state file that is read, in bytes; ours have some thousands.
const LARGEST: u64 = 64 << 20;

/// The bytes of the state file `path`, `None` where nothing is there.
///
/// # Errors
/// Where it is no regular file, a symbolic link, larger than 64 MiB, or cannot be read.
pub fn read_bytes(path: &Path) -> Result<Option<Vec<u8>>> {
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Err(StoreError::invalid(path, "is a symbolic link; state is read from regular files only"));
        }
        Err(error) => return Err(StoreError::io(path)(error)),
    };
    let meta = file.metadata().map_err(StoreError::io(path))?;
    if !meta.is_file() {
        return Err(StoreError::invalid(path, "is no regular file"));
    }
    if meta.len() > LARGEST {
        return Err(StoreError::invalid(path, format!("has {} bytes, more than any state file", meta.len())));
    }
    let mut bytes = Vec::new();
    file.take(LARGEST).read_to_end(&mut bytes).map_err(StoreError::io(path))?;
    Ok(Some(bytes))
}

/// The object in a state file, and the file's bytes.
pub type StateFile = (Map<String, Value>, Vec<u8>);

/// The object in the state file `path` and its bytes, `None` where nothing is there.
///
/// # Errors
/// Where it is no regular file or no strict JSON object.
pub fn read_state(path: &Path) -> Result<Option<StateFile>> {
    let Some(bytes) = read_bytes(path)? else { return Ok(None) };
    let object = json::parse_object(&bytes).map_err(|error| StoreError::invalid(path, error))?;
    Ok(Some((object, bytes)))
}

/// Writes `value` as the state file `path`.
///
/// # Errors
/// Where a step of it fails; the file that was there is then still there.
pub fn write_state(path: &Path, value: &impl Serialize) -> Result<()> {
    let bytes = json::to_state(value).map_err(|error| StoreError::invalid(path, error))?;
    write_bytes(path, &bytes)
}

/// Writes `bytes` as the file `path`.
///
/// # Errors
/// As [`write_state`].
pub fn write_bytes(path: &Path, bytes: &[u8]) -> Result<()> {
    let folder = parent(path)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    sweep(folder, &name);
    let mut file = tempfile::Builder::new()
        .prefix(&format!(".{name}."))
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o644))
        .tempfile_in(folder)
        .map_err(StoreError::io(path))?;
    file.write_all(bytes).map_err(StoreError::io(path))?;
    file.as_file().sync_data().map_err(StoreError::io(path))?;
    file.persist(path).map_err(|error| StoreError::io(path)(error.error))?;
    sync_dir(folder)
}

/// Takes away what writers of the file `target` left when they were killed: each of them is followed by one that does
/// its work, under the same lock. Should a second one be at work all the same, its rename fails; nothing half is ever
/// seen.
fn sweep(folder: &Path, target: &str) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(|name| is_temporary(name, target)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Whether `name` is one that [`write_bytes`] gives a file on the way to becoming `target`.
#[must_use]
pub fn is_temporary(name: &str, target: &str) -> bool {
    let random = name.strip_prefix('.').and_then(|rest| rest.strip_prefix(target)?.strip_prefix('.'));
    random.is_some_and(|random| random.len() == 6 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()))
}

/// Appends `line` and a line feed to the log `path`, flushed. Where the last line there was cut off in the middle of its
/// writing, `line` stands below it and not in it.
///
/// # Errors
/// Where it cannot be opened, written or flushed.
pub fn append_line(path: &Path, line: &str) -> Result<()> {
    let flags = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or(0);
    let made = !path.exists();
    let open = OpenOptions::new().read(true).append(true).create(true).custom_flags(flags).open(path);
    let mut file = open.map_err(StoreError::io(path))?;
    let length = file.metadata().map_err(StoreError::io(path))?.len();
    let mut last = *b"\n";
    if length > 0 {
        file.read_exact_at(&mut last, length - 1).map_err(StoreError::io(path))?;
    }
    let above = if last == *b"\n" { "" } else { "\n" };
    file.write_all(format!("{above}{line}\n").as_bytes()).map_err(StoreError::io(path))?;
    file.sync_data().map_err(StoreError::io(path))?;
    if made { sync_dir(parent(path)?) } else { Ok(()) }
}

/// Makes the directory `path` and those above it that are missing, flushed.
///
/// # Errors
/// Where one cannot be made.
pub fn make_dir(path: &Path) -> Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let above = parent(path)?;
    make_dir(above)?;
    match fs::create_dir(path) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => Err(StoreError::io(path)(error)),
        _ => sync_dir(above),
    }
}

/// Whether something stands at `path`, a link that leads nowhere too.
///
/// # Errors
/// Where that cannot be told: nothing that is there may be taken for missing because a disk is broken.
pub fn is_there(path: &Path) -> Result<bool> {
    match fs::symlink_metadata(path) {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory) => {
            Ok(false)
        }
        Err(error) => Err(StoreError::io(path)(error)),
    }
}

/// Removes the file `path`, flushed; that it is gone already is no error.
///
/// # Errors
/// Where it cannot be removed.
pub fn remove_file(path: &Path) -> Result<()> {
    match fs::remove_file(path) {
        Ok(()) => sync_dir(parent(path)?),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StoreError::io(path)(error)),
    }
}

/// Flushes the directory `path`: the names in it.
///
/// # Errors
/// Where it cannot be opened or flushed.
pub fn sync_dir(path: &Path) -> Result<()> {
    File::open(path).and_then(|folder| folder.sync_all()).map_err(StoreError::io(path))
}

fn parent(path: &Path) -> Result<&Path> {
    path.parent().ok_or_else(|| StoreError::invalid(path, "has no directory above it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_file_is_written_whole_and_leaves_nothing_beside_it() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a/b.json");
        make_dir(path.parent().unwrap()).unwrap();
        write_state(&path, &json::json!({"b": 1, "a": "한"})).unwrap();
        write_state(&path, &json::json!({"b": 2})).unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{\n  \"b\": 2\n}\n");
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
        let temporary = tempfile::Builder::new().prefix(".b.json.").tempfile_in(dir.path()).unwrap();
        let name = temporary.path().file_name().unwrap().to_str().unwrap();
        assert!(
            is_temporary(name, "b.json") && !is_temporary("b.json", "b.json") && !is_temporary(".b.json.", "b.json")
        );
        assert_eq!(read_state(&path).unwrap().unwrap().0["b"], 2);
    }

    #[test]
    fn what_a_killed_writer_left_goes_with_the_next_one_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        for name in [".a.json.Ab3dE6", ".a.json.bak", ".a.json.Ab3dE67", ".b.json.Ab3dE6", "a.json.Ab3dE6"] {
            File::create(dir.path().join(name)).unwrap();
        }
        write_state(&dir.path().join("a.json"), &json::json!({})).unwrap();
        let mut left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, [".a.json.Ab3dE67", ".a.json.bak", ".b.json.Ab3dE6", "a.json", "a.json.Ab3dE6"]);
    }

    #[test]
    fn state_is_read_from_regular_files_only() {
        let dir = tempfile::tempdir().unwrap();
        let (real, link) = (dir.path().join("real"), dir.path().join("link"));
        write_state(&real, &json::json!({})).unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        assert!(read_state(&link).unwrap_err().to_string().contains("symbolic link"));
        assert!(read_state(dir.path()).unwrap_err().to_string().contains("regular file"));
        assert!(read_state(&dir.path().join("none")).unwrap().is_none());
        rustix::fs::mkfifoat(rustix::fs::CWD, dir.path().join("fifo"), rustix::fs::Mode::RUSR).unwrap();
        assert!(read_state(&dir.path().join("fifo")).unwrap_err().to_string().contains("regular file"));
    }

    #[test]
    fn lines_are_appended() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        append_line(&path, "one").unwrap();
        append_line(&path, "two").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_line_is_never_appended_to_one_that_was_cut_off() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        write_bytes(&path, b"one\ntw").unwrap();
        append_line(&path, "three").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "one\ntw\nthree\n");
    }
}
