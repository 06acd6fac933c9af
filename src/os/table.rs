//! What runs on this machine: one row a process, as `/proc` or `ps` has it. Ends nothing by itself.

use std::io;

use rustix::process::{Pid, Signal};

/// The longest command line that a report shows, in characters.
const COMMAND_LIMIT: usize = 200;

/// The bit of a process's flags that the kernel sets for its own threads (`PF_KTHREAD`).
#[cfg(target_os = "linux")]
const KERNEL_THREAD: u32 = 0x0020_0000;

/// A process as it was when it was looked at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Process {
    /// Its number.
    pub(super) pid: i32,
    /// The number of its parent.
    pub(super) parent: i32,
    /// The number of its process group.
    pub(super) group: i32,
    /// Clock ticks from boot to its start, so that a number used again is not taken for it; 0 where unknown.
    pub(super) started: u64,
    /// It has ended and nobody has waited for it yet.
    pub(super) zombie: bool,
    /// Threads that it has; a zombie with more than one still runs in the others.
    pub(super) threads: u32,
    /// It is a thread of the kernel.
    pub(super) kernel: bool,
    /// Its own name: the file name of its program, cut to 15 bytes on Linux.
    pub(super) name: String,
}

impl Process {
    /// What tells it from every other process there ever was.
    pub(super) fn id(&self) -> (i32, u64) {
        (self.pid, self.started)
    }

    /// No thread of it runs any more.
    pub(super) fn is_dead(&self) -> bool {
        self.zombie && self.threads <= 1
    }

