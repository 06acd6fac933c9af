//! A declared check: a command with a limit, whose output is evidence. Says how it ended, never whether that is good.

use std::io;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use super::output::{Pump, Stream};
use super::run::Run;
use super::{Environment, ProcessError, command, interrupted};
use crate::os::of_the_machine;

/// The bytes of a stream that are kept unless somebody says otherwise: 64 MiB.
pub const KEEP: u64 = 64 << 20;

/// What a check consists of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Words {
    /// A program and its arguments, no shell between.
    Argv(Vec<String>),
    /// A line for `/bin/sh -c`.
    Shell(String),
}

/// A declared check, ready to run.
#[derive(Debug, Clone)]
pub struct Check {
    /// The command.
    pub words: Words,
    /// Where it runs; a relative program is one of this directory.
    pub cwd: PathBuf,
    /// A file that does not exist yet, for its standard output.
    pub stdout: PathBuf,
    /// A file that does not exist yet, for its standard error.
    pub stderr: PathBuf,
    /// How long it may run.
    pub limit: Duration,
    /// Bytes of each stream that are kept; see [`KEEP`].
    pub keep: u64,
    /// What it knows of us; `PYTHONDONTWRITEBYTECODE=1` is added, so that a check leaves the tree as it is.
    pub environment: Environment,
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
    /// At its limit.
    Timeout,
    /// Before it began, because of this.
    SpawnError(String),
}

/// A check that has been run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckRun {
    /// How it ended.
    pub outcome: Outcome,
    /// Its standard output as kept.
    pub stdout: Stream,
    /// Its standard error as kept.
    pub stderr: Stream,
    /// Command lines of descendants that outlived it and were ended, or that hold its output and are not ours to end.
    pub left_behind: Vec<String>,
}

impl Check {
    /// Runs it to its end, flushes its evidence files (not their directory), and leaves nothing of it running.
    ///
    /// # Errors
    /// Where its evidence could not be kept, it could not be watched, or this process was told to end meanwhile: then
    /// there is no outcome that could be recorded.
    pub fn run(&self) -> Result<CheckRun, ProcessError> {
        refuse_when_interrupted()?;
        let mut stdout = Pump::new(&self.stdout, self.keep)?;
        let mut stderr = Pump::new(&self.stderr, self.keep)?;
        let (outcome, left_behind) = match self.start() {
            Err(ProcessError::NotStarted { program, source, .. }) if !of_the_machine(&source) => {
                (Outcome::SpawnError(format!("cannot start {program:?}: {source}")), Vec::new())
            }
            Err(error) => return Err(error),
            Ok(mut run) => {
                run.connect(&mut stdout, &mut stderr);
                let ended = run.finish(&mut [&mut stdout, &mut stderr], Some(self.limit))?;
                let outcome = match ended.status {
                    Some(status) if !ended.timed_out => match (status.code(), status.signal()) {
                        (Some(code), _) => Outcome::Exit(code),
                        (None, signal) => Outcome::Signal(signal.unwrap_or_default()),
                    },
                    _ => Outcome::Timeout,
                };
                (outcome, ended.left_behind)
            }
        };
        let (stdout, stderr) = (stdout.finish()?, stderr.finish()?);
        refuse_when_interrupted()?;
        Ok(CheckRun { outcome, stdout, stderr, left_behind })
    }

    fn start(&self) -> Result<Run, ProcessError> {
        let words = match &self.words {
            Words::Argv(words) => words.as_slice(),
            Words::Shell(line) => &["/bin/sh".to_owned(), "-c".to_owned(), line.clone()],
        };
        let not_started = |program: &str, source| ProcessError::NotStarted {
            program: program.to_owned(),
            cwd: self.cwd.clone(),
            source,
        };
        let Some((program, arguments)) = words.split_first() else {
            return Err(not_started("", io::Error::new(io::ErrorKind::InvalidInput, "the command is empty")));
        };
        let environment = self.environment.clone().with("PYTHONDONTWRITEBYTECODE", "1");
        let mut command = command(program, &self.cwd, &environment);
        command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped());
        Run::start(&mut command).map_err(|source| not_started(program, source))
    }
}

