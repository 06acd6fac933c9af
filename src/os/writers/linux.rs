//! The look at every process through `/proc`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rustix::process::{geteuid, getuid};

use super::{Writing, real};
use crate::os::mounts;
use crate::os::table::{self, Process};

/// Ticks of a process's start time a second: the kernel's USER_HZ, which is 100 on every architecture that Rust knows.
const TICKS: u64 = 100;
/// How far a start time may seem to lie before the tree's: both are cut to whole seconds somewhere.
const SLACK: Duration = Duration::from_secs(2);
/// How often, and how long apart, one is looked at that hides.
const PATIENCE: usize = 20;
const TICK: Duration = Duration::from_millis(5);
/// How often the look is repeated while processes come and go under it.
const LOOKS: usize = 3;

/// What is to be said of one process.
#[derive(Debug, PartialEq, Eq)]
enum Seen {
    /// It works in the tree.
    Within,
    /// It does not.
    Elsewhere,
    /// It cannot be told.
    Hidden,
    /// It ended meanwhile.
    Gone,
}

/// One tree, and what is needed to recognise it in a link of `/proc`.
pub(super) struct Observer<'a> {
    tree: &'a Path,
    real: PathBuf,
    since: Option<SystemTime>,
    strict: bool,
    own_mounts: Vec<u8>,
    /// Our mount namespace, as its link reads.
    own_namespace: Option<PathBuf>,
    /// The paths of the tree in each mount namespace seen so far.
    views: BTreeMap<Option<PathBuf>, Vec<PathBuf>>,
    boot: SystemTime,
}

fn unobservable(what: &str) -> impl Fn(io::Error) -> Writing + '_ {
    move |error| Writing::Unobservable(format!("unknown processes: {what} cannot be read ({error})"))
}

impl<'a> Observer<'a> {
    pub(super) fn new(tree: &'a Path, since: Option<SystemTime>, strict: bool) -> Result<Self, Writing> {
        let own_mounts = std::fs::read("/proc/self/mountinfo").map_err(unobservable("/proc/self/mountinfo"))?;
        let stat = std::fs::read_to_string("/proc/stat").map_err(unobservable("/proc/stat"))?;
        let boot = stat.lines().find_map(|line| line.strip_prefix("btime ")?.trim().parse().ok()).unwrap_or(0);
        let own_namespace = std::fs::read_link("/proc/self/ns/mnt").ok();
        let real = real(tree);
        let mut own_views = mounts::views(&real, &own_mounts, &own_mounts);
        own_views.push(real.clone());
        let views = BTreeMap::from([(own_namespace.clone(), own_views)]);
        let boot = SystemTime::UNIX_EPOCH + Duration::from_secs(boot);
        Ok(Self { tree, real, since, strict, own_mounts, own_namespace, views, boot })
    }

    /// Looks at everybody.
    pub(super) fn observe(mut self) -> Result<(), Writing> {
        let own = std::process::id().cast_signed();
        for _ in 0..LOOKS {
            let mut vanished = false;
            for pid in table::pids().map_err(unobservable("/proc"))?.into_iter().filter(|pid| *pid != own) {
                match self.look_patiently(pid) {
                    Seen::Elsewhere => {}
                    // It may have left a child with a number that we had passed already.
                    Seen::Gone => vanished = true,
                    Seen::Within => {
                        let name = table::read(pid).map_or_else(|_| "?".to_owned(), |process| process.name);
                        return Err(Writing::Active { pid: pid.unsigned_abs(), name, tree: self.tree.to_owned() });
                    }
                    Seen::Hidden => {
                        if let Some(name) = self.counts(pid) {
                            let tree = self.tree.display();
                            return Err(Writing::Unobservable(format!(
                                "unknown process {pid} ({name}) cannot be looked into and may write into {tree}"
                            )));
                        }
                    }
                }
            }
            if !vanished {
                break;
            }
        }
        Ok(())
    }

    /// Looks again at one that hides: on its way out a process hides for a moment.
    fn look_patiently(&mut self, pid: i32) -> Seen {
        for _ in 0..PATIENCE {
            match self.look(pid) {
                Seen::Hidden if self.counts(pid).is_some() => std::thread::sleep(TICK),
                seen => return seen,
            }
        }
        self.look(pid)
    }

