//! Evidence files: where they may lie, and reading them without following a link or taking in more than was asked for.

use std::fs::OpenOptions;
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};

use rustix::fs::OFlags;

use super::{AcceptanceError, Result};
use crate::exchange::LOOP_EVIDENCE;
use crate::os::of_the_machine;
use crate::store::{CustodyError, collect};

/// The largest listed file that is read, in bytes.
pub(super) const LARGEST: u64 = 16 << 20;

/// Why a listed file is not taken for evidence.
#[derive(Debug)]
pub(super) enum Unusable {
    /// What is wrong with it, to be read behind its name.
    Wrong(String),
    /// Nothing is known of it.
    Unknown(AcceptanceError),
}

impl From<String> for Unusable {
    fn from(why: String) -> Self {
        Self::Wrong(why)
    }
}

/// The path of a listed file relative to `worktree`, which must be a regular file below `folder` of it and lie behind
/// no link.
///
/// # Errors
/// Why it is no evidence.
pub(super) fn place(worktree: &Path, listed: &str, folder: &str) -> Result<String, Unusable> {
    let path = Path::new(listed);
    let outside = || format!("lies outside {}", worktree.join(folder).display());
    let real;
    let inner = if path.is_absolute() && !path.starts_with(worktree) {
        // The same place may be named through a link above the worktree.
        real = std::fs::canonicalize(path).map_err(|error| error.to_string())?;
        real.strip_prefix(worktree).map_err(|_| outside())?
    } else {
        path.strip_prefix(worktree).unwrap_or(path)
    };
    let plain: PathBuf = inner.components().filter(|part| *part != Component::CurDir).collect();
    if !plain.components().all(|part| matches!(part, Component::Normal(_))) || !plain.starts_with(folder) {
        return Err(outside().into());
    }
    let relative = plain.to_str().ok_or_else(outside)?.to_owned();
    match collect(worktree, std::slice::from_ref(&relative)) {
        Ok(found) if found.len() == 1 && found.contains(&relative) => Ok(relative),
        Ok(_) => Err("is no regular file".to_owned().into()),
        Err(CustodyError::Store(error)) => Err(Unusable::Unknown(error.into())),
        Err(CustodyError::Evidence(_, why) | CustodyError::Changed(_, why)) => Err(why.into()),
    }
}

/// The bytes of the regular file `path`; nothing where there is none. The inner error says why what is there is not
/// read, to be read behind its name.
///
/// # Errors
/// Where the system fails.
pub(super) fn read(path: &Path, at_most: u64) -> std::io::Result<Option<std::result::Result<Vec<u8>, String>>> {
    // Never waits: a FIFO that nobody writes to must not hang a verdict.
    let flags = i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).unwrap_or(0);
    let file = match OpenOptions::new().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error()) => {
            return Ok(Some(Err("is a symbolic link".to_owned())));
        }
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Ok(Some(Err("is no regular file".to_owned())));
    }
    let mut bytes = Vec::new();
    file.take(at_most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > at_most {
        return Ok(Some(Err(format!("has more than {at_most} bytes"))));
    }
    Ok(Some(Ok(bytes)))
}

/// The relative path and the bytes of a listed file below `folder` of the worktree.
///
/// # Errors
/// Why it cannot be read.
pub(super) fn read_listed(worktree: &Path, listed: &str, folder: &str) -> Result<(String, Vec<u8>), Unusable> {
    let relative = place(worktree, listed, folder)?;
    let path = worktree.join(&relative);
    match read(&path, LARGEST) {
        Ok(Some(bytes)) => Ok((relative, bytes?)),
        Ok(None) => Err("is not there".to_owned().into()),
        Err(error) if of_the_machine(&error) => Err(Unusable::Unknown(AcceptanceError::io(&path)(error))),
        Err(error) => Err(error.to_string().into()),
    }
}

/// The evidence folder of the worktree, made where it is missing.
///
/// # Errors
/// Where it lies behind a link, which could lead the evidence anywhere, or cannot be made.
pub(super) fn loop_dir(worktree: &Path) -> Result<PathBuf> {
    let mut place = worktree.to_owned();
    for part in Path::new(LOOP_EVIDENCE).components() {
        place.push(part);
        no_link(&place)?;
    }
    create_dir_all(&place)?;
    Ok(place)
}

/// A new numbered folder for the evidence of one run, one above the highest, and its path relative to the worktree.
///
/// # Errors
/// As [`loop_dir`].
pub(super) fn new_run(worktree: &Path) -> Result<String> {
    let runs = loop_dir(worktree)?.join("runs");
    no_link(&runs)?;
    create_dir_all(&runs)?;
    let taken = std::fs::read_dir(&runs).map_err(AcceptanceError::io(&runs))?;
    let numbers = taken.flatten().filter_map(|entry| entry.file_name().to_str()?.parse::<u64>().ok());
    let mut number = numbers.max().unwrap_or(0);
    loop {
        number = number.saturating_add(1);
        let run = runs.join(number.to_string());
        match std::fs::create_dir(&run) {
            Ok(()) => break,
            // Another run took it in this moment.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists && number < u64::MAX => {}
            Err(error) => return Err(AcceptanceError::io(&run)(error)),
        }
    }
    Ok(format!("{LOOP_EVIDENCE}/runs/{number}"))
}

