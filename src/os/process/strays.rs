//! The descendants that a program leaves behind: found, ended and named. Touches nobody who was not started by it.
//!
//! On Linux we are the subreaper while a program of ours runs: whoever loses its parent below us becomes our child, so
//! that neither a session nor a group of its own hides it. Elsewhere only the group of the program is found.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustix::process::{Pid, Signal, WaitOptions, getpid, kill_process_group, waitpid};

use crate::os::table::{self, Process};

/// Our children that the program which runs cannot have left: those that we had before it. A shell may have replaced
/// itself by us, a `git` may be kept open, and an executor may have left something running on purpose.
static STRANGERS: Mutex<BTreeSet<(i32, u64)>> = Mutex::new(BTreeSet::new());

fn strangers() -> MutexGuard<'static, BTreeSet<(i32, u64)>> {
    STRANGERS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What is to be ended after one program.
#[derive(Debug)]
pub(super) struct Strays {
    leader: Pid,
    /// Whoever loses its parent below us becomes our child, so that all of it descends from us.
    below_us: bool,
    named: BTreeMap<(i32, u64), String>,
}

/// Lets orphans below us become our children; whether they do. What Git leaves running for later (a credential cache,
/// a connection of ssh) is not ours to end, so this is on only while a program of ours runs.
pub(super) fn adopt_orphans() -> bool {
    let own = getpid().as_raw_pid();
    let seen = table::below(own).map_or_else(table::all, Ok).unwrap_or_default();
    *strangers() = seen.iter().filter(|process| process.parent == own).map(Process::id).collect();
    // A kernel or a sandbox that refuses leaves us the group, and the writers are observed before anything is called
    // done.
    #[cfg(target_os = "linux")]
    return rustix::process::set_child_subreaper(Some(getpid())).is_ok();
    #[cfg(not(target_os = "linux"))]
    return false;
}

/// Leaves orphans to the system again.
pub(super) fn leave_orphans() {
    #[cfg(target_os = "linux")]
    let _ = rustix::process::set_child_subreaper(None);
}

impl Strays {
    /// Those of the program whose group `leader` leads; `below_us` is what [`adopt_orphans`] said.
    pub(super) fn of(leader: Pid, below_us: bool) -> Self {
        Self { leader, below_us, named: BTreeMap::new() }
    }

    /// Those that run now, the leader too where it does. Adopted children that have ended are put to rest.
    pub(super) fn alive(&self) -> Vec<Process> {
        loop {
            let (alive, dead) = self.look_around();
            // The leader itself is waited for elsewhere; until then its number keeps the group's number from others.
            let orphans = dead.iter().filter(|process| process.pid != self.leader.as_raw_pid());
            let rested = orphans.filter_map(|orphan| Pid::from_raw(orphan.pid)).filter(|pid| at_rest(*pid)).count();
            // What one of these had started may have become our child behind our back.
            if rested == 0 {
                return alive;
            }
        }
    }

    /// Those that run, and those of our children that have ended.
    fn look_around(&self) -> (Vec<Process>, Vec<Process>) {
        let (own, leader) = (getpid().as_raw_pid(), self.leader.as_raw_pid());
        let below = if self.below_us { table::below(own) } else { None };
        let Ok(processes) = below.map_or_else(table::all, Ok) else { return (Vec::new(), Vec::new()) };
        // As the kernel shows it: in a process namespace our group may have a leader outside, and then no number.
        let own_group = table::group_of(own);
        let known = strangers().clone();
        let stranger = |process: &Process| known.contains(&process.id());
        // What we start for ourselves stays in our group, and only what a program of ours started leaves it.
        let adopted = |process: &Process| process.parent == own && process.group != own_group && !stranger(process);
        let mut found: BTreeSet<i32> =
            processes.iter().filter(|p| p.group == leader || adopted(p)).map(|process| process.pid).collect();
        loop {
            let before = found.len();
            found.extend(processes.iter().filter(|p| found.contains(&p.parent)).map(|p| p.pid).collect::<Vec<_>>());
            if found.len() == before {
                break;
            }
        }
        let found = processes.into_iter().filter(|process| found.contains(&process.pid));
        let (mut dead, alive): (Vec<_>, Vec<_>) = found.partition(Process::is_dead);
        dead.retain(|process| process.parent == own);
        (alive, dead)
    }

    /// Sends `signal` to each of `processes` that did not have it yet in `told`, and remembers its name.
    pub(super) fn signal(&mut self, processes: &[Process], signal: Signal, told: &mut BTreeSet<(i32, u64)>) {
        for process in processes.iter().filter(|process| told.insert(process.id())) {
            self.named.entry(process.id()).or_insert_with(|| process.command());
            // One that is gone already needs nothing; one that is not ours to signal is at least named.
            let _ = process.signal(signal);
            let _ = process.signal(Signal::CONT);
        }
    }

    /// Names one that is not ours to end.
    pub(super) fn name(&mut self, process: &Process) {
        self.named.entry(process.id()).or_insert_with(|| process.command());
    }

    /// Sends `signal` to the program's own group. The leader must not have been waited for, else the number may be
    /// somebody else's.
    pub(super) fn signal_group(&self, signal: Signal) {
        signal_group(self.leader, signal);
    }

    /// The command lines of all who had to be ended or named.
    pub(super) fn names(&mut self) -> Vec<String> {
        std::mem::take(&mut self.named).into_values().collect()
    }
}

/// Whether our child `pid`, which has ended, was there to be waited for.
fn at_rest(pid: Pid) -> bool {
    matches!(waitpid(Some(pid), WaitOptions::NOHANG), Ok(Some(_)))
}

/// As [`Strays::signal_group`]. A stopped member is woken, for it would not hear.
pub(super) fn signal_group(leader: Pid, signal: Signal) {
    let _ = kill_process_group(leader, signal);
    let _ = kill_process_group(leader, Signal::CONT);
}

/// Who else holds the pipe with this inode open; neither we nor `known`.
#[cfg(target_os = "linux")]
pub(super) fn holders(inode: u64) -> Vec<Process> {
    let own = getpid().as_raw_pid();
    let link = format!("pipe:[{inode}]");
    let holds = |process: &Process| {
        let Ok(entries) = std::fs::read_dir(format!("/proc/{}/fd", process.pid)) else { return false };
        entries.flatten().any(|entry| std::fs::read_link(entry.path()).is_ok_and(|to| to.as_os_str() == link.as_str()))
    };
    let processes = table::all().unwrap_or_default();
    processes.into_iter().filter(|process| process.pid != own && holds(process)).collect()
}

/// Who else holds the pipe with this inode open: unknown here.
#[cfg(not(target_os = "linux"))]
pub(super) fn holders(_inode: u64) -> Vec<Process> {
    Vec::new()
}