    /// Sends `signal` to it, and to nobody else who got its number since.
    ///
    /// # Errors
    /// Where it is gone, or is not ours to signal.
    pub(super) fn signal(&self, signal: Signal) -> io::Result<()> {
        let pid = Pid::from_raw(self.pid).ok_or(io::ErrorKind::InvalidInput)?;
        #[cfg(target_os = "linux")]
        {
            use rustix::process::{PidfdFlags, pidfd_open, pidfd_send_signal};
            match pidfd_open(pid, PidfdFlags::empty()) {
                Ok(handle) => {
                    // The handle pins whoever has the number now; the start time says whether that is still it.
                    if read(self.pid)?.started != self.started {
                        return Err(io::ErrorKind::NotFound.into());
                    }
                    return Ok(pidfd_send_signal(handle, signal)?);
                }
                Err(rustix::io::Errno::NOSYS | rustix::io::Errno::PERM) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(rustix::process::kill_process(pid, signal)?)
    }

    /// Its command line on one line, cut to what a report can show; its name in brackets where it shows none.
    pub(super) fn command(&self) -> String {
        let words = command_line(self.pid).unwrap_or_default();
        if words.is_empty() {
            return format!("[{}]", self.name);
        }
        let mut characters = words.chars();
        let shown: String = characters.by_ref().take(COMMAND_LIMIT).collect();
        if characters.next().is_some() { format!("{shown}…") } else { shown }
    }
}

/// Every process that can be seen. Those that end meanwhile are missing.
#[cfg(target_os = "linux")]
pub(super) fn all() -> io::Result<Vec<Process>> {
    Ok(pids()?.into_iter().filter_map(|pid| read(pid).ok()).collect())
}

/// The number of every process that can be seen.
#[cfg(target_os = "linux")]
pub(super) fn pids() -> io::Result<Vec<i32>> {
    let mut pids = Vec::new();
    for entry in std::fs::read_dir("/proc")? {
        pids.extend(entry?.file_name().to_str().and_then(|name| name.parse::<i32>().ok()));
    }
    Ok(pids)
}

/// The process group of the process `own`, in the numbers of the rows here; 0 where it has none among them.
#[cfg(target_os = "linux")]
pub(super) fn group_of(own: i32) -> i32 {
    read(own).map_or(0, |process| process.group)
}

/// The process group of this process, which `own` is.
#[cfg(not(target_os = "linux"))]
pub(super) fn group_of(_own: i32) -> i32 {
    rustix::process::getpgrp().as_raw_pid()
}

/// Every process that descends from `root`, found by the kernel's own lists of children: a handful of files where
/// [`all`] reads one for everybody on the machine. `None` where the kernel keeps no such lists.
///
/// One whose parent ends just now may be missing, but then that parent is there and has ended.
#[cfg(target_os = "linux")]
pub(super) fn below(root: i32) -> Option<Vec<Process>> {
    if !std::path::Path::new("/proc/thread-self/children").exists() {
        return None;
    }
    let mut found: Vec<Process> = Vec::new();
    let mut parents = vec![root];
    while let Some(parent) = parents.pop() {
        for pid in children(parent) {
            if !found.iter().any(|process| process.pid == pid)
                && let Ok(process) = read(pid)
            {
                parents.push(pid);
                found.push(process);
            }
        }
    }
    Some(found)
}

/// No system but Linux has such lists.
#[cfg(not(target_os = "linux"))]
pub(super) fn below(_root: i32) -> Option<Vec<Process>> {
    None
}

/// The numbers of the children of every thread of `pid`; none where it is gone.
#[cfg(target_os = "linux")]
fn children(pid: i32) -> Vec<i32> {
    let Ok(threads) = std::fs::read_dir(format!("/proc/{pid}/task")) else { return Vec::new() };
    let lists = threads.flatten().filter_map(|thread| std::fs::read_to_string(thread.path().join("children")).ok());
    lists
        .flat_map(|list| list.split_ascii_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>())
        .collect()
}

/// The process with this number.
///
/// # Errors
/// Where there is none, it cannot be read, or the kernel writes what we do not understand (`InvalidData`).
#[cfg(target_os = "linux")]
pub(super) fn read(pid: i32) -> io::Result<Process> {
    read_in(format!("/proc/{pid}").as_ref())
}

/// The process or thread whose directory this is. A thread has its own number and state, and the rest of its process.
///
/// # Errors
/// As [`read`].
#[cfg(target_os = "linux")]
pub(super) fn read_in(directory: &std::path::Path) -> io::Result<Process> {
    use std::io::Read;
    // One read, for this is done for every process there is; the line has at most 52 fields.
    let mut stat = [0; 2048];
    let length = std::fs::File::open(directory.join("stat"))?.read(&mut stat)?;
    parse(&stat[..length]).ok_or_else(|| io::ErrorKind::InvalidData.into())
}

#[cfg(target_os = "linux")]
fn parse(stat: &[u8]) -> Option<Process> {
    // The name may hold anything, parentheses and line feeds too; nothing after it holds a parenthesis.
    let open = stat.iter().position(|b| *b == b'(')?;
    let close = stat.iter().rposition(|b| *b == b')')?;
    let number = |bytes: &[u8]| std::str::from_utf8(bytes).ok()?.trim().parse::<i32>().ok();
    let rest = std::str::from_utf8(&stat[close + 1..]).ok()?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    Some(Process {
        pid: number(&stat[..open])?,
        zombie: matches!(*fields.first()?, "Z" | "X" | "x"),
        parent: fields.get(1)?.parse().ok()?,
        group: fields.get(2)?.parse().ok()?,
        kernel: fields.get(6)?.parse::<u32>().ok()? & KERNEL_THREAD != 0,
        threads: fields.get(17)?.parse().ok()?,
        started: fields.get(19)?.parse().ok()?,
        name: String::from_utf8_lossy(&stat[open + 1..close]).into_owned(),
    })
}

#[cfg(target_os = "linux")]
fn command_line(pid: i32) -> Option<String> {
    use std::io::Read;
    let mut bytes = Vec::new();
    // A command line can be megabytes long, and only its head is shown.
    std::fs::File::open(format!("/proc/{pid}/cmdline")).ok()?.take(4096).read_to_end(&mut bytes).ok()?;
    let words: Vec<_> = bytes.split(|b| *b == 0).filter(|word| !word.is_empty()).map(String::from_utf8_lossy).collect();
    Some(words.join(" "))
}

/// Every process that can be seen, as `ps` tells it.
#[cfg(not(target_os = "linux"))]
pub(super) fn all() -> io::Result<Vec<Process>> {
    let output = super::process::tool("ps", &["-A", "-o", "pid=,ppid=,pgid=,stat=,comm="])?;
    Ok(String::from_utf8_lossy(&output).lines().filter_map(parse_ps).collect())
}

#[cfg(any(not(target_os = "linux"), test))]
fn parse_ps(line: &str) -> Option<Process> {
    let mut words = line.split_ascii_whitespace();
    let mut number = || words.next()?.parse::<i32>().ok();
    let (pid, parent, group) = (number()?, number()?, number()?);
    let zombie = words.next()?.starts_with('Z');
    let name = words.collect::<Vec<_>>().join(" ");
    Some(Process { pid, parent, group, started: 0, zombie, threads: 1, kernel: false, name })
}

#[cfg(not(target_os = "linux"))]
fn command_line(pid: i32) -> Option<String> {
    let output = super::process::tool("ps", &["-o", "command=", "-p", &pid.to_string()]).ok()?;
    Some(String::from_utf8_lossy(&output).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    #[test]
    fn a_name_of_parentheses_and_lines_does_not_move_the_fields() {
        let stat = b"42 (a) R 1 (\n)) Z 7 8 9 0 -1 4 0 0 0 0 1 2 3 4 20 0 3 0 5555 0 0";
        let process = parse(stat).unwrap();
        assert_eq!((process.pid, process.parent, process.group, process.started), (42, 7, 8, 5555));
        assert_eq!((process.zombie, process.threads, process.name.as_str()), (true, 3, "a) R 1 (\n)"));
        assert!(!process.is_dead());
        assert!(parse(b"42 (sh").is_none() && parse(b"").is_none());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn our_own_process_is_among_them() {
        let own = i32::try_from(std::process::id()).unwrap();
        let process = all().unwrap().into_iter().find(|process| process.pid == own).unwrap();
        assert!(!process.is_dead() && process.threads >= 1 && process.started > 0);
        assert!(process.command().contains("git_devlyn"), "{}", process.command());
        process.signal(Signal::CONT).unwrap();
        assert!(Process { started: 1, ..process }.signal(Signal::KILL).is_err(), "another process has the number");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn who_descends_from_us_is_found_with_all_that_it_started() {
        use super::super::process::testing::{Guarded, shell, until};
        let dir = tempfile::tempdir().unwrap();
        let script = "(setsid sleep 600 & echo $! > inner; wait) & wait";
        let child = Guarded(shell(script, &[], dir.path()).spawn().unwrap());
        let inner = || std::fs::read_to_string(dir.path().join("inner")).ok()?.trim().parse::<i32>().ok();
        until("it runs", || inner().is_some());
        let Some(found) = below(i32::try_from(std::process::id()).unwrap()) else { return };
        let leader = i32::try_from(child.0.id()).unwrap();
        assert!([leader, inner().unwrap()].iter().all(|pid| found.iter().any(|process| process.pid == *pid)));
        let everybody = all().unwrap();
        let own = found.iter().find(|process| process.pid == leader);
        assert_eq!(own, everybody.iter().find(|process| process.pid == leader));
        assert!(below(leader).unwrap().iter().all(|process| process.pid != leader));
        let inner = Pid::from_raw(inner().unwrap()).unwrap();
        rustix::process::kill_process(inner, Signal::KILL).unwrap();
    }

    #[test]
    fn a_line_of_ps_is_read() {
        let process = parse_ps("  12   1    12 Z+   (sh -c x)").unwrap();
        assert_eq!((process.pid, process.parent, process.group, process.zombie), (12, 1, 12, true));
        assert_eq!(process.name, "(sh -c x)");
        assert!(parse_ps("PID PPID").is_none());
    }
}