    fn look(&mut self, pid: i32) -> Seen {
        let directory = PathBuf::from(format!("/proc/{pid}"));
        let (seen, has_links) = self.look_at_links(&directory);
        match seen {
            Seen::Within | Seen::Gone => return seen,
            Seen::Elsewhere if has_links => return seen,
            Seen::Elsewhere | Seen::Hidden => {}
        }
        // Without links it is ending, has ended, or its first thread has while others go on.
        let Ok(process) = table::read(pid) else { return if directory.exists() { Seen::Hidden } else { Seen::Gone } };
        if process.is_dead() {
            return Seen::Elsewhere;
        }
        if has_links || process.threads <= 1 {
            return seen;
        }
        let Ok(threads) = std::fs::read_dir(directory.join("task")) else { return Seen::Hidden };
        // The dead one is still listed, and cannot be read by anybody but root.
        let lives = |thread: &PathBuf| !table::read_in(thread).is_ok_and(|thread| thread.zombie);
        let threads: Vec<_> = threads.flatten().map(|thread| thread.path()).filter(lives).collect();
        let looks: Vec<_> = threads.iter().map(|thread| self.look_at_links(thread)).collect();
        if looks.iter().any(|(seen, _)| *seen == Seen::Within) {
            Seen::Within
        } else if looks.iter().any(|(seen, has_links)| *seen == Seen::Elsewhere && *has_links)
            && looks.iter().all(|(seen, _)| *seen != Seen::Hidden)
        {
            Seen::Elsewhere
        } else {
            Seen::Hidden
        }
    }

    /// What the links of a process or thread say, and whether it has a current directory at all.
    fn look_at_links(&mut self, directory: &Path) -> (Seen, bool) {
        let mut has_links = true;
        let namespace = self.namespace(directory);
        for name in ["cwd", "root", "exe"] {
            match std::fs::read_link(directory.join(name)) {
                Ok(target) if self.is_within(&target, &namespace) => return (Seen::Within, has_links),
                Ok(_) => {}
                Err(error) => match of(&error) {
                    Seen::Gone if name == "cwd" => has_links = false,
                    // A kernel thread has no program.
                    Seen::Gone => {}
                    other => return (other, has_links),
                },
            }
        }
        let entries = match std::fs::read_dir(directory.join("fd")) {
            Ok(entries) => entries,
            Err(error) => return (of(&error), has_links),
        };
        for entry in entries {
            match entry.and_then(|entry| std::fs::read_link(entry.path())) {
                Ok(target) if self.is_within(&target, &namespace) => return (Seen::Within, has_links),
                Ok(_) => {}
                Err(error) => match of(&error) {
                    // A file that was closed meanwhile.
                    Seen::Gone => {}
                    other => return (other, has_links),
                },
            }
        }
        (Seen::Elsewhere, has_links)
    }

    /// The mount namespace of a process whose link can be read, with the tree's paths in it known; else ours.
    fn namespace(&mut self, directory: &Path) -> Option<PathBuf> {
        let namespace = std::fs::read_link(directory.join("ns/mnt")).ok().or_else(|| self.own_namespace.clone());
        if !self.views.contains_key(&namespace) {
            // A container that has the tree mounted shows its own paths.
            let mountinfo = std::fs::read(directory.join("mountinfo")).unwrap_or_default();
            let mut views = mounts::views(&self.real, &self.own_mounts, &mountinfo);
            views.push(self.real.clone());
            self.views.insert(namespace.clone(), views);
        }
        namespace
    }

    fn is_within(&self, target: &Path, namespace: &Option<PathBuf>) -> bool {
        let within = |view: &PathBuf| {
            // The kernel marks what was removed while in use; below the tree the mark changes nothing.
            let mut deleted = OsString::from(view);
            deleted.push(" (deleted)");
            target.starts_with(view) || target.as_os_str() == deleted
        };
        target.as_os_str().as_bytes().first() == Some(&b'/')
            && self.views.get(namespace).is_some_and(|views| views.iter().any(within))
    }

