//! Lock files that nobody holds any more. Git makes them, and leaves them where it is killed or the power fails; they
//! then stand in the way for good, for nothing in them tells who made them.

use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a lock file must stay as it is before it is looked at who could hold it: Git holds one for milliseconds.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often it is looked at meanwhile.
const TICK: Duration = Duration::from_millis(50);

/// Takes away the lock file `path` where it is abandoned; whether it is gone now, by us or by its holder.
///
/// It is abandoned where it stays as it is for a second, no process has it open, and no `git` that could have made it
/// works in `places` from before that second to behind it. What cannot be told counts as held.
#[must_use]
pub fn release(path: &Path, places: &[&Path]) -> bool {
    let Some(before) = stamp(path) else { return true };
    let Some(suspects) = holders(path, places) else { return false };
    let mut waited = Duration::ZERO;
    while waited < PATIENCE {
        std::thread::sleep(TICK);
        waited += TICK;
        if stamp(path) != Some(before) {
            // Gone, or another one: somebody is at work.
            return stamp(path).is_none();
        }
    }
    match holders(path, places) {
        Some(now) if !now.iter().any(|process| suspects.contains(process)) && stamp(path) == Some(before) => {
            std::fs::remove_file(path).is_ok()
        }
        Some(_) | None => false,
    }
}

/// What tells one lock file from the next of the same name.
fn stamp(path: &Path) -> Option<(u64, u64, i64, i64)> {
    use std::os::unix::fs::MetadataExt;
    let meta = std::fs::symlink_metadata(path).ok().filter(std::fs::Metadata::is_file)?;
    Some((meta.dev(), meta.ino(), meta.mtime(), meta.mtime_nsec()))
}

/// The processes that could hold the lock, each by number and start; `None` where that cannot be told.
#[cfg(target_os = "linux")]
fn holders(path: &Path, places: &[&Path]) -> Option<Vec<(i32, u64)>> {
    use super::table;
    let processes = table::all().ok()?;
    let real = |place: &Path| place.canonicalize().unwrap_or_else(|_| place.to_owned());
    let (lock, places): (PathBuf, Vec<PathBuf>) = (real(path), places.iter().map(|place| real(place)).collect());
    // `git devlyn` waits for us with its own name, and holds nothing.
    let mut line = vec![std::process::id().cast_signed()];
    while let Some(process) = processes.iter().find(|process| Some(&process.pid) == line.last())
        && process.parent > 0
        && !line.contains(&process.parent)
    {
        line.push(process.parent);
    }
    let could = |process: &&table::Process| {
        if process.is_dead() || line.contains(&process.pid) {
            return false;
        }
        let folder = PathBuf::from(format!("/proc/{}", process.pid));
        let opened = |entry: std::fs::DirEntry| std::fs::read_link(entry.path()).is_ok_and(|target| target == lock);
        if std::fs::read_dir(folder.join("fd")).is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(opened))) {
            return true;
        }
        // `git` and its parts (`git-remote-https`), and not every service that is named after it.
        let git = process.name == "git" || process.name.starts_with("git-") && process.name != "git-devlyn";
        // One that cannot be looked into is another user's; it could be at work here too.
        git && std::fs::read_link(folder.join("cwd"))
            .map_or(true, |cwd| places.iter().any(|place| cwd.starts_with(place)))
    };
    Some(processes.iter().filter(could).map(table::Process::id).collect())
}

/// The processes that could hold the lock: unknown here.
#[cfg(not(target_os = "linux"))]
fn holders(_path: &Path, _places: &[&Path]) -> Option<Vec<(i32, u64)>> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::super::process::testing::{Guarded, shell, until};
    use super::*;

    #[test]
    fn a_lock_that_nobody_holds_goes_and_one_that_somebody_has_open_stays() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("index.lock");
        assert!(release(&lock, &[dir.path()]), "there is none");
        std::fs::File::create(&lock).unwrap();
        assert!(release(&lock, &[dir.path()]) && !lock.exists());
        std::fs::File::create(&lock).unwrap();
        let holder = Guarded(shell("exec 3<index.lock; touch ready; exec sleep 600", &[], dir.path()).spawn().unwrap());
        until("it is open", || dir.path().join("ready").exists());
        assert!(!release(&lock, &[]) && lock.exists());
        drop(holder);
        assert!(release(&lock, &[]));
    }

    #[test]
    fn a_git_that_works_there_could_hold_any_lock() {
        let dir = tempfile::tempdir().unwrap();
        let lock = dir.path().join("x.lock");
        std::fs::File::create(&lock).unwrap();
        assert!(shell("cp \"$(command -v sleep)\" git", &[], dir.path()).status().unwrap().success());
        let git = Guarded(shell("touch ready; exec ./git 600", &[], dir.path()).spawn().unwrap());
        until("it runs", || {
            let name = std::fs::read_to_string(format!("/proc/{}/comm", git.0.id())).unwrap_or_default();
            name.trim() == "git"
        });
        assert!(!release(&lock, &[dir.path()]));
        let elsewhere = tempfile::tempdir().unwrap();
        assert!(release(&lock, &[elsewhere.path()]));
    }
}