fn create_dir_all(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(AcceptanceError::io(path))
}

fn no_link(place: &Path) -> Result<()> {
    match std::fs::symlink_metadata(place) {
        Ok(meta) if meta.file_type().is_symlink() => {
            let why = format!("{} is a symbolic link; evidence is kept in folders only", place.display());
            Err(AcceptanceError::Worktree { path: place.parent().unwrap_or(place).to_owned(), why })
        }
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(AcceptanceError::io(place)(error)),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::exchange::EVIDENCE;
    use crate::store::make_dir;
    use crate::store::write_bytes;

    fn tree() -> (tempfile::TempDir, PathBuf) {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap().join("tree");
        make_dir(&root.join(".devlyn/loop/runs")).unwrap();
        write_bytes(&root.join(".devlyn/a.json"), b"{}").unwrap();
        write_bytes(&root.join(".devlyn/loop/b.json"), b"{}").unwrap();
        (temp, root)
    }

    #[test]
    fn evidence_is_found_by_every_name_of_its_place_and_nowhere_else() {
        let (temp, root) = tree();
        let absolute = |path: &str| root.join(path).to_str().unwrap().to_owned();
        for (listed, folder) in [
            (absolute(".devlyn/a.json"), EVIDENCE),
            (".devlyn/a.json".to_owned(), EVIDENCE),
            ("./.devlyn/./a.json".to_owned(), EVIDENCE),
            (absolute(".devlyn/loop/b.json"), LOOP_EVIDENCE),
        ] {
            let place = place(&root, &listed, folder).unwrap();
            assert!(root.join(&place).is_file() && !place.contains("./"), "{place}");
        }
        symlink(temp.path(), temp.path().join("alias")).unwrap();
        let alias = temp.path().join("alias/tree/.devlyn/a.json");
        assert_eq!(place(&root, alias.to_str().unwrap(), EVIDENCE).unwrap(), ".devlyn/a.json");
        symlink(root.join(".devlyn/a.json"), root.join(".devlyn/link.json")).unwrap();
        symlink(temp.path(), root.join(".devlyn/out")).unwrap();
        for bad in
            ["", "/etc/passwd", ".devlyn", ".devlyn/none", ".devlyn/link.json", ".devlyn/out/tree/.devlyn/a.json", "a"]
        {
            assert!(place(&root, bad, EVIDENCE).is_err(), "{bad:?}");
        }
        let wrong = |listed: &str, folder: &str| match place(&root, listed, folder) {
            Err(Unusable::Wrong(why)) => why,
            other => panic!("{other:?}"),
        };
        assert!(wrong(&absolute(".devlyn/loop/../a.json"), EVIDENCE).contains("outside"));
        assert!(wrong(".devlyn/a.json", LOOP_EVIDENCE).contains(".devlyn/loop"));
    }

    #[test]
    fn reading_is_bounded_and_follows_nothing() {
        let (_temp, root) = tree();
        let path = root.join(".devlyn/a.json");
        assert_eq!(read(&path, 2).unwrap().unwrap().unwrap(), b"{}");
        assert!(read(&path, 1).unwrap().unwrap().unwrap_err().contains("more than 1"));
        assert!(read(&root, 1).unwrap().unwrap().unwrap_err().contains("no regular file"));
        assert!(read(&root.join("none"), 1).unwrap().is_none());
        symlink(&path, root.join("link")).unwrap();
        assert!(read(&root.join("link"), 9).unwrap().unwrap().unwrap_err().contains("symbolic link"));
        rustix::fs::mkfifoat(rustix::fs::CWD, root.join("fifo"), rustix::fs::Mode::RUSR).unwrap();
        assert!(read(&root.join("fifo"), 9).unwrap().unwrap().is_err());
    }

    #[test]
    fn runs_are_numbered_above_the_highest() {
        let (temp, root) = tree();
        assert_eq!(new_run(&root).unwrap(), ".devlyn/loop/runs/1");
        make_dir(&root.join(".devlyn/loop/runs/7")).unwrap();
        make_dir(&root.join(".devlyn/loop/runs/x9")).unwrap();
        assert_eq!(new_run(&root).unwrap(), ".devlyn/loop/runs/8");
        let bare = temp.path().join("bare");
        make_dir(&bare).unwrap();
        assert_eq!(new_run(&bare).unwrap(), ".devlyn/loop/runs/1");
        let led = temp.path().join("led");
        make_dir(&led).unwrap();
        symlink(&bare, led.join(".devlyn")).unwrap();
        assert!(new_run(&led).unwrap_err().to_string().contains("symbolic link"));
    }
}
