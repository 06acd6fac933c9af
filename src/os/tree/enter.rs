//! Opening a directory of ours by its name in an open one, whatever its mode, and nothing else in its place.

use std::ffi::OsStr;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, Stat, fchmod, fstat, openat};
use rustix::io::Errno;

use super::Purpose;

/// How a directory is opened, and never a link.
pub(super) const READ: OFlags = OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

/// Opens the directory `name` of `parent` and no other: no link, and no mount unless it is the `top`. One whose mode
/// does not let us do what it is opened for gets one that does; the one that it had is returned.
pub(super) fn enter(
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
    use rustix::fs::{AtFlags, chmodat, statat};
    let mode = permissions(Mode::from_raw_mode(statat(parent, name, AtFlags::SYMLINK_NOFOLLOW)?.st_mode));
    chmodat(parent, name, mode | Mode::RWXU, AtFlags::SYMLINK_NOFOLLOW)?;
    Ok(mode)
}
