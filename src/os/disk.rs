//! Flushing: what is handed over here is on the disk when the call returns.
//!
//! Several files are flushed at the same time, because a file system writes its journal once for all that wait for
//! it; one after the other they would wait for one journal each.

use std::collections::BTreeSet;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

/// How many files are flushed at the same time.
const AT_ONCE: usize = 4;
/// From how many files on their whole file system is flushed instead of each of them.
#[cfg(target_os = "linux")]
const WHOLE: usize = 512;

/// A file or directory that could not be flushed.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be flushed: {source}", .path.display())]
pub struct FlushError {
    /// Which.
    pub path: PathBuf,
    /// Why.
    #[source]
    pub source: io::Error,
}

/// Flushes the files and directories at `paths`, whoever wrote them.
///
/// # Errors
/// The first that cannot be opened or flushed.
pub fn flush(paths: &[PathBuf]) -> Result<(), FlushError> {
    match paths {
        [] => Ok(()),
        [path] => one(path),
        #[cfg(target_os = "linux")]
        [path, ..] if paths.len() >= WHOLE && whole(path).is_ok() => Ok(()),
        paths => together(paths),
    }
}

/// Flushes everything below the directories `tops`, whoever wrote it: their whole file systems where that can be asked
/// for, which is one wait each however many files there are.
///
/// # Errors
/// The first that cannot be opened or flushed.
pub fn flush_below(tops: &[&Path]) -> Result<(), FlushError> {
    let mut done = BTreeSet::new();
    for top in tops {
        let device = std::fs::metadata(top).map_err(|source| FlushError { path: top.to_path_buf(), source })?.dev();
        if done.contains(&device) {
            continue;
        }
        #[cfg(target_os = "linux")]
        if whole(top).is_ok() {
            done.insert(device);
            continue;
        }
        each_below(top)?;
    }
    Ok(())
}

fn each_below(top: &Path) -> Result<(), FlushError> {
    let mut paths = vec![top.to_owned()];
    let mut folders = vec![top.to_owned()];
    while let Some(folder) = folders.pop() {
        let failed = |source| FlushError { path: folder.clone(), source };
        for entry in std::fs::read_dir(&folder).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let kind = entry.file_type().map_err(failed)?;
            if kind.is_dir() {
                folders.push(entry.path());
            }
            if kind.is_dir() || kind.is_file() {
                paths.push(entry.path());
            }
        }
    }
    together(&paths)
}

fn together(paths: &[PathBuf]) -> Result<(), FlushError> {
    let next = AtomicUsize::new(0);
    let lane = || {
        while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
            one(path)?;
        }
        Ok(())
    };
    std::thread::scope(|scope| {
        // A thread costs as much as a flush on a fast disk, so that there are few, and this one does its share.
        let others: Vec<_> = (1..AT_ONCE.min(paths.len().div_ceil(2))).map(|_| scope.spawn(lane)).collect();
        let own = lane();
        others.into_iter().fold(own, |so_far, other| {
            let ended = other.join().unwrap_or_else(|_| {
                let source = io::Error::other("the thread that flushed it ended");
                Err(FlushError { path: paths[0].clone(), source })
            });
            so_far.and(ended)
        })
    })
}

fn one(path: &Path) -> Result<(), FlushError> {
    let failed = |source| FlushError { path: path.to_owned(), source };
    File::open(path).and_then(|file| file.sync_all()).map_err(failed)
}

/// Flushes the file system that `path` is on.
#[cfg(target_os = "linux")]
fn whole(path: &Path) -> io::Result<()> {
    Ok(rustix::fs::syncfs(File::open(path)?)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_number_is_flushed_and_what_is_missing_is_named() {
        let dir = tempfile::tempdir().unwrap();
        let mut paths = vec![dir.path().to_owned()];
        for number in 0..40 {
            let path = dir.path().join(number.to_string());
            File::create(&path).unwrap();
            paths.push(path);
        }
        for number in [0, 1, 2, 17, 41] {
            flush(&paths[..number]).unwrap();
        }
        paths.push(dir.path().join("gone"));
        assert_eq!(flush(&paths).unwrap_err().path, dir.path().join("gone"));
        std::fs::create_dir(dir.path().join("inner")).unwrap();
        std::os::unix::fs::symlink("nowhere", dir.path().join("inner/link")).unwrap();
        flush_below(&[dir.path(), &dir.path().join("inner")]).unwrap();
        each_below(dir.path()).unwrap();
        assert_eq!(flush_below(&[&dir.path().join("gone")]).unwrap_err().path, dir.path().join("gone"));
    }
}
