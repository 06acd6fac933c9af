//! SIGINT, SIGTERM and SIGHUP. The first is passed on to the program that runs, which gets a bounded time; the second
//! ends everything at once. It decides nothing else: who works asks [`interrupted`] between two steps.

use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Once, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGTERM};

use super::strays::{self, Strays};

/// One wish sent twice: `timeout` signals its child and its group, a closing terminal its session and its jobs.
const ECHO: Duration = Duration::from_millis(100);
/// How often the program that runs is looked at once we were interrupted.
const TICK: Duration = Duration::from_millis(20);

static FIRST: AtomicI32 = AtomicI32::new(0);
static CURRENT: Mutex<Option<Current>> = Mutex::new(None);

/// The group of the program that runs, and what it has been told.
#[derive(Debug)]
struct Current {
    leader: Pid,
    told: Option<Instant>,
    next: Option<Signal>,
}

/// How long an interrupted program may take.
#[derive(Debug, Clone, Copy)]
pub struct Grace {
    /// From the signal that was passed on to SIGTERM.
    pub polite: Duration,
    /// From SIGTERM to SIGKILL.
    pub firm: Duration,
}

impl Default for Grace {
    fn default() -> Self {
        Self { polite: Duration::from_secs(10), firm: Duration::from_secs(2) }
    }
}

/// The handling of signals; installed once, for the life of the process.
#[derive(Debug)]
pub struct Interrupts(());

/// The first of the signals that asked this process to end, where one has.
#[must_use]
pub fn interrupted() -> Option<i32> {
    Some(FIRST.load(Ordering::SeqCst)).filter(|signal| *signal != 0)
}

impl Interrupts {
    /// Takes the signals over. A SIGHUP that is ignored stays so: whoever typed `nohup` meant it. A second call changes
    /// nothing.
    ///
    /// # Errors
    /// Where the system refuses a handler or a thread.
    pub fn install(grace: Grace) -> io::Result<()> {
        static INSTALLED: OnceLock<Interrupts> = OnceLock::new();
        if INSTALLED.get().is_some() {
            return Ok(());
        }
        let mut heard = Vec::new();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            if signal == SIGHUP && is_ignored(signal) {
                continue;
            }
            let (ours, theirs) = UnixStream::pair()?;
            ours.set_nonblocking(true)?;
            signal_hook::low_level::pipe::register(signal, theirs)?;
            heard.push((signal, ours));
        }
        std::thread::Builder::new().name("signals".into()).spawn(move || watch(&heard, grace))?;
        let _ = INSTALLED.set(Self(()));
        Ok(())
    }
}

/// Names the program that runs. One that starts after an interruption is told of it at the next tick.
pub(super) fn enter(leader: Pid) {
    *current() = Some(Current { leader, told: None, next: None });
}

/// No program runs; called before it is waited for, while its group's number is still its own.
pub(super) fn leave() {
    *current() = None;
}

/// Makes sure that children can be waited for: whoever started us may have had SIGCHLD ignored.
pub(super) fn hear_children() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let _ = signal_hook::flag::register(SIGCHLD, Arc::new(AtomicBool::new(false)));
    });
}

fn current() -> MutexGuard<'static, Option<Current>> {
    CURRENT.lock().unwrap_or_else(PoisonError::into_inner)
}

fn is_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask & (1 << (signal - 1)) != 0)
}

fn watch(heard: &[(i32, UnixStream)], grace: Grace) {
    let mut first = None;
    loop {
        let mut fds: Vec<_> =
            heard.iter().map(|(_, stream)| PollFd::from_borrowed_fd(stream.as_fd(), PollFlags::IN)).collect();
        let tick = Timespec::try_from(TICK).unwrap_or_default();
        let _ = poll(&mut fds, first.map(|_| &tick));
        let now = Instant::now();
        for (signal, stream) in heard {
            if !take(stream) {
                continue;
            }
            match first {
                None => {
                    first = Some(now);
                    FIRST.store(*signal, Ordering::SeqCst);
                }
                Some(at) if now.duration_since(at) < ECHO => {}
                Some(_) => end_at_once(*signal),
            }
        }
        if let Some(signal) = interrupted().and_then(Signal::from_named_raw)
            && let Some(current) = current().as_mut()
        {
            current.advance(signal, now, grace);
        }
    }
}

fn take(mut stream: &UnixStream) -> bool {
    let mut byte = [0; 64];
    matches!(stream.read(&mut byte), Ok(count) if count > 0)
}

