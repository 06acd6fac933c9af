//! Emptying a directory that is ours by identity. Never through a link, across a mount, or where Git keeps data.
//!
//! Everything is done relative to open directories, each of which was checked after it was opened: whoever swaps a
//! directory for a link meanwhile makes the call fail, and never makes it reach out of the tree. However deep the tree
//! is, one directory is open at a time; the way back is `..`, whose identity is checked too.

use std::ffi::OsString;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, Stat, fchmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use self::enter::{READ, enter};
use super::mounts::mounted_below;

mod enter;

/// What tells a file from every other one of the machine as long as it exists: its device and inode.
pub type FileIdentity = (u64, u64);

/// Why a directory was not emptied.
#[derive(Debug, thiserror::Error)]
pub enum EmptyError {
    /// It is a link, no directory, or another directory than it was. Nothing was changed.
    #[error("{} is not the directory that it was (a link, a file or a new directory is there)", .0.display())]
    Replaced(PathBuf),
    /// A name `.git` is in it. Nothing was changed.
    #[error("{} is Git's data, and may be all there is of it", .0.display())]
    GitData(PathBuf),
    /// Something is mounted in it. Nothing was changed, unless it was mounted meanwhile.
    #[error("something is mounted at {}", .0.display())]
    Mounted(PathBuf),
    /// Somebody moves its directories about meanwhile. Some of it may be gone.
    #[error("{} is being moved while it is emptied", .0.display())]
    Moving(PathBuf),
    /// A file of it could not be read or removed. Some of it may be gone.
    #[error("cannot clear {}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// The identity of what is at `path`, of the link itself where it is one.
///
/// # Errors
/// Where nothing is there, or it cannot be looked at.
pub fn identity(path: &Path) -> io::Result<FileIdentity> {
    let metadata = path.symlink_metadata()?;
    Ok((metadata.dev(), metadata.ino()))
}

/// Removes everything in `directory`, which must be the very one of identity `expected`, and leaves it there. Links are
/// removed, never followed; what our own caches made read-only goes too. Returns the sum of the sizes of the files that
/// were removed, in bytes.
///
/// # Errors
/// [`EmptyError`]; all refusals come before the first change.
pub fn empty(directory: &Path, expected: FileIdentity) -> Result<u64, EmptyError> {
    let failed = |source: io::Error| EmptyError::Io { path: directory.to_owned(), source };
    let stat = statat(CWD, directory, AtFlags::SYMLINK_NOFOLLOW).map_err(|error| failed(error.into()))?;
    if of(&stat) != expected || FileType::from_raw_mode(stat.st_mode) != FileType::Directory {
        return Err(EmptyError::Replaced(directory.to_owned()));
    }
    if let Some(mount) = mounted_below(directory).map_err(failed)? {
        return Err(EmptyError::Mounted(mount));
    }
    Walk::start(directory, expected, Purpose::Survey)?.run()?;
    Walk::start(directory, expected, Purpose::Remove)?.run()
}

fn of(stat: &Stat) -> FileIdentity {
    #[allow(clippy::unnecessary_cast, reason = "the types of these fields differ between systems")]
    (stat.st_dev as u64, stat.st_ino as u64)
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Look for what forbids the removal; leave every mode as it was.
    Survey,
    /// Remove.
    Remove,
}

/// A directory on the way from the top to the open one.
#[derive(Debug)]
struct Level {
    name: OsString,
    identity: FileIdentity,
    /// The directories in it that are still to be visited.
    waiting: Vec<OsString>,
    /// The mode that it had, where it was changed to get in.
    mode: Option<Mode>,
}

#[derive(Debug)]
struct Walk {
    purpose: Purpose,
    top: PathBuf,
    open: OwnedFd,
    levels: Vec<Level>,
    bytes: u64,
}

impl Walk {
    fn start(top: &Path, expected: FileIdentity, purpose: Purpose) -> Result<Self, EmptyError> {
        let failed = |error: Errno| EmptyError::Io { path: top.to_owned(), source: error.into() };
        let replaced = || EmptyError::Replaced(top.to_owned());
        let (open, stat, mode) = match enter(CWD, top.as_os_str(), purpose, true) {
            Ok(entered) => entered,
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(replaced()),
            Err(error) => return Err(failed(error)),
        };
        let top_level = Level { name: top.as_os_str().to_owned(), identity: of(&stat), waiting: Vec::new(), mode };
        let walk = Self { purpose, top: top.to_owned(), open, levels: vec![top_level], bytes: 0 };
        if of(&stat) == expected { Ok(walk) } else { Err(walk.undone(replaced())) }
    }

    fn run(mut self) -> Result<u64, EmptyError> {
        match self.walk() {
            Ok(()) => Ok(self.bytes),
            Err(error) => Err(self.undone(error)),
        }
    }

    fn walk(&mut self) -> Result<(), EmptyError> {
        self.visit()?;
        while let Some(level) = self.levels.last_mut() {
            if let Some(name) = level.waiting.pop() {
                self.descend(name)?;
            } else if self.levels.len() > 1 {
                self.ascend()?;
            } else {
                return self.restore().map_err(|error| self.failed(None, error));
            }
        }
        Ok(())
    }

