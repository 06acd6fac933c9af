//! A question to a tool: what it says, kept in memory, bounded in time and size. It judges nothing.
//!
//! What a tool leaves running for later (a connection of ssh that waits for the next call) may hold its output open for
//! hours; it is neither waited for nor ended.

use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader, Read};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, kill_process_group};

use super::{Environment, interrupted};

/// The bytes of each stream that are kept: 8 MiB.
const KEEP: usize = 8 << 20;
/// How often the end of the tool is looked for while it says nothing.
const TICK: Duration = Duration::from_millis(20);
/// How long its output is read on once it has ended.
const ECHO: Duration = Duration::from_millis(500);
/// What a tool gets to come to its end once this process was told to end.
const FAREWELL: Duration = Duration::from_secs(10);
/// From the polite signal to the other one.
const GRACE: Duration = Duration::from_secs(2);

/// A tool, ready to be asked.
#[derive(Debug, Clone)]
pub struct Tool {
    /// The program, found on `PATH`.
    pub program: OsString,
    /// Where it runs.
    pub cwd: PathBuf,
    /// What it knows of us.
    pub environment: Environment,
    /// How long an answer may take.
    pub limit: Duration,
}

/// What a tool answered.
#[derive(Debug)]
pub struct Answer {
    /// Its exit status, where it ended by itself.
    pub code: Option<i32>,
    /// It was ended, because its time was up or because this process was told to end.
    pub ended: bool,
    /// Its standard output, without what was too much to keep.
    pub stdout: Vec<u8>,
    /// Its standard error, without what was too much to keep.
    pub stderr: Vec<u8>,
    /// Whether standard output was more than is kept.
    pub cut: bool,
}

impl Tool {
    /// Runs it with `args` and nothing to read.
    ///
    /// # Errors
    /// Where it cannot be started or watched.
    pub fn ask<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> io::Result<Answer> {
        let mut command = super::command(&self.program, &self.cwd, &self.environment);
        command.args(args);
        ask(&mut command, self.limit)
    }
}

/// Runs `command` in a process group of its own, with nothing to read, for at most `limit`.
///
/// # Errors
/// Where it cannot be started or watched.
pub(crate) fn ask(command: &mut Command, limit: Duration) -> io::Result<Answer> {
    command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let mut taps = [
        Tap::of(child.stdout.take().map(OwnedFd::from)), //
        Tap::of(child.stderr.take().map(OwnedFd::from)),
    ];
    let outcome = listen(&mut child, &mut taps, limit);
    if outcome.is_err() {
        signal(&child, Signal::KILL);
        let _ = child.wait();
    }
    let (status, ended) = outcome?;
    let [stdout, stderr] = taps;
    Ok(Answer { code: status.code(), ended, stdout: stdout.kept, stderr: stderr.kept, cut: stdout.cut })
}

/// Reads what the child says until it has ended, and ends it at its limit.
fn listen(child: &mut Child, taps: &mut [Tap; 2], limit: Duration) -> io::Result<(ExitStatus, bool)> {
    let mut told = interrupted().is_some();
    // Whoever was told to end already asks no long questions.
    let mut deadline = Instant::now().checked_add(if told { limit.min(FAREWELL) } else { limit });
    let mut ended = None;
    loop {
        step(taps, TICK)?;
        if let Some(status) = child.try_wait()? {
            let end = Instant::now() + ECHO;
            while taps.iter().any(|tap| tap.source.is_some()) && Instant::now() < end {
                step(taps, TICK)?;
            }
            return Ok((status, ended.is_some()));
        }
        let now = Instant::now();
        if !told && interrupted().is_some() {
            told = true;
            deadline = deadline.map(|deadline| deadline.min(now + FAREWELL));
        }
        if deadline.is_some_and(|deadline| now >= deadline) {
            let next = if ended.is_none() { Signal::TERM } else { Signal::KILL };
            signal(child, next);
            ended = Some(next);
            deadline = Some(now + GRACE);
        }
    }
}

/// Signals the group of a child that nobody has waited for yet.
fn signal(child: &Child, signal: Signal) {
    // A group that is gone needs no signal.
    let _ = kill_process_group(Pid::from_child(child), signal);
}

/// Takes what there is to take, waiting for it at most for `patience`.
fn step(taps: &mut [Tap; 2], patience: Duration) -> io::Result<()> {
    let mut fds: Vec<PollFd<'_>> = Vec::new();
    let open: Vec<usize> = (0..taps.len()).filter(|index| taps[*index].source.is_some()).collect();
    for source in taps.iter().filter_map(|tap| tap.source.as_ref()) {
        fds.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
    }
    // Once it has closed its output it is about to end, and is not waited for any longer than that takes.
    let patience = if fds.is_empty() { patience.min(Duration::from_millis(1)) } else { patience };
    let timeout = Timespec::try_from(patience).unwrap_or_default();
    match poll(&mut fds, Some(&timeout)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
    drop(fds);
    for (index, _) in open.into_iter().zip(ready).filter(|(_, ready)| *ready) {
        taps[index].take()?;
    }
    Ok(())
}

/// One stream of a tool.
#[derive(Debug)]
struct Tap {
    source: Option<PipeReader>,
    kept: Vec<u8>,
    cut: bool,
}

impl Tap {
    fn of(source: Option<OwnedFd>) -> Self {
        Self { source: source.map(PipeReader::from), kept: Vec::new(), cut: false }
    }

    fn take(&mut self) -> io::Result<()> {
        let Some(source) = &mut self.source else { return Ok(()) };
        let mut chunk = [0; 16 << 10];
        let read = source.read(&mut chunk)?;
        if read == 0 {
            self.source = None;
        }
        let room = KEEP.saturating_sub(self.kept.len());
        self.cut |= read > room;
        self.kept.extend_from_slice(&chunk[..read.min(room)]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str, limit: Duration) -> Answer {
        let tool = Tool {
            program: "/bin/sh".into(),
            cwd: "/".into(),
            environment: Environment::inherited().with("GIVEN", "yes"),
            limit,
        };
        tool.ask(["-c", script]).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn an_answer_is_what_it_said_and_how_it_ended() {
        let answer = shell("cat; echo $GIVEN; echo no >&2; exit 3", LONG);
        assert_eq!((answer.code, answer.ended, answer.cut), (Some(3), false, false));
        assert_eq!((answer.stdout.as_slice(), answer.stderr.as_slice()), (&b"yes\n"[..], &b"no\n"[..]));
    }

    #[test]
    fn what_is_too_much_is_read_and_not_kept() {
        let answer = shell("head -c 9000000 /dev/zero; echo end >&2", LONG);
        assert_eq!((answer.code, answer.cut, answer.stdout.len()), (Some(0), true, KEEP));
        assert_eq!(answer.stderr, b"end\n");
    }

    #[test]
    fn a_tool_that_says_nothing_is_ended_with_its_children() {
        let begun = Instant::now();
        let answer = shell("echo begun; sleep 600 & sleep 600", Duration::from_millis(200));
        assert_eq!((answer.code, answer.ended, answer.stdout.as_slice()), (None, true, &b"begun\n"[..]));
        let stubborn = shell("trap '' TERM; sleep 600", Duration::from_millis(100));
        assert!(stubborn.ended);
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn nobody_waits_for_what_it_leaves_running() {
        let begun = Instant::now();
        let answer = shell("echo done; sleep 5 &", LONG);
        assert_eq!((answer.code, answer.stdout.as_slice()), (Some(0), &b"done\n"[..]));
        assert!(begun.elapsed() < Duration::from_secs(4));
    }
}
