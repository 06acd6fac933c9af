//! The declared commands: run one after the other in the worktree, their output kept as evidence, and held against
//! what was expected of them.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::time::Duration;

use super::{AcceptanceError, Result};
use crate::exchange::{Command, CommandRecord, Outcome, Stream};
use crate::os::process::{self, Check, CheckRun, Environment, KEEP, Words};
use crate::package::{CommandSpec, CommandWords};

/// What the commands did.
#[derive(Debug, Default)]
pub(super) struct Checks {
    /// One record a command whose evidence is kept.
    pub(super) records: Vec<CommandRecord>,
    /// Why they did not pass.
    pub(super) reasons: Vec<String>,
}

/// Runs `commands` in `worktree`, their output going into its folder `run`. A failed one stops no other.
///
/// # Errors
/// Where evidence cannot be kept or a command cannot be watched: then nothing is known.
pub(super) fn run_all(worktree: &Path, run: &str, commands: &[CommandSpec]) -> Result<Checks> {
    run_keeping(worktree, run, commands, KEEP)
}

fn run_keeping(worktree: &Path, run: &str, commands: &[CommandSpec], keep: u64) -> Result<Checks> {
    let mut checks = Checks::default();
    let kept = |record: &CommandRecord| {
        [&record.stdout, &record.stderr].iter().all(|stream| worktree.join(&stream.path).is_file())
    };
    for (index, spec) in commands.iter().enumerate() {
        let record = run_one(worktree, run, index, spec, keep)?;
        checks.reasons.extend(record.reason.as_ref().map(|what| reason(index, &spec.contract_refs, what)));
        checks.records.push(record);
        // `git clean -fdx` takes the evidence away. Nothing may be believed without it, and nothing more can be kept.
        if !checks.records.iter().all(kept) {
            checks.records.retain(kept);
            let what = format!("removed the evidence of the checks in {run}, expected it to leave .devlyn alone");
            checks.reasons.push(reason(index, &spec.contract_refs, &what));
            return Ok(checks);
        }
    }
    Ok(checks)
}

/// The reason that a command gives its task.
fn reason(index: usize, refs: &[String], what: &str) -> String {
    format!("failed: command {index} ({}) {what}", refs.join(", "))
}

fn run_one(worktree: &Path, run: &str, index: usize, spec: &CommandSpec, keep: u64) -> Result<CommandRecord> {
    let path = |name: &str| format!("{run}/cmd-{index}.{name}");
    let check = Check {
        words: match &spec.words {
            CommandWords::Argv(words) => Words::Argv(words.clone()),
            CommandWords::Shell(line) => Words::Shell(line.clone()),
        },
        cwd: worktree.to_owned(),
        stdout: worktree.join(path("stdout")),
        stderr: worktree.join(path("stderr")),
        limit: Duration::from_secs(spec.timeout_sec),
        keep,
        environment: Environment::inherited(),
    };
    let ran = check.run()?;
    let mut problems = ending(spec, &ran.outcome).into_iter().collect::<Vec<_>>();
    problems.extend(Printed { check: &check, ran: &ran }.problems(spec)?);
    let stream =
        |name: &str, kept: process::Stream| Stream { path: path(name), sha256: kept.sha256, bytes: kept.bytes };
    Ok(CommandRecord {
        index,
        command: Command::from(&spec.words),
        contract_refs: spec.contract_refs.clone(),
        outcome: match ran.outcome {
            process::Outcome::Exit(exit_code) => Outcome::Exit { exit_code },
            process::Outcome::Signal(signal) => Outcome::Signal { signal },
            process::Outcome::Timeout => Outcome::Timeout { timeout_sec: spec.timeout_sec },
            process::Outcome::SpawnError(error) => Outcome::SpawnError { error },
        },
        stdout: stream("stdout", ran.stdout),
        stderr: stream("stderr", ran.stderr),
        left_behind: ran.left_behind,
        passed: problems.is_empty(),
        reason: (!problems.is_empty()).then(|| problems.join("; ")),
        reused_from: None,
    })
}

/// How a command ended otherwise than it was expected to.
fn ending(spec: &CommandSpec, outcome: &process::Outcome) -> Option<String> {
    let found = match outcome {
        process::Outcome::Exit(code) if i64::from(*code) == spec.exit_code => return None,
        process::Outcome::Exit(code) => format!("exited with {code}"),
        process::Outcome::Signal(signal) => format!("was ended by signal {signal}"),
        process::Outcome::Timeout => format!("did not end within {} s", spec.timeout_sec),
        process::Outcome::SpawnError(error) => format!("did not start ({error})"),
    };
    Some(format!("{found}, expected {}", spec.exit_code))
}

