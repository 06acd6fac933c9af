//! Emptying a directory that is ours by identity. Never through a link, across a mount, or where Git keeps data.
//!
//! Everything is done relative to open directories, each of which was checked after it was opened: whoever swaps a
//! directory for a link meanwhile makes the call fail, and never makes it reach out of the tree. However deep the tree
//! is, one directory is open at a time; the way back is `..`, whose identity is checked too.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fchmod, fstat, openat, statat, unlinkat};
use rustix::io::Errno;

use super::mounts::mounted_below;

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
        let path = self.path(None);
        let Some(level) = self.levels.pop() else { return Ok(()) };
        self.open = above;
        if self.purpose == Purpose::Remove {
            match unlinkat(&self.open, &level.name, AtFlags::REMOVEDIR) {
                Ok(()) | Err(Errno::NOENT) => {}
                Err(error) => return Err(EmptyError::Io { path, source: error.into() }),
            }
        }
        Ok(())
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

const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory `name` of `parent` and no other: no link, and no mount unless it is the `top`. One whose mode
/// does not let us do what it is opened for gets one that does; the one that it had is returned.
fn enter(
    parent: BorrowedFd<'_>,
    name: &OsStr,
    purpose: Purpose,
    top: bool,
) -> Result<(OwnedFd, Stat, Option<Mode>), Errno> {
    let mut had = None;
    let open = match open_directory(parent, name, top) {
        Err(Errno::ACCESS) => {
            had = Some(unlock(parent, name)?);
            open_directory(parent, name, top)?
        }
        other => other?,
    };
    let stat = fstat(&open)?;
    let mode = permissions(Mode::from_raw_mode(stat.st_mode));
    let needed = match purpose {
        Purpose::Survey => Mode::RUSR | Mode::XUSR,
        Purpose::Remove => Mode::RWXU,
    };
    if had.is_none() && !mode.contains(needed) {
        // Only the owner may; for anybody else the first removal says what is wrong.
        had = fchmod(&open, mode | Mode::RWXU).is_ok().then_some(mode);
    }
    Ok((open, stat, had))
}

fn permissions(mode: Mode) -> Mode {
    mode & (Mode::RWXU | Mode::RWXG | Mode::RWXO | Mode::SUID | Mode::SGID | Mode::SVTX)
}

fn open_directory(parent: BorrowedFd<'_>, name: &OsStr, top: bool) -> Result<OwnedFd, Errno> {
    #[cfg(target_os = "linux")]
    if !top {
        use rustix::fs::{ResolveFlags, openat2};
        // A bind mount of the same file system has the same device, and only this tells it.
        match openat2(parent, name, READ, Mode::empty(), ResolveFlags::NO_XDEV | ResolveFlags::NO_SYMLINKS) {
            Err(Errno::NOSYS | Errno::PERM) => {}
            other => return other,
        }
    }
    let _ = top;
    openat(parent, name, READ, Mode::empty())
}

/// Lets us into a directory of ours, and returns the mode that it had.
#[cfg(target_os = "linux")]
fn unlock(parent: BorrowedFd<'_>, name: &OsStr) -> Result<Mode, Errno> {
    use std::os::fd::AsRawFd;
    // `chmod` follows links. A handle does not, and its name below /proc means what it holds, whatever is there by now.
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let handle = openat(parent, name, flags, Mode::empty())?;
    let mode = permissions(Mode::from_raw_mode(fstat(&handle)?.st_mode));
    rustix::fs::chmod(format!("/proc/self/fd/{}", handle.as_raw_fd()), mode | Mode::RWXU)?;
    Ok(mode)
}

