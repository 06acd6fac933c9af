//! Whole-file exclusive locks, which the kernel frees when their holder dies.

use std::fs::{File, OpenOptions, TryLockError};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use rustix::fs::OFlags;

use super::{Result, StoreError, make_dir};

/// A lock that is held until it is dropped. Its file stays.
#[derive(Debug)]
pub struct Lock {
    _file: File,
}

impl Lock {
    /// Takes the lock `path`, waiting for it as long as it takes.
    ///
    /// # Errors
    /// Where the file cannot be made or locked.
    pub fn wait(path: &Path) -> Result<Self> {
        let file = open(path)?;
        file.lock().map_err(StoreError::io(path))?;
        Ok(Self { _file: file })
    }

    /// Whether another process has the lock `path` now. Makes no file, and has it for a moment where it is free: ask
    /// only about locks that are waited for.
    ///
    /// # Errors
    /// Where the file is there and cannot be opened.
    pub fn is_held(path: &Path) -> Result<bool> {
        match File::open(path) {
            Ok(file) => Ok(matches!(file.try_lock(), Err(TryLockError::WouldBlock))),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(StoreError::io(path)(error)),
        }
    }

    /// Takes the lock `path` at once.
    ///
    /// # Errors
    /// [`StoreError::Held`] where another process has it; otherwise as [`Lock::wait`].
    pub fn at_once(path: &Path) -> Result<Self> {
        let file = open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Self { _file: file }),
            Err(TryLockError::WouldBlock) => Err(StoreError::Held(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(StoreError::io(path)(error)),
        }
    }
}

fn open(path: &Path) -> Result<File> {
    if let Some(folder) = path.parent() {
        make_dir(folder)?;
    }
    // Without the second flag the opening of a FIFO would wait for a reader.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let open = || OpenOptions::new().append(true).create(true).custom_flags(flags).open(path);
    let file = open().map_err(StoreError::io(path))?;
    let meta = file.metadata().map_err(StoreError::io(path))?;
    if meta.is_file() { Ok(file) } else { Err(StoreError::invalid(path, "is no regular file, so it is no lock")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lock_is_held_once_and_free_when_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sub/queue.lock");
        let first = Lock::wait(&path).unwrap();
        assert!(matches!(Lock::at_once(&path), Err(StoreError::Held(held)) if held == path));
        assert!(Lock::is_held(&path).unwrap() && !Lock::is_held(&dir.path().join("none")).unwrap());
        drop(first);
        assert!(!Lock::is_held(&path).unwrap());
        Lock::at_once(&path).unwrap();
    }
}