/// What a command printed, as it is kept.
struct Printed<'a> {
    check: &'a Check,
    ran: &'a CheckRun,
}

impl Printed<'_> {
    /// The texts that are not where they were expected, or cannot be told to be.
    fn problems(&self, spec: &CommandSpec) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        for text in &spec.stdout_contains {
            if !self.holds(text)? {
                problems.push(match self.cut() {
                    None => format!("did not print {text:?}, expected it in its output"),
                    Some(cut) => format!("did not print {text:?} in what is kept ({cut}), expected it there"),
                });
            }
        }
        for text in &spec.stdout_not_contains {
            if self.holds(text)? {
                problems.push(format!("printed {text:?}, expected it nowhere in its output"));
            } else if let Some(cut) = self.cut() {
                problems.push(format!("printed more than is kept ({cut}), expected no {text:?} in all of it"));
            }
        }
        Ok(problems)
    }

    /// How much is kept of what was cut off.
    fn cut(&self) -> Option<String> {
        let cut =
            [("standard output", &self.ran.stdout), ("standard error", &self.ran.stderr)].map(|(name, stream)| {
                let keep = self.check.keep;
                (stream.cut > 0).then(|| format!("{keep} bytes of {name}, {} more were cut off", stream.cut))
            });
        let cut: Vec<String> = cut.into_iter().flatten().collect();
        (!cut.is_empty()).then(|| cut.join("; "))
    }

    /// Whether the text stands in standard output with standard error behind it. The line that tells of a cut is ours
    /// and no part of it.
    fn holds(&self, text: &str) -> Result<bool> {
        let mut found = Finder { text: text.as_bytes(), window: Vec::new() };
        for (path, stream) in [(&self.check.stdout, &self.ran.stdout), (&self.check.stderr, &self.ran.stderr)] {
            let length = stream.bytes.min(self.check.keep);
            match File::open(path) {
                Ok(file) => {
                    if found.search(file.take(length)).map_err(AcceptanceError::io(path))? {
                        return Ok(true);
                    }
                }
                // It was taken away by the command itself, which fails by that.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(AcceptanceError::io(path)(error)),
            }
        }
        Ok(text.is_empty())
    }
}

/// Looks for a text in one stream after the other as if they were one, a piece at a time.
struct Finder<'a> {
    text: &'a [u8],
    window: Vec<u8>,
}

impl Finder<'_> {
    fn search(&mut self, mut source: impl Read) -> io::Result<bool> {
        let mut piece = vec![0; 64 << 10];
        loop {
            let read = source.read(&mut piece)?;
            if read == 0 {
                return Ok(false);
            }
            self.window.extend_from_slice(&piece[..read]);
            if holds(&self.window, self.text) {
                return Ok(true);
            }
            // The beginning of the text may be the end of what was read.
            let past = self.window.len().saturating_sub(self.text.len().saturating_sub(1));
            self.window.drain(..past);
        }
    }
}

fn holds(window: &[u8], text: &[u8]) -> bool {
    let Some(first) = text.first() else { return true };
    let mut rest = window;
    while let Some(at) = rest.iter().position(|byte| byte == first) {
        if rest[at..].starts_with(text) {
            return true;
        }
        rest = &rest[at + 1..];
    }
    false
}

#[cfg(test)]
mod tests {
    use super::super::evidence::new_run;
    use super::*;
    use crate::package::sha256_hex;

    fn shell(line: &str) -> CommandSpec {
        CommandSpec {
            words: CommandWords::Shell(line.to_owned()),
            exit_code: 0,
            timeout_sec: 60,
            stdout_contains: Vec::new(),
            stdout_not_contains: Vec::new(),
            contract_refs: vec!["R1".to_owned(), "R2".to_owned()],
        }
    }

    fn says(line: &str, wanted: &[&str], forbidden: &[&str]) -> CommandSpec {
        let texts = |texts: &[&str]| texts.iter().map(|&text| text.to_owned()).collect();
        CommandSpec { stdout_contains: texts(wanted), stdout_not_contains: texts(forbidden), ..shell(line) }
    }

    fn run(commands: &[CommandSpec], keep: u64) -> (tempfile::TempDir, Checks) {
        let root = tempfile::tempdir().unwrap();
        let folder = new_run(root.path()).unwrap();
        let checks = run_keeping(root.path(), &folder, commands, keep).unwrap();
        (root, checks)
    }

