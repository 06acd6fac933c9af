//! A started program, until nothing of it is left. One at a time: two at once could not tell their strays apart.

use std::collections::BTreeSet;
use std::io::{self, PipeReader};
use std::os::fd::AsFd;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, waitid};

use super::output::Pump;
use super::strays::{self, Strays};
use super::{ProcessError, interrupted, interrupts};
use crate::os::table::Process;

/// From the polite signal to the other one at a limit.
const GRACE: Duration = Duration::from_secs(2);
/// What a descendant gets to end by itself once the program has ended: `tee` behind a shell needs a moment.
const SETTLE: Duration = Duration::from_millis(200);
/// From the polite signal to the other one for what was left behind.
const STRAY_GRACE: Duration = Duration::from_secs(1);
/// How long the dead may take to die before they are given up.
const BURIAL: Duration = Duration::from_secs(5);
/// How often orphans that ended are put to rest while a program runs.
const REST: Duration = Duration::from_secs(5);

static TURN: Mutex<()> = Mutex::new(());

/// A program that was started, in its own group.
pub(super) struct Run {
    child: Child,
    leader: Pid,
    exit: PipeReader,
    strays: Strays,
    /// The program itself has ended, whoever else runs.
    exited: bool,
    /// Nothing is left to end.
    over: bool,
    /// What took a session or group of its own is not ended with the program.
    sparing: bool,
    spared: Vec<Process>,
    _turn: MutexGuard<'static, ()>,
}

/// How it went.
pub(super) struct Ended {
    /// What was waited for; none where it survived its own killing.
    pub(super) status: Option<ExitStatus>,
    /// It was ended at its limit.
    pub(super) timed_out: bool,
    /// Command lines of the descendants that had to be ended, or could not be.
    pub(super) left_behind: Vec<String>,
    /// Command lines of the descendants that were let alone.
    pub(super) spared: Vec<String>,
}

impl Run {
    /// Starts `command`, once the programs started before have ended.
    ///
    /// # Errors
    /// What the system said where it could not be started; nothing of it runs then.
    pub(super) fn start(command: &mut Command) -> io::Result<Self> {
        use std::os::unix::process::CommandExt;
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        interrupts::hear_children();
        let (exit, told) = io::pipe()?;
        let below_us = strays::adopt_orphans();
        let child = command.process_group(0).spawn().inspect_err(|_| strays::leave_orphans())?;
        let leader = Pid::from_child(&child);
        interrupts::enter(leader);
        let run = Self {
            child,
            leader,
            exit,
            strays: Strays::of(leader, below_us),
            exited: false,
            over: false,
            sparing: false,
            spared: Vec::new(),
            _turn: turn,
        };
        // It is watched without being waited for: as long as the leader is a zombie its group's number is nobody
        // else's, and the group can be signalled safely.
        std::thread::Builder::new().name("watch".into()).stack_size(64 * 1024).spawn(move || {
            while let Err(rustix::io::Errno::INTR) =
                waitid(WaitId::Pid(leader), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT)
            {}
            drop(told);
        })?;
        Ok(run)
    }

    /// Its number.
    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The same, but what takes a session or group of its own may outlive it, unless all of it was told to end.
    pub(super) fn sparing(mut self) -> Self {
        self.sparing = true;
        self
    }

    /// The pipes that it was started with.
    pub(super) fn connect(&mut self, stdout: &mut Pump, stderr: &mut Pump) {
        use std::os::fd::OwnedFd;
        if let Some(pipe) = self.child.stdout.take() {
            stdout.connect(OwnedFd::from(pipe).into());
        }
        if let Some(pipe) = self.child.stderr.take() {
            stderr.connect(OwnedFd::from(pipe).into());
        }
    }

    /// Waits until it has ended, at the latest at `limit`, and until nothing of it is left. `pumps` run all the time.
    ///
    /// # Errors
    /// Where it could not be watched; it was ended.
    pub(super) fn finish(mut self, pumps: &mut [&mut Pump], limit: Option<Duration>) -> Result<Ended, ProcessError> {
        let pid = self.pid();
        let unwatched = |source| ProcessError::Unwatched { pid, source };
        let grace_end = self.watch(pumps, limit).map_err(unwatched)?;
        self.settle(pumps, grace_end).map_err(unwatched)?;
        let exited = self.pump(&mut [], Duration::ZERO).map_err(unwatched)?;
        interrupts::leave();
        self.over = true;
        let status = if exited { Some(self.child.wait().map_err(unwatched)?) } else { None };
        let spared = self.spared.iter().map(Process::command).collect();
        Ok(Ended { status, timed_out: grace_end.is_some(), left_behind: self.strays.names(), spared })
    }