/// The user does not want to wait. Whatever state this leaves is a crash, and the next start recovers from it.
fn end_at_once(signal: i32) -> ! {
    if let Some(current) = current().as_ref() {
        strays::signal_group(current.leader, Signal::KILL);
        for process in Strays::of(current.leader, false).alive() {
            let _ = process.signal(Signal::KILL);
        }
    }
    std::process::exit(128 + signal)
}

impl Current {
    /// Tells the group what it is time to tell it.
    fn advance(&mut self, signal: Signal, now: Instant, grace: Grace) {
        let Some(told) = self.told else {
            self.told = Some(now);
            self.next = Some(Signal::TERM);
            strays::signal_group(self.leader, signal);
            return;
        };
        match self.next {
            Some(Signal::TERM) if now >= told + grace.polite => {
                self.next = Some(Signal::KILL);
                strays::signal_group(self.leader, Signal::TERM);
            }
            Some(Signal::KILL) if now >= told + grace.polite + grace.firm => {
                self.next = None;
                strays::signal_group(self.leader, Signal::KILL);
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsString;
    use std::path::Path;
    use std::process::{Command, ExitStatus};

    use super::super::testing::{Guarded, again, runs, until};
    use super::super::{Check, Environment, Executor, KEEP, ProcessError, Words};
    use super::*;

    const VICTIM: &str = "os::process::interrupts::tests::victim";

    /// A process that runs the script `script` of `DEVLYN_TEST` as an executor, or as a check, and tells what came of it.
    #[test]
    #[ignore = "a part of the tests below, which start it in a process of its own"]
    fn victim() {
        let Some(root) = std::env::var_os("DEVLYN_TEST").map(std::path::PathBuf::from) else { return };
        let long = root.join("long").exists();
        let grace = Duration::from_millis(if long { 60_000 } else { 200 });
        Interrupts::install(Grace { polite: grace, firm: grace }).unwrap();
        let script = std::fs::read_to_string(root.join("script")).unwrap();
        let (stdout, stderr) = (root.join("out"), root.join("err"));
        let (cwd, environment) = (root.clone(), Environment::inherited());
        let result = if root.join("check").exists() {
            let (words, limit) = (Words::Shell(script), Duration::from_secs(60));
            let check = Check { words, cwd, stdout, stderr, limit, keep: KEEP, environment };
            matches!(check.run(), Err(ProcessError::Interrupted(_))).to_string()
        } else {
            let argv = ["/bin/sh".into(), "-c".into(), OsString::from(script)].to_vec();
            let executor = Executor { argv, cwd, stdout, stderr, environment };
            let finished = executor.start().unwrap().wait().unwrap();
            let again = matches!(executor.start(), Err(ProcessError::Interrupted(_)));
            format!("{:?} {:?} {again}", finished.end, interrupted())
        };
        let mut file = std::fs::File::create(root.join("result")).unwrap();
        std::io::Write::write_all(&mut file, result.as_bytes()).unwrap();
    }

    struct Case {
        root: tempfile::TempDir,
    }

    impl Case {
        fn new(script: &str, files: &[&str]) -> Self {
            let root = tempfile::tempdir().unwrap();
            let mut file = std::fs::File::create(root.path().join("script")).unwrap();
            std::io::Write::write_all(&mut file, script.as_bytes()).unwrap();
            for name in files {
                std::fs::File::create(root.path().join(name)).unwrap();
            }
            Self { root }
        }

        fn has(&self, name: &str) -> bool {
            self.root.path().join(name).exists()
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.root.path().join(name)).unwrap_or_default()
        }

        fn command(&self) -> Command {
            let mut command = again(VICTIM, &[("DEVLYN_TEST", self.root.path())]);
            command.stdout(std::process::Stdio::null());
            command
        }

        /// Runs the victim, and calls `act` with its number every few milliseconds once its program is ready.
        fn run(&self, mut act: impl FnMut(Pid)) -> ExitStatus {
            let mut child = Guarded(self.command().spawn().unwrap());
            let mut status = None;
            until("the victim ends", || {
                if self.has("ready") {
                    act(Pid::from_child(&child.0));
                }
                status = child.0.try_wait().unwrap();
                status.is_some()
            });
            status.unwrap()
        }
    }

    fn once(signal: Signal) -> impl FnMut(Pid) {
        let mut sent = false;
        move |pid| {
            if !std::mem::replace(&mut sent, true) {
                rustix::process::kill_process(pid, signal).unwrap();
            }
        }
    }

    const WAIT: &str = "touch ready; while :; do sleep 0.01; done";

    #[test]
    fn the_first_signal_is_passed_on_and_nothing_starts_after_it() {
        for (signal, name) in [(Signal::INT, "INT"), (Signal::TERM, "TERM"), (Signal::HUP, "HUP")] {
            let case = Case::new(&format!("trap 'exit 5' {name}; {WAIT}"), &["long"]);
            assert!(case.run(once(signal)).success());
            assert_eq!(case.text("result"), format!("Exit(5) Some({}) true", signal.as_raw()));
        }
    }

    #[test]
    fn who_ignores_every_polite_signal_is_killed_in_the_end() {
        let case = Case::new(&format!("trap '' INT TERM; {WAIT}"), &[]);
        assert!(case.run(once(Signal::INT)).success());
        assert_eq!(case.text("result"), "Signal(9) Some(2) true");
    }

    #[test]
    fn an_interrupted_check_has_no_outcome() {
        let case = Case::new(WAIT, &["check"]);
        assert!(case.run(once(Signal::TERM)).success());
        assert_eq!(case.text("result"), "true");
    }

    #[test]
    fn the_second_signal_ends_everything_at_once() {
        let script =
            format!("trap '' INT TERM; setsid sh -c 'echo $$ > away; exec sleep 6548' & echo $$ > pid; {WAIT}");
        let case = Case::new(&script, &["long"]);
        let status = case.run(|pid| {
            if !case.text("away").is_empty() {
                let _ = rustix::process::kill_process(pid, Signal::INT);
            }
        });
        assert_eq!(status.code(), Some(130));
        assert!(!case.has("result"));
        for name in ["pid", "away"] {
            until(name, || !runs(case.text(name).trim().parse().unwrap()));
        }
    }

    /// The victim of `case`, started by somebody who ignores `signal`; none where nothing here can do that.
    fn behind(case: &Case, signal: &str) -> Option<Command> {
        let victim = case.command();
        let mut outer = super::super::command("env", Path::new("/"), &Environment::inherited());
        outer.arg(format!("--ignore-signal={signal}")).stdout(std::process::Stdio::null());
        // `env` of GNU alone can; a shell forgets that it was told to ignore SIGCHLD.
        let possible = outer.stderr(std::process::Stdio::null()).arg("true").status().unwrap().success();
        let mut outer = super::super::command("env", Path::new("/"), &Environment::inherited());
        outer.arg(format!("--ignore-signal={signal}")).stdout(std::process::Stdio::null());
        outer.arg(victim.get_program()).args(victim.get_args()).env("DEVLYN_TEST", case.root.path());
        possible.then_some(outer)
    }

    #[test]
    fn an_ignored_hangup_stays_ignored() {
        let case = Case::new("touch ready; while ! test -e release; do sleep 0.01; done", &["long"]);
        let Some(mut victim) = behind(&case, "HUP") else { return };
        let mut child = victim.spawn().unwrap();
        until("it is ready", || case.has("ready"));
        rustix::process::kill_process(Pid::from_child(&child), Signal::HUP).unwrap();
        std::fs::File::create(case.root.path().join("release")).unwrap();
        assert!(child.wait().unwrap().success());
        assert_eq!(case.text("result"), "Exit(0) None false");
    }

    #[test]
    fn who_ignored_the_end_of_children_before_us_costs_us_none() {
        let case = Case::new("exit 3", &[]);
        let Some(mut victim) = behind(&case, "CHLD") else { return };
        assert!(victim.status().unwrap().success());
        assert_eq!(case.text("result"), "Exit(3) None false");
    }

    #[test]
    fn each_step_comes_in_its_time_and_once() {
        // A group that nobody has: what is looked at is which step is next.
        let mut current = Current { leader: Pid::from_raw(0x3fff_fff0).unwrap(), told: None, next: None };
        let (start, grace) = (Instant::now(), Grace::default());
        for (after, next) in [(0, Some(Signal::TERM)), (9, Some(Signal::TERM)), (10, Some(Signal::KILL))] {
            current.advance(Signal::INT, start + Duration::from_secs(after), grace);
            assert_eq!(current.next, next);
        }
        current.advance(Signal::INT, start + Duration::from_secs(12), grace);
        assert_eq!(current.next, None);
    }
}