    /// The name of a process that cannot be looked into, where it must be taken for a writer.
    fn counts(&self, pid: i32) -> Option<String> {
        let process = match table::read(pid) {
            Ok(process) => process,
            // It may hide even this (`hidepid`); then the owner of its directory is what can be known.
            Err(_) => return (self.strict || owner(pid).is_some_and(is_ours)).then(|| "unknown".to_owned()),
        };
        // The first process of a container starts again with it, long after the tree was made, and is nobody's writer.
        if process.kernel || (pid == 1 && !self.strict) {
            return None;
        }
        let started = self.boot + Duration::from_millis(process.started.saturating_mul(1000 / TICKS));
        let late = self.since.is_none_or(|since| started + SLACK >= since);
        let ours = || uids(pid).map_or_else(|| owner(pid).is_some_and(is_ours), |uids| uids.into_iter().any(is_ours));
        (self.strict || descends_from_us(&process) || (late && ours())).then_some(process.name)
    }
}

/// What an error at a link of `/proc` says of its process.
fn of(error: &io::Error) -> Seen {
    match error.raw_os_error().map(rustix::io::Errno::from_raw_os_error) {
        Some(rustix::io::Errno::NOENT | rustix::io::Errno::SRCH) => Seen::Gone,
        _ => Seen::Hidden,
    }
}

fn is_ours(uid: u32) -> bool {
    uid == getuid().as_raw() || uid == geteuid().as_raw()
}

/// The users that a process runs for; its directory belongs to root where it must not be dumped.
fn uids(pid: i32) -> Option<Vec<u32>> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    line.split_ascii_whitespace().map(|uid| uid.parse().ok()).collect()
}

fn owner(pid: i32) -> Option<u32> {
    Some(std::fs::metadata(format!("/proc/{pid}")).ok()?.uid())
}