    /// Looks at what is in the open directory: judges or removes what is no directory, and notes the directories.
    fn visit(&mut self) -> Result<(), EmptyError> {
        let entries = Dir::read_from(&self.open).map_err(|error| self.failed(None, error))?;
        let mut waiting = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|error| self.failed(None, error))?;
            let name = OsString::from_vec(entry.file_name().to_bytes().to_vec());
            if name == "." || name == ".." {
                continue;
            }
            if name.eq_ignore_ascii_case(".git") {
                return Err(EmptyError::GitData(self.path(Some(&name))));
            }
            let known = entry.file_type();
            if known == FileType::Directory {
                waiting.push(name);
                continue;
            }
            if known != FileType::Unknown && self.purpose == Purpose::Survey {
                continue;
            }
            match statat(&self.open, &name, AtFlags::SYMLINK_NOFOLLOW) {
                Ok(stat) if FileType::from_raw_mode(stat.st_mode) == FileType::Directory => waiting.push(name),
                Ok(stat) if self.purpose == Purpose::Remove => self.remove(&name, &stat)?,
                Ok(_) | Err(Errno::NOENT) => {}
                Err(error) => return Err(self.failed(Some(&name), error)),
            }
        }
        if let Some(level) = self.levels.last_mut() {
            level.waiting = waiting;
        }
        Ok(())
    }

    fn remove(&mut self, name: &OsString, stat: &Stat) -> Result<(), EmptyError> {
        match unlinkat(&self.open, name, AtFlags::empty()) {
            Ok(()) if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile => {
                self.bytes = self.bytes.saturating_add(u64::try_from(stat.st_size).unwrap_or(0));
            }
            Ok(()) | Err(Errno::NOENT) => {}
            Err(error) => return Err(self.failed(Some(name), error)),
        }
        Ok(())
    }

    fn descend(&mut self, name: OsString) -> Result<(), EmptyError> {
        let (open, stat, mode) = match enter(self.open.as_fd(), &name, self.purpose, false) {
            Ok(entered) => entered,
            Err(Errno::NOENT) => return Ok(()),
            Err(Errno::XDEV) => return Err(EmptyError::Mounted(self.path(Some(&name)))),
            Err(Errno::LOOP | Errno::NOTDIR) => return Err(EmptyError::Moving(self.path(Some(&name)))),
            Err(error) => return Err(self.failed(Some(&name), error)),
        };
        let identity = of(&stat);
        let mounted = self.levels.first().is_some_and(|top| top.identity.0 != identity.0);
        self.open = open;
        self.levels.push(Level { name, identity, waiting: Vec::new(), mode });
        if mounted { Err(EmptyError::Mounted(self.path(None))) } else { self.visit() }
    }

    /// Goes back to the parent of the open directory, which has no more to visit.
    fn ascend(&mut self) -> Result<(), EmptyError> {
        let above = self.above()?;
        if self.purpose == Purpose::Survey {
            self.restore().map_err(|error| self.failed(None, error))?;
        }
        let Some(level) = self.levels.pop() else { return Ok(()) };
        self.open = above;
        if self.purpose == Purpose::Survey {
            return Ok(());
        }
        match unlinkat(&self.open, &level.name, AtFlags::REMOVEDIR) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(error) => Err(self.failed(Some(&level.name), error)),
        }
    }

    /// The directory above the open one, where it still is the one that we came from.
    fn above(&self) -> Result<OwnedFd, EmptyError> {
        let above = openat(&self.open, "..", READ, Mode::empty()).map_err(|error| self.failed(None, error))?;
        let stat = fstat(&above).map_err(|error| self.failed(None, error))?;
        let expected = self.levels.iter().rev().nth(1).map(|level| level.identity);
        if expected == Some(of(&stat)) { Ok(above) } else { Err(EmptyError::Moving(self.path(None))) }
    }

    /// Gives the open directory the mode that it had.
    fn restore(&mut self) -> Result<(), Errno> {
        match self.levels.last_mut().and_then(|level| level.mode.take()) {
            Some(mode) => fchmod(&self.open, mode),
            None => Ok(()),
        }
    }

    /// The same error, once every mode on the way back is as it was.
    fn undone(mut self, error: EmptyError) -> EmptyError {
        while !self.levels.is_empty() {
            let above = self.above();
            // The error that there is already says more than one from here.
            let _ = self.restore();
            self.levels.pop();
            match above {
                Ok(above) => self.open = above,
                Err(_) => break,
            }
        }
        error
    }

    /// The path of the open directory, or of `name` in it.
    fn path(&self, name: Option<&OsString>) -> PathBuf {
        let mut path = self.top.clone();
        path.extend(self.levels.iter().skip(1).map(|level| &level.name));
        path.extend(name);
        path
    }

    fn failed(&self, name: Option<&OsString>, error: Errno) -> EmptyError {
        EmptyError::Io { path: self.path(name), source: error.into() }
    }
}

#[cfg(test)]
mod tests;