    fn reasons(command: CommandSpec, keep: u64) -> Vec<String> {
        run(&[command], keep).1.reasons
    }

    #[test]
    fn every_command_is_run_and_recorded_as_it_ended() {
        let missing = CommandSpec { words: CommandWords::Argv(vec!["no-such-program".into()]), ..shell("") };
        let late = CommandSpec { timeout_sec: 1, ..shell("echo before; sleep 60") };
        let commands = [shell("exit 3"), shell("echo out; echo err >&2"), shell("kill -9 $$"), missing, late];
        let (root, checks) = run(&commands, KEEP);
        assert_eq!(
            checks.records.iter().map(|record| record.passed).collect::<Vec<_>>(),
            [false, true, false, false, false]
        );
        assert_eq!(checks.reasons.len(), 4);
        assert_eq!(checks.reasons[0], "failed: command 0 (R1, R2) exited with 3, expected 0");
        assert_eq!(checks.reasons[1], "failed: command 2 (R1, R2) was ended by signal 9, expected 0");
        assert!(checks.reasons[2].contains("no-such-program"), "{}", checks.reasons[2]);
        assert_eq!(checks.reasons[3], "failed: command 4 (R1, R2) did not end within 1 s, expected 0");
        assert_eq!(checks.records[0].reason.as_deref(), Some("exited with 3, expected 0"));
        assert_eq!(checks.records[1].reason, None);
        assert_eq!(checks.records[4].outcome, Outcome::Timeout { timeout_sec: 1 });
        let stream = &checks.records[1].stderr;
        assert_eq!((stream.path.as_str(), stream.bytes), (".devlyn/loop/runs/1/cmd-1.stderr", 4));
        assert_eq!(stream.sha256, sha256_hex(&std::fs::read(root.path().join(&stream.path)).unwrap()));
        let declared = CommandSpec { exit_code: 3, ..shell("exit 3") };
        assert!(reasons(declared, KEEP).is_empty());
    }

    #[test]
    fn texts_are_looked_for_in_both_streams_as_one_and_as_bytes() {
        let line = "printf 'out \\355\\225\\234 caf\\351'; printf 'err' >&2";
        assert!(reasons(says(line, &["out", "한", "err", "out 한"], &["café", "Out"]), KEEP).is_empty());
        let found = reasons(says(line, &["Out", "out"], &["err"]), KEEP);
        assert_eq!(
            found,
            ["failed: command 0 (R1, R2) did not print \"Out\", expected it in its output; \
              printed \"err\", expected it nowhere in its output"]
        );
        // Across the pieces in which it is read, and across the two streams.
        assert!(reasons(says("head -c 65533 /dev/zero; printf needle", &["needle"], &[]), KEEP).is_empty());
        assert!(reasons(says("printf nee; printf dle >&2", &["needle"], &[]), KEEP).is_empty());
    }

    #[test]
    fn what_was_cut_off_proves_nothing() {
        let line = "printf 'one two three'";
        assert!(reasons(says(line, &["one"], &[]), 4).is_empty());
        for (command, fact) in [
            (says(line, &["three"], &[]), "in what is kept (4 bytes of standard output, 9 more were cut off)"),
            (says(line, &[], &["none"]), "printed more than is kept (4 bytes of standard output, 9 more were cut off)"),
            (says(line, &["git-devlyn"], &[]), "did not print \"git-devlyn\""),
            (says(line, &[], &["one"]), "printed \"one\""),
        ] {
            let found = reasons(command, 4);
            assert!(found.len() == 1 && found[0].contains(fact), "{found:?}");
        }
        assert!(reasons(says(line, &["three"], &["four"]), 13).is_empty());
    }

    #[test]
    fn a_command_that_takes_the_evidence_away_fails_by_that() {
        let (root, checks) = run(&[shell("echo 1"), says("rm -rf .devlyn", &[], &["x"]), shell("touch ran")], KEEP);
        assert!(checks.records.is_empty() && !root.path().join("ran").exists());
        assert_eq!(checks.reasons.len(), 1);
        assert!(
            checks.reasons[0].starts_with("failed: command 1 (R1, R2) removed the evidence"),
            "{:?}",
            checks.reasons
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_was_left_behind_is_named_and_the_exit_counts() {
        let (_root, checks) = run(&[shell("sleep 6546 & exit 0")], KEEP);
        assert!(checks.records[0].passed);
        assert_eq!(checks.records[0].left_behind, ["sleep 6546"]);
    }
}