    /// Until the program itself has ended. Where it was made to, the time until which its group may end politely.
    fn watch(&mut self, pumps: &mut [&mut Pump], limit: Option<Duration>) -> io::Result<Option<Instant>> {
        let mut deadline = limit.and_then(|limit| Instant::now().checked_add(limit));
        let mut rest = Instant::now() + REST;
        let mut grace_end = None;
        let mut killed = false;
        loop {
            let now = Instant::now();
            let next = deadline.map_or(rest, |deadline| deadline.min(rest));
            if self.pump(pumps, next.saturating_duration_since(now))? {
                return Ok(grace_end);
            }
            let now = Instant::now();
            let hopeless = grace_end.is_none() && pumps.iter().any(|pump| pump.has_failed());
            if hopeless || deadline.is_some_and(|deadline| now >= deadline) {
                match grace_end {
                    None => {
                        self.strays.signal_group(Signal::TERM);
                        deadline = Some(now + GRACE);
                        grace_end = deadline;
                    }
                    Some(_) if !killed => {
                        self.strays.signal_group(Signal::KILL);
                        deadline = Some(now + BURIAL);
                        killed = true;
                    }
                    Some(_) => return Ok(grace_end),
                }
            }
            if now >= rest {
                // Finding the living puts the dead to rest; an executor of a whole night leaves thousands.
                self.strays.alive();
                rest = Instant::now() + REST;
            }
        }
    }

    /// Until nobody is left and the output has ended.
    fn settle(&mut self, pumps: &mut [&mut Pump], grace_end: Option<Instant>) -> io::Result<()> {
        let silent = |pumps: &[&mut Pump]| pumps.iter().all(|pump| pump.source().is_none());
        if let Some(end) = grace_end {
            // The group has had the polite signal and may use what is left of the grace.
            let group = self.leader.as_raw_pid();
            while Instant::now() < end && self.strays.alive().iter().any(|process| process.group == group) {
                self.pump(pumps, Duration::from_millis(10))?;
            }
            self.strays.signal_group(Signal::KILL);
        }
        // What is still in the pipes is read first, so that a program without strays costs one look around.
        let soon = Instant::now() + Duration::from_millis(20);
        while !silent(pumps) && Instant::now() < soon {
            self.pump(pumps, Duration::from_millis(5))?;
        }
        for (signal, patience) in [(None, SETTLE), (Some(Signal::TERM), STRAY_GRACE), (Some(Signal::KILL), BURIAL)] {
            let end = Instant::now() + patience;
            let mut told = BTreeSet::new();
            let mut pause = Duration::from_millis(1);
            loop {
                let mut alive = self.strays.alive();
                if signal.is_some() && self.sparing && interrupted().is_none() {
                    let group = self.leader.as_raw_pid();
                    (alive, self.spared) = alive.into_iter().partition(|process| process.group == group);
                }
                if alive.is_empty() && silent(pumps) {
                    return Ok(());
                }
                match signal {
                    None => {}
                    Some(_) if alive.is_empty() => break,
                    Some(signal) => self.strays.signal(&alive, signal, &mut told),
                }
                if Instant::now() >= end {
                    break;
                }
                // A flood of output must not become a flood of looks around.
                let until = Instant::now() + pause;
                pause = (pause * 2).min(Duration::from_millis(20));
                while let Some(left) = until.checked_duration_since(Instant::now()) {
                    self.pump(pumps, left)?;
                }
            }
        }
        for pump in pumps.iter_mut() {
            if let Some(source) = pump.source() {
                // No descendant of ours holds it (a terminal multiplexer was handed it, say): named, not ended.
                for process in strays::holders(rustix::fs::fstat(source)?.st_ino) {
                    self.strays.name(&process);
                }
                pump.close();
            }
        }
        Ok(())
    }

    /// Moves what there is to move once, waiting for it at most for `patience`. Whether the program has ended.
    fn pump(&mut self, pumps: &mut [&mut Pump], patience: Duration) -> io::Result<bool> {
        let mut fds = Vec::with_capacity(pumps.len() + 1);
        let mut ready = Vec::with_capacity(pumps.len() + 1);
        if !self.exited {
            fds.push(PollFd::from_borrowed_fd(self.exit.as_fd(), PollFlags::IN));
            ready.push(None);
        }
        for (index, pump) in pumps.iter().enumerate() {
            if let Some(source) = pump.source() {
                fds.push(PollFd::from_borrowed_fd(source.as_fd(), PollFlags::IN));
                ready.push(Some(index));
            }
        }
        // A limit of centuries is no reason to fail.
        let timeout = Timespec::try_from(patience.min(REST)).unwrap_or_default();
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut heard = fds.iter().map(|fd| !fd.revents().is_empty()).collect::<Vec<_>>().into_iter();
        drop(fds);
        ready.retain(|_| heard.next() == Some(true));
        for index in ready {
            match index {
                None => self.exited = true,
                Some(index) => pumps[index].step(),
            }
        }
        Ok(self.exited)
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if !self.over {
            self.strays.signal_group(Signal::KILL);
            let end = Instant::now() + STRAY_GRACE;
            let mut told = BTreeSet::new();
            while Instant::now() < end {
                let alive = self.strays.alive();
                self.strays.signal(&alive, Signal::KILL, &mut told);
                if matches!(self.pump(&mut [], Duration::from_millis(10)), Ok(true) | Err(_)) && alive.is_empty() {
                    break;
                }
            }
            interrupts::leave();
            if self.exited {
                let _ = self.child.wait();
            }
        }
        strays::leave_orphans();
    }
}
