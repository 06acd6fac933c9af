//! The one place that spawns `git`: a clean environment, no optional locks, no monitor, no maintenance behind our
//! back, and a failure that shows what was asked, where, and what was said.

use std::ffi::{OsStr, OsString};
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use super::{GitError, Result};
use crate::os::process::{GIT_LOCAL_VARIABLES, ask};

/// How much of what a failed `git` said is repeated.
const STDERR_KEPT: usize = 2000;

/// One call of `git`, being put together.
#[derive(Debug)]
pub struct Git {
    dir: PathBuf,
    args: Vec<OsString>,
    env: Vec<(OsString, OsString)>,
    input: Option<Vec<u8>>,
    config: Vec<String>,
    limit: Option<Duration>,
    undisturbed: bool,
}

/// What a `git` that ended said.
#[derive(Debug)]
pub struct Output {
    /// Its exit status, if it ended by itself.
    pub code: Option<i32>,
    /// Its standard output.
    pub stdout: Vec<u8>,
    /// Its standard error.
    pub stderr: Vec<u8>,
}

impl Output {
    /// Standard output as text without the line feed at its end.
    #[must_use]
    pub fn line(&self) -> String {
        String::from_utf8_lossy(&self.stdout).trim_end_matches('\n').to_owned()
    }
}

impl Git {
    /// A call that runs in `dir`, which alone decides the repository.
    #[must_use]
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self {
            dir: dir.into(),
            args: Vec::new(),
            env: Vec::new(),
            input: None,
            config: Vec::new(),
            limit: None,
            undisturbed: false,
        }
    }

    /// One more argument.
    #[must_use]
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.args.push(arg.as_ref().to_owned());
        self
    }

    /// More arguments.
    #[must_use]
    pub fn args<A: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = A>) -> Self {
        self.args.extend(args.into_iter().map(|arg| arg.as_ref().to_owned()));
        self
    }

    /// One more variable of its environment.
    #[must_use]
    pub fn env(mut self, key: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.env.push((key.as_ref().to_owned(), value.as_ref().to_owned()));
        self
    }

    /// One more `-c key=value`.
    #[must_use]
    pub fn config(mut self, setting: impl Into<String>) -> Self {
        self.config.push(setting.into());
        self
    }

    /// What it reads; nothing otherwise.
    #[must_use]
    pub fn input(mut self, bytes: impl Into<Vec<u8>>) -> Self {
        self.input = Some(bytes.into());
        self
    }

    /// How long it may take: a network may stay silent for ever. It then reads nothing, and nobody can answer it on the
    /// terminal.
    #[must_use]
    pub fn limit(mut self, limit: Duration) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The same, so that an interrupt on the terminal does not reach it: it ends by itself, and soon.
    #[must_use]
    pub fn undisturbed(mut self) -> Self {
        self.undisturbed = true;
        self
    }

    /// The command, ready to be started by this module or kept open by [`super::refs`].
    pub(super) fn command(&self) -> Command {
        #[expect(clippy::disallowed_methods, reason = "this is the one place that spawns git")]
        let mut command = Command::new("git");
        for name in GIT_LOCAL_VARIABLES {
            command.env_remove(name);
        }
        command.env("GIT_OPTIONAL_LOCKS", "0").env("LC_ALL", "C").current_dir(&self.dir);
        // What whoever runs the tests has configured for himself is no part of them.
        #[cfg(test)]
        command.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_NOSYSTEM", "1");
        command.args(["-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false"]);
        for setting in &self.config {
            command.arg("-c").arg(setting);
        }
        if self.undisturbed {
            std::os::unix::process::CommandExt::process_group(&mut command, 0);
        }
        command.args(&self.args).envs(self.env.iter().map(|(key, value)| (key, value)));
        command
    }

    /// Runs it to its end, whatever its exit status.
    ///
    /// # Errors
    /// [`GitError::Spawn`] where it cannot be started, [`GitError::Failed`] where its time was up.
    pub fn output(&self) -> Result<Output> {
        if let Some(limit) = self.limit {
            let answer = ask(&mut self.command(), limit).map_err(GitError::Spawn)?;
            let output = Output { code: answer.code, stdout: answer.stdout, stderr: answer.stderr };
            return if answer.ended { Err(self.failed(&output, "ended before it answered")) } else { Ok(output) };
        }
        let mut command = self.command();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.stdin(if self.input.is_some() { Stdio::piped() } else { Stdio::null() });
        let mut child = command.spawn().map_err(GitError::Spawn)?;
        let writer = match (child.stdin.take(), self.input.clone()) {
            (Some(mut stdin), Some(input)) => Some(std::thread::spawn(move || {
                // A `git` that ends before it has read everything says why by its exit status.
                let _ = stdin.write_all(&input);
            })),
            _ => None,
        };
        let output = child.wait_with_output().map_err(GitError::Spawn)?;
        if let Some(writer) = writer {
            let _ = writer.join();
        }
        Ok(Output { code: output.status.code(), stdout: output.stdout, stderr: output.stderr })
    }

    /// Runs it to its end; anything but exit status 0 is an error.
    ///
    /// # Errors
    /// [`GitError::Spawn`] and [`GitError::Failed`].
    pub fn run(&self) -> Result<Output> {
        let output = self.output()?;
        if output.code == Some(0) { Ok(output) } else { Err(self.failure(&output)) }
    }

    /// The error that tells of `output`.
    #[must_use]
    pub fn failure(&self, output: &Output) -> GitError {
        self.failed(output, &output.code.map_or_else(|| "ended by a signal".to_owned(), |code| format!("exit {code}")))
    }

    fn failed(&self, output: &Output, status: &str) -> GitError {
        let status = status.to_owned();
        GitError::Failed { argv: shown(&self.args), dir: self.dir.clone(), status, stderr: tail(&output.stderr) }
    }
}

fn shown(args: &[OsString]) -> String {
    args.iter().map(|arg| arg.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

/// The end of what was said on standard error, on one line.
pub(super) fn tail(stderr: &[u8]) -> String {
    let from = stderr.len().saturating_sub(STDERR_KEPT);
    let text = String::from_utf8_lossy(&stderr[from..]);
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    if lines.is_empty() { "it said nothing".to_owned() } else { lines.join("; ") }
}