fn descends_from_us(process: &Process) -> bool {
    let own = std::process::id().cast_signed();
    let mut parent = process.parent;
    // Numbers that are used again could make a ring.
    for _ in 0..1000 {
        match parent {
            0 | 1 => return false,
            pid if pid == own => return true,
            pid => match table::read(pid) {
                Ok(process) => parent = process.parent,
                Err(_) => return false,
            },
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::super::{observe, outside};
    use super::*;
    use crate::os::process::testing::{Guarded, again, shell, until};

    fn seen(tree: &Path) -> Result<(), Writing> {
        observe(tree, Some(SystemTime::now()), false)
    }

    /// Starts `command` and waits until it is found to be in `tree`.
    fn found(mut command: Command, tree: &Path) -> Guarded {
        let child = Guarded(command.spawn().unwrap());
        until("it is seen", || match seen(tree) {
            Err(Writing::Active { pid, name, .. }) => pid == child.0.id() && name == "sleep",
            _ => false,
        });
        child
    }

    #[test]
    fn a_directory_a_file_a_removed_one_and_a_program_are_seen_until_they_are_let_go() {
        let (root, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let tree = root.path().join("a tree");
        std::fs::create_dir_all(tree.join("sub")).unwrap();
        let (file, twin) = (tree.join("file"), root.path().join("a tree too"));
        std::fs::create_dir(&twin).unwrap();
        assert_eq!(seen(&tree), Ok(()));
        drop(found(shell("exec sleep 600", &[], &tree.join("sub")), &tree));
        drop(found(shell("exec 5>>\"$1\"; exec sleep 600", &[&file], elsewhere.path()), &tree));
        drop(found(shell("exec 5>>\"$1\"; rm \"$1\"; exec sleep 600", &[&file], elsewhere.path()), &tree));
        drop(found(shell("rmdir \"$PWD\"; exec sleep 600", &[], &tree.join("sub")), &tree));
        let program = tree.join("sleep");
        std::fs::copy("/bin/sleep", &program).unwrap();
        drop(found(shell("exec \"$1\" 600", &[&program], elsewhere.path()), &tree));
        let _twin = found(shell("exec sleep 600", &[], &twin), &twin);
        assert_eq!(seen(&tree), Ok(()), "a name that begins alike is another tree");
        assert_eq!(outside(&tree), Ok(()));
    }

    #[test]
    fn a_zombie_writes_nothing() {
        let tree = tempfile::tempdir().unwrap();
        let zombie = Guarded(shell("exit 0", &[], tree.path()).spawn().unwrap());
        let pid = zombie.0.id().cast_signed();
        until("it is a zombie", || table::read(pid).unwrap().zombie);
        assert_eq!(seen(tree.path()), Ok(()));
        let observer = Observer::new(tree.path(), None, true).unwrap();
        assert_eq!({ observer }.look(pid), Seen::Elsewhere);
    }

    #[test]
    fn a_thread_whose_leader_is_dead_still_writes() {
        let (tree, elsewhere) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let code = "import ctypes, sys, threading, time\n\
            def write():\n    with open(sys.argv[1], 'w') as f:\n        while True: f.write('x'); f.flush(); time.sleep(0.01)\n\
            threading.Thread(target=write).start()\nctypes.CDLL(None).pthread_exit(None)\n";
        let script = "command -v python3 >/dev/null || exit 7; exec python3 -c \"$1\" \"$2\"";
        let mut command = shell(script, &[Path::new(code), &tree.path().join("beat")], elsewhere.path());
        let mut leader = Guarded(command.stderr(Stdio::null()).spawn().unwrap());
        let pid = leader.0.id().cast_signed();
        let beats = || tree.path().join("beat").metadata().is_ok_and(|metadata| metadata.len() > 0);
        let mut missing = false;
        until("its leader is dead", || {
            let process = table::read(pid).unwrap();
            missing = process.is_dead();
            missing || (process.zombie && beats())
        });
        if missing {
            assert_eq!(leader.0.wait().unwrap().code(), Some(7), "only a missing python3 excuses this test");
            return;
        }
        assert!(matches!(seen(tree.path()), Err(Writing::Active { pid, .. }) if pid == leader.0.id()));
        assert!(matches!(seen(elsewhere.path()), Err(Writing::Active { .. })), "its directory is there");
        let third = tempfile::tempdir().unwrap();
        assert_eq!(Observer::new(third.path(), None, true).unwrap().look(pid), Seen::Elsewhere);
    }

    #[test]
    fn a_container_that_shows_the_tree_elsewhere_hides_nobody() {
        let (root, tree) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        std::fs::create_dir_all(tree.path().join("sub")).unwrap();
        let script = "mount --bind \"$1\" \"$2\" && cd \"$2/sub\" && exec sleep 600";
        let mut command = shell("exec unshare --mount /bin/sh -c \"$1\" sh \"$2\" \"$3\"", &[], Path::new("/"));
        command.arg(script).arg(tree.path()).arg(root.path()).stderr(Stdio::null());
        let mut child = Guarded(command.spawn().unwrap());
        until("it is seen, or mounting is not allowed", || {
            child.0.try_wait().unwrap().is_some() || matches!(seen(tree.path()), Err(Writing::Active { .. }))
        });
    }

    #[test]
    fn who_cannot_be_looked_into_counts_by_whose_it_is_and_since_when() {
        let tree = tempfile::tempdir().unwrap();
        let child = Guarded(shell("exec sleep 600", &[], Path::new("/")).spawn().unwrap());
        let pid = child.0.id().cast_signed();
        let counts = |pid, since, strict| Observer::new(tree.path(), since, strict).unwrap().counts(pid).is_some();
        let later = Some(SystemTime::now() + Duration::from_secs(3600));
        assert!(counts(pid, later, false), "a descendant always counts");
        assert!(!counts(1, None, false) && counts(1, later, true), "the first process counts only when strict");
        drop(child);
        assert!(!counts(pid, None, false), "it is gone");
        let own = std::process::id().cast_signed();
        let started = |since| counts(own, Some(since), false);
        let now = SystemTime::now();
        assert!(started(now - Duration::from_secs(3600)) && !started(now + Duration::from_secs(3600)));
        assert_eq!(uids(own).unwrap().first(), Some(&getuid().as_raw()));
    }

    #[test]
    #[ignore = "a part of the test below, which runs it as another user"]
    fn stranger() {
        let Some(tree) = std::env::var_os("DEVLYN_TEST").map(PathBuf::from) else { return };
        assert_eq!(observe(&tree, None, false), Ok(()));
        let error = observe(&tree, None, true).unwrap_err();
        assert!(error.to_string().starts_with("unknown process"), "{error}");
    }

    #[test]
    fn another_user_s_processes_count_only_when_strict() {
        let tree = tempfile::tempdir().unwrap();
        let victim = again("os::writers::linux::tests::stranger", &[("DEVLYN_TEST", tree.path())]);
        let mut command =
            shell("exec setpriv --reuid 65534 --regid 65534 --clear-groups -- \"$@\"", &[], Path::new("/"));
        command.arg(victim.get_program()).args(victim.get_args()).env("DEVLYN_TEST", tree.path());
        let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
        if !String::from_utf8_lossy(&output.stdout).contains("running 1 test") {
            return; // Only root may become another user, and only a public build can be run by one.
        }
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stdout));
    }
}