pub(super) fn refuse_when_interrupted() -> Result<(), ProcessError> {
    interrupted().map_or(Ok(()), |signal| Err(ProcessError::Interrupted(signal)))
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::super::testing::{runs, until};
    use super::*;

    struct Bench {
        root: tempfile::TempDir,
        check: Check,
    }

    fn bench(words: Words) -> Bench {
        let root = tempfile::tempdir().unwrap();
        let check = Check {
            words,
            cwd: root.path().to_owned(),
            stdout: root.path().join("out"),
            stderr: root.path().join("err"),
            limit: Duration::from_secs(60),
            keep: KEEP,
            environment: Environment::inherited(),
        };
        Bench { root, check }
    }

    fn shell(line: &str) -> Bench {
        bench(Words::Shell(line.to_owned()))
    }

    fn argv(words: &[&str]) -> Bench {
        bench(Words::Argv(words.iter().map(|&word| word.to_owned()).collect()))
    }

    impl Bench {
        fn run(&self) -> CheckRun {
            let started = Instant::now();
            let run = self.check.run().unwrap();
            assert!(started.elapsed() < Duration::from_secs(30), "it hung");
            run
        }

        fn text(&self, name: &str) -> String {
            std::fs::read_to_string(self.root.path().join(name)).unwrap()
        }

        fn pid(&self, name: &str) -> i32 {
            self.text(name).trim().parse().unwrap()
        }
    }

    #[test]
    fn every_end_is_told_apart() {
        assert_eq!(shell("exit 0").run().outcome, Outcome::Exit(0));
        assert_eq!(shell("exit 255").run().outcome, Outcome::Exit(255));
        assert_eq!(shell("kill -9 $$").run().outcome, Outcome::Signal(9));
        let missing = argv(&["no-such-program-anywhere"]);
        let run = missing.run();
        assert!(matches!(&run.outcome, Outcome::SpawnError(error) if error.contains("no-such-program-anywhere")));
        assert_eq!((missing.text("out").as_str(), run.stdout.bytes), ("", 0));
        assert!(matches!(argv(&["a\0b"]).run().outcome, Outcome::SpawnError(_)));
        assert!(matches!(argv(&[]).run().outcome, Outcome::SpawnError(_)));
        assert!(matches!(argv(&["/etc/passwd"]).run().outcome, Outcome::SpawnError(_)));
    }

    #[test]
    fn the_streams_are_kept_apart_and_as_they_are() {
        let bench = shell("printf 'a\\377'; printf 'b\\r\\n\\0' >&2; cat; pwd; echo $PYTHONDONTWRITEBYTECODE");
        let run = bench.run();
        let out = std::fs::read(bench.root.path().join("out")).unwrap();
        assert_eq!(
            out,
            [b"a\xff", bench.root.path().canonicalize().unwrap().to_str().unwrap().as_bytes(), b"\n1\n"].concat()
        );
        assert_eq!(run.stdout.sha256, crate::package::sha256_hex(&out));
        assert_eq!((bench.text("err").as_str(), run.stderr.bytes), ("b\r\n\0", 4));
        assert!(run.left_behind.is_empty());
    }

    #[test]
    fn argv_goes_through_no_shell_and_a_relative_program_is_of_the_directory() {
        let bench = argv(&["./answer", "$HOME; exit 3", "*", ""]);
        let tool = bench.root.path().join("answer");
        assert_eq!(
            shell(&format!("printf '#!/bin/sh\\nprintf \"<%%s>\" \"$@\"\\n' > '{0}'; chmod +x '{0}'", tool.display()))
                .run()
                .outcome,
            Outcome::Exit(0)
        );
        assert_eq!(bench.run().outcome, Outcome::Exit(0));
        assert_eq!(bench.text("out"), "<$HOME; exit 3><*><>");
    }

    #[test]
    fn a_flood_is_cut_where_it_was_told_and_counted_to_the_end() {
        let mut bench = shell("yes | head -c 200M; echo end >&2");
        bench.check.keep = 1000;
        let run = bench.run();
        assert_eq!((run.outcome, run.stdout.cut), (Outcome::Exit(0), (200 << 20) - 1000));
        let text = bench.text("out");
        assert_eq!(text.len() as u64, run.stdout.bytes);
        assert!(text.ends_with("y\n[git-devlyn kept 1000 bytes and cut 209714200 more]\n"), "{}", &text[990..]);
        assert_eq!((bench.text("err").as_str(), run.stderr.cut), ("end\n", 0));
    }

    #[test]
    fn at_the_limit_the_whole_group_goes_whatever_it_ignores() {
        let mut bench = shell(
            "trap '' TERM; (trap '' TERM; echo before; while :; do sleep 600; done) & echo $! > inner; wait; sleep 600",
        );
        bench.check.limit = Duration::from_millis(300);
        let started = Instant::now();
        let run = bench.run();
        assert_eq!((run.outcome, bench.text("out").as_str()), (Outcome::Timeout, "before\n"));
        assert!(started.elapsed() >= Duration::from_secs(2), "the grace is for those that ignore TERM");
        until("the group is gone", || !runs(bench.pid("inner")));
    }

    #[test]
    fn who_listens_at_the_limit_may_still_say_something() {
        let mut bench = shell("trap 'echo tidied; exit 0' TERM; echo before; while :; do sleep 0.01; done");
        bench.check.limit = Duration::from_millis(300);
        let started = Instant::now();
        assert_eq!((bench.run().outcome, bench.text("out").as_str()), (Outcome::Timeout, "before\ntidied\n"));
        assert!(started.elapsed() < Duration::from_secs(2));
        let mut stopped = shell("kill -STOP $$");
        stopped.check.limit = Duration::from_millis(100);
        assert_eq!(stopped.run().outcome, Outcome::Timeout);
    }

    #[test]
    fn a_child_that_keeps_the_output_open_is_ended_and_named_and_the_exit_counts() {
        let bench = shell("sleep 6543 & echo $! > inner; echo before; exit 3");
        let run = bench.run();
        assert_eq!((run.outcome, bench.text("out").as_str()), (Outcome::Exit(3), "before\n"));
        assert_eq!(run.left_behind, ["sleep 6543"]);
        assert!(!runs(bench.pid("inner")));
    }

    #[test]
    fn a_child_that_ends_by_itself_soon_is_nobody_s_fault() {
        let bench = shell("(sleep 0.05; echo late) & exit 0");
        let run = bench.run();
        assert_eq!((run.outcome, bench.text("out").as_str()), (Outcome::Exit(0), "late\n"));
        assert!(run.left_behind.is_empty(), "{:?}", run.left_behind);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_daemon_in_a_session_of_its_own_is_found_with_and_without_the_output() {
        for (trap, away) in [("trap \"\" TERM", ""), (":", "</dev/null >/dev/null 2>&1")] {
            let daemon = format!("echo $$ > inner; {trap}; while :; do sleep 6544; done");
            let line = format!("(setsid sh -c '{daemon}' {away} &); while ! test -s inner; do sleep 0.01; done");
            let bench = shell(&line);
            let run = bench.run();
            assert_eq!(run.outcome, Outcome::Exit(0));
            assert!(run.left_behind.iter().any(|line| line.contains("echo $$")), "{:?}", run.left_behind);
            assert!(!runs(bench.pid("inner")));
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_flooding_daemon_holds_up_nothing() {
        let mut bench = shell("setsid yes & sleep 0.1");
        bench.check.keep = 10;
        let run = bench.run();
        assert_eq!((run.outcome, run.left_behind), (Outcome::Exit(0), vec!["yes".to_owned()]));
        assert!(run.stdout.cut > 0);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_stranger_that_was_handed_the_output_is_named_and_left_alone() {
        use super::super::testing::{Guarded, shell as outside};
        // The stranger opens the pipe of the check through /proc, as one that was sent the descriptor would have it.
        let bench = shell("echo $$ > inner; while ! test -e taken; do sleep 0.01; done");
        let script = "while ! test -s inner; do sleep 0.01; done; read pid < inner; exec 3> /proc/$pid/fd/1; touch taken; exec sleep 6545";
        let stranger = Guarded(outside(script, &[], bench.root.path()).spawn().unwrap());
        let run = bench.run();
        assert_eq!((run.outcome, run.left_behind), (Outcome::Exit(0), vec!["sleep 6545".to_owned()]));
        assert!(runs(i32::try_from(stranger.0.id()).unwrap()));
    }

    #[test]
    fn evidence_that_cannot_be_kept_is_an_error_by_name() {
        let mut bench = shell("exit 0");
        bench.check.stderr = Path::new("/nonexistent/err").into();
        assert!(bench.check.run().unwrap_err().to_string().contains("/nonexistent/err"));
    }
}
