//! Package files where they stand: in a checkout.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use crate::git::Repo;
use crate::package::{FileState, Source};

/// The largest package file that is read, in bytes.
const LARGEST: u64 = 16 << 20;

/// The package files of a checkout, read without following a link out of it.
#[derive(Debug)]
pub struct CheckoutSource<'a> {
    repo: &'a Repo,
    root: PathBuf,
}

impl<'a> CheckoutSource<'a> {
    /// The files below the top of `repo`'s checkout.
    #[must_use]
    pub fn new(repo: &'a Repo) -> Self {
        Self { repo, root: repo.work_dir().to_owned() }
    }
}

impl Source for CheckoutSource<'_> {
    fn file(&self, path: &str) -> FileState {
        read_below(&self.root, path)
    }

    fn is_commit(&self, id: &str) -> bool {
        self.repo.exact_commit(id).is_ok_and(|found| found.is_some())
    }
}

/// The regular file at `path` below `root`, no link of which leads out of `root`.
fn read_below(root: &Path, path: &str) -> FileState {
    let place = root.join(path);
    let real = match std::fs::canonicalize(&place) {
        Ok(real) => real,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound && std::fs::symlink_metadata(&place).is_err() => {
            return FileState::Missing;
        }
        Err(error) => return FileState::Unreadable(error.to_string()),
    };
    if !real.starts_with(root) {
        return FileState::Unreadable(format!("is a link out of the repository, to {}", real.display()));
    }
    // Never waits: a FIFO that nobody writes to must not hang a check.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(&real) {
        Ok(file) => file,
        Err(error) => return FileState::Unreadable(error.to_string()),
    };
    match file.metadata() {
        Err(error) => FileState::Unreadable(error.to_string()),
        Ok(meta) if meta.is_dir() => FileState::Unreadable("is a directory".to_owned()),
        Ok(meta) if !meta.is_file() => FileState::Unreadable("is no regular file".to_owned()),
        Ok(meta) if meta.len() > LARGEST => {
            FileState::Unreadable(format!("has {} bytes; a package file has at most {LARGEST}", meta.len()))
        }
        Ok(_) => {
            let mut bytes = Vec::new();
            match file.take(LARGEST).read_to_end(&mut bytes) {
                Ok(_) => FileState::Bytes(bytes),
                Err(error) => FileState::Unreadable(error.to_string()),
            }
        }
    }
}
