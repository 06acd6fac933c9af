//! Who may still write into a tree. Observes only: it ends nobody and waits for nobody.
//!
//! On Linux every process is looked at through `/proc`: its directory, its root, its program and its open files. On
//! macOS `lsof` answers. Elsewhere nothing can be said, and so nothing is called done.

use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Why a tree cannot be taken for one that nobody writes into.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Writing {
    /// This process works in it or has something of it open.
    #[error("active process {pid} ({name}) uses {}; stop it, then try again", .tree.display())]
    Active {
        /// Its number.
        pid: u32,
        /// Its name.
        name: String,
        /// The tree.
        tree: PathBuf,
    },
    /// The current directory of this very process lies in it.
    #[error("the current directory lies in {}; call from outside of it", .0.display())]
    Inside(PathBuf),
    /// It cannot be told whether anybody does.
    #[error("{0}; it is kept until its writers are known to have stopped")]
    Unobservable(String),
}

/// Whether nobody writes into `tree`, as far as this machine can tell.
///
/// Our own process does not count but for its current directory ([`outside`]). A process that cannot be read counts
/// where it descends from us, where it belongs to our user and started after `since` (the time at which the tree was
/// made; none: at any time) unless it is the first process, and with `strict` always. Zombies do not count unless a
/// thread of theirs lives on.
///
/// # Errors
/// The first [`Writing`] found.
pub fn observe(tree: &Path, since: Option<SystemTime>, strict: bool) -> Result<(), Writing> {
    outside(tree)?;
    observe_others(tree, since, strict)
}

/// Refuses where the current directory of this process lies in `tree`.
///
/// # Errors
/// [`Writing::Inside`], or [`Writing::Unobservable`] where there is no current directory any more.
pub fn outside(tree: &Path) -> Result<(), Writing> {
    let current = std::env::current_dir()
        .map_err(|error| Writing::Unobservable(format!("the current directory cannot be read ({error})")))?;
    if current.starts_with(real(tree)) { Err(Writing::Inside(tree.to_owned())) } else { Ok(()) }
}

/// The path that the kernel shows for `path`.
fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(target_os = "linux")]
fn observe_others(tree: &Path, since: Option<SystemTime>, strict: bool) -> Result<(), Writing> {
    linux::Observer::new(tree, since, strict)?.observe()
}

#[cfg(target_os = "macos")]
fn observe_others(tree: &Path, _since: Option<SystemTime>, _strict: bool) -> Result<(), Writing> {
    lsof(tree)
}

#[cfg(not(any(target_os = "linux", target_os = "macos")))]
fn observe_others(_tree: &Path, _since: Option<SystemTime>, _strict: bool) -> Result<(), Writing> {
    Err(Writing::Unobservable("the writers of a tree cannot be observed on this system".into()))
}

#[cfg(any(target_os = "macos", test))]
fn lsof(tree: &Path) -> Result<(), Writing> {
    // The whole list: to be told of one tree only, `lsof` walks it, and is slower by far.
    let listed = super::process::tool("lsof", &["-w", "-n", "-P", "-F", "pcn"])
        .map_err(|error| Writing::Unobservable(format!("unknown process access: {error}")))?;
    match parse_lsof(&listed, &real(tree), std::process::id()) {
        Some((pid, name)) => Err(Writing::Active { pid, name, tree: tree.to_owned() }),
        None => Ok(()),
    }
}

/// The first process but `own` that has a file below `tree`, in what `lsof -F pcn` prints.
#[cfg(any(target_os = "macos", test))]
fn parse_lsof(listed: &[u8], tree: &Path, own: u32) -> Option<(u32, String)> {
    use std::os::unix::ffi::OsStrExt;
    let (mut pid, mut name) = (own, String::new());
    for line in listed.split(|b| *b == b'\n') {
        let (kind, rest) = line.split_first()?;
        match kind {
            b'p' => pid = std::str::from_utf8(rest).ok()?.parse().ok()?,
            b'c' => name = String::from_utf8_lossy(rest).into_owned(),
            b'n' if pid != own && Path::new(std::ffi::OsStr::from_bytes(rest)).starts_with(tree) => {
                return Some((pid, name));
            }
            _ => {}
        }
    }
    None
}

#[cfg(target_os = "linux")]
mod linux;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_caller_s_directory_counts() {
        let here = std::env::current_dir().unwrap();
        let message = outside(&here).unwrap_err().to_string();
        assert!(message.contains(here.to_str().unwrap()), "{message}");
        assert_eq!(
            observe(here.parent().unwrap(), None, false).unwrap_err(),
            Writing::Inside(here.parent().unwrap().into())
        );
        assert_eq!(outside(&here.join("src")), Ok(()));
        assert_eq!(outside(Path::new("/nowhere at all")), Ok(()));
    }

    #[test]
    fn the_list_of_lsof_names_the_process_of_a_file() {
        let listed = b"p1\ncinit\nfcwd\nn/\np7\ncours\nn/tree/x\np12\ncsh\nfcwd\nn/trees\nf1\nn/tree/a b\n";
        assert_eq!(parse_lsof(listed, Path::new("/tree"), 7), Some((12, "sh".into())));
        assert_eq!(parse_lsof(listed, Path::new("/other"), 7), None);
        assert_eq!(parse_lsof(b"", Path::new("/"), 7), None);
    }

    #[test]
    fn lsof_sees_a_writer_where_it_is_there() {
        use super::super::process::testing::{Guarded, shell, until};
        if super::super::process::tool("lsof", &["-v"]).is_err()
            && super::super::process::tool("lsof", &["-F", "p", "-p", "1"]).is_err()
        {
            return;
        }
        let tree = tempfile::tempdir().unwrap();
        assert_eq!(lsof(tree.path()), Ok(()));
        let writer = Guarded(shell("exec sleep 600", &[], tree.path()).spawn().unwrap());
        until("lsof sees it", || matches!(lsof(tree.path()), Err(Writing::Active { pid, .. }) if pid == writer.0.id()));
    }
}