/// Lets us into a directory of ours, and returns the mode that it had.
#[cfg(not(target_os = "linux"))]
fn unlock(parent: BorrowedFd<'_>, name: &OsStr) -> Result<Mode, Errno> {
    let mode = permissions(Mode::from_raw_mode(statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode));
    rustix::fs::chmodat(parent, name, mode | Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(mode)
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::Write;
    use std::os::unix::fs::{PermissionsExt, symlink};
    use std::process::Stdio;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;
    use crate::os::process::testing::{again, shell};

    fn put(path: &Path, text: &str) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
    }

    fn is_empty(directory: &Path) -> bool {
        fs::read_dir(directory).unwrap().next().is_none()
    }

    fn emptied(directory: &Path) -> Result<u64, EmptyError> {
        empty(directory, identity(directory).unwrap())
    }

    #[test]
    fn everything_goes_but_the_directory_and_what_links_lead_to() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        put(&outside.join("precious"), "precious");
        put(&tree.join("deep/er/object.o"), "object");
        put(&tree.join(".gitignore"), "1234");
        for (to, name) in
            [(&outside, "dir"), (&outside.join("precious"), "file"), (&root.path().join("none"), "deep/broken")]
        {
            symlink(to, tree.join(name)).unwrap();
        }
        fs::hard_link(outside.join("precious"), tree.join("hard")).unwrap();
        rustix::fs::mkfifoat(CWD, tree.join("fifo"), Mode::RWXU).unwrap();
        let before = identity(&tree).unwrap();
        assert_eq!(emptied(&tree).unwrap(), 6 + 4 + 8);
        assert!(is_empty(&tree));
        assert_eq!((identity(&tree).unwrap(), emptied(&tree).unwrap()), (before, 0));
        assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "precious");
    }

    #[test]
    fn git_s_data_in_any_case_keeps_everything() {
        for (name, directory) in [(".git", true), (".GiT", true), (".git", false), (".GIT", false)] {
            let tree = tempfile::tempdir().unwrap();
            put(&tree.path().join("artifact"), "x");
            let git = tree.path().join("sub/checkout").join(name);
            put(&if directory { git.join("HEAD") } else { git.clone() }, "x");
            let sub = tree.path().join("sub");
            fs::set_permissions(&sub, fs::Permissions::from_mode(0o311)).unwrap();
            assert!(matches!(emptied(tree.path()), Err(EmptyError::GitData(path)) if path == git));
            assert!(tree.path().join("artifact").exists());
            assert_eq!(sub.metadata().unwrap().permissions().mode() & 0o7777, 0o311, "as it was");
        }
    }

    #[test]
    fn another_directory_or_a_link_in_its_place_is_not_ours() {
        let root = tempfile::tempdir().unwrap();
        let (tree, moved) = (root.path().join("tree"), root.path().join("moved"));
        put(&tree.join("mine"), "x");
        let expected = identity(&tree).unwrap();
        fs::rename(&tree, &moved).unwrap();
        assert!(matches!(empty(&tree, expected), Err(EmptyError::Io { .. })));
        symlink(&moved, &tree).unwrap();
        assert!(matches!(empty(&tree, expected), Err(EmptyError::Replaced(path)) if path == tree));
        assert!(matches!(empty(&tree, identity(&tree).unwrap()), Err(EmptyError::Replaced(_))));
        fs::remove_file(&tree).unwrap();
        put(&tree.join("theirs"), "x");
        assert!(matches!(empty(&tree, expected), Err(EmptyError::Replaced(_))));
        assert!(moved.join("mine").exists() && tree.join("theirs").exists());
    }

    #[test]
    fn no_depth_is_too_deep() {
        let tree = tempfile::tempdir().unwrap();
        let mut open = openat(CWD, tree.path(), READ, Mode::empty()).unwrap();
        for _ in 0..3000 {
            rustix::fs::mkdirat(&open, "directory", Mode::RWXU).unwrap();
            open = openat(&open, "directory", READ, Mode::empty()).unwrap();
        }
        emptied(tree.path()).unwrap();
        assert!(is_empty(tree.path()));
    }

    #[test]
    fn a_directory_swapped_for_a_link_meanwhile_leads_nowhere() {
        let root = tempfile::tempdir().unwrap();
        let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
        put(&outside.join("sub/precious"), "precious");
        fs::create_dir(&tree).unwrap();
        let (victim, aside) = (tree.join("victim"), root.path().join("aside"));
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let _ = fs::create_dir_all(victim.join("sub"));
                    let _ = File::create(victim.join("sub/file"));
                    let _ = fs::rename(&victim, &aside);
                    let _ = symlink(&outside, &victim);
                    let _ = fs::remove_file(&victim);
                    let _ = fs::remove_dir_all(&aside);
                }
            });
            for _ in 0..500 {
                // Whether it succeeds is luck here.
                let _ = emptied(&tree);
            }
            over.store(true, Ordering::Relaxed);
        });
        assert_eq!(fs::read_to_string(outside.join("sub/precious")).unwrap(), "precious");
    }

    /// Runs the ignored test `name` of this module behind `prefix`; whether that was possible.
    fn elsewhere(prefix: &str, name: &str) -> bool {
        let victim = again(&format!("os::tree::tests::{name}"), &[]);
        let mut command = shell(&format!("exec {prefix} \"$@\""), &[], Path::new("/"));
        command.arg(victim.get_program()).args(victim.get_args()).env("DEVLYN_TEST", "1");
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        let possible = text.contains("running 1 test");
        assert!(!possible || output.status.success(), "{text}");
        possible
    }

    #[test]
    #[ignore = "a part of the test below, which runs it as a user whom modes keep out"]
    fn locked() {
        if std::env::var_os("DEVLYN_TEST").is_none() {
            return;
        }
        let tree = tempfile::tempdir().unwrap();
        for (name, mode) in [("a/read-only", 0o555), ("a/closed", 0o000), ("b/blind", 0o100), ("b/b/stuck", 0o600)] {
            let directory = tree.path().join(name);
            put(&directory.join("sub/file"), "12345");
            fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::create_dir(tree.path().join("x")).unwrap();
        put(&tree.path().join("x/.git"), "");
        let mode = |name: &str| tree.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
        assert!(matches!(emptied(tree.path()), Err(EmptyError::GitData(_))));
        assert_eq!((mode("a/read-only"), mode("a/closed"), mode("b/blind")), (0o555, 0, 0o100));
        fs::remove_file(tree.path().join("x/.git")).unwrap();
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o500)).unwrap();
        assert_eq!(emptied(tree.path()).unwrap(), 20);
        assert!(is_empty(tree.path()));
        assert_eq!(tree.path().metadata().unwrap().permissions().mode() & 0o777, 0o500);
        fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o700)).unwrap();
    }

    #[test]
    fn a_mode_keeps_nobody_from_what_is_his() {
        if rustix::process::geteuid().is_root() {
            elsewhere("setpriv --reuid 65534 --regid 65534 --clear-groups --", "locked");
        } else {
            assert!(elsewhere("env", "locked"));
        }
    }

    #[test]
    #[ignore = "a part of the test below, which runs it where it may mount"]
    fn mounted() {
        if std::env::var_os("DEVLYN_TEST").is_none() {
            return;
        }
        let (tree, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let point = tree.path().join("a b/mounted");
        fs::create_dir_all(&point).unwrap();
        put(&tree.path().join("artifact"), "x");
        put(&outside.path().join("precious"), "precious");
        let mut mount = shell("mount --bind \"$1\" \"$2\"", &[outside.path(), &point], Path::new("/"));
        assert!(mount.status().unwrap().success());
        assert!(
            matches!(emptied(tree.path()), Err(EmptyError::Mounted(path)) if path == point.canonicalize().unwrap())
        );
        // Where it is mounted only after that look, the walk itself does not go in.
        let walk = Walk::start(tree.path(), identity(tree.path()).unwrap(), Purpose::Survey).unwrap();
        assert!(matches!(walk.run(), Err(EmptyError::Mounted(path)) if path == point));
        assert!(tree.path().join("artifact").exists() && point.join("precious").exists());
        assert!(shell("umount \"$1\"", &[&point], Path::new("/")).status().unwrap().success());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_mount_of_the_same_file_system_keeps_everything() {
        let allowed = shell("unshare --mount true", &[], Path::new("/")).stderr(Stdio::null()).status().unwrap();
        if allowed.success() {
            elsewhere("unshare --mount", "mounted");
        }
    }
}
