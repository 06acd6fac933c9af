//! An executor: a program of the user's that works for as long as it likes. Its exit is told, never judged.

use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};

use super::check::refuse_when_interrupted;
use super::run::Run;
use super::{Environment, ProcessError, command};

/// An executor, ready to start.
#[derive(Debug, Clone)]
pub struct Executor {
    /// The program and its arguments.
    pub argv: Vec<OsString>,
    /// Where it runs.
    pub cwd: PathBuf,
    /// The file that its standard output is added to; made where it is missing.
    pub stdout: PathBuf,
    /// The file that its standard error is added to; made where it is missing.
    pub stderr: PathBuf,
    /// What it knows of us.
    pub environment: Environment,
}

/// An executor that was started. Dropped without [`Running::wait`] it is ended at once.
pub struct Running {
    run: Run,
}

/// How an executor ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// By itself, with this status.
    Exit(i32),
    /// By this signal.
    Signal(i32),
}

/// An executor that has ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finished {
    /// How.
    pub end: End,
    /// The number that it had.
    pub pid: u32,
    /// Command lines of descendants that outlived it in its process group and were ended.
    pub left_behind: Vec<String>,
    /// Command lines of descendants that outlived it in a session or group of their own: whoever takes one means to
    /// stay, and is for the observation of writers to find.
    pub spared: Vec<String>,
}

impl Executor {
    /// Starts it. Its output goes into the files directly, so that it loses no word where this process dies.
    ///
    /// # Errors
    /// [`ProcessError::NotStarted`], [`ProcessError::Output`] where a file cannot be opened or is no regular file, and
    /// [`ProcessError::Interrupted`]. Nothing runs then.
    pub fn start(&self) -> Result<Running, ProcessError> {
        refuse_when_interrupted()?;
        let open = |path: &Path| append(path).map_err(|source| ProcessError::Output { path: path.to_owned(), source });
        let (stdout, stderr) = (open(&self.stdout)?, open(&self.stderr)?);
        let not_started = |program: &OsString, source| ProcessError::NotStarted {
            program: program.to_string_lossy().into_owned(),
            cwd: self.cwd.clone(),
            source,
        };
        let Some((program, arguments)) = self.argv.split_first() else {
            return Err(not_started(&OsString::new(), io::ErrorKind::InvalidInput.into()));
        };
        let mut command = command(program, &self.cwd, &self.environment);
        command.args(arguments).stdout(stdout).stderr(stderr);
        let run = Run::start(&mut command).map_err(|source| not_started(program, source))?;
        Ok(Running { run: run.sparing() })
    }
}

impl Running {
    /// Its number, which is its group's too.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.run.pid()
    }

    /// Waits until it has ended and nothing of its process group is left.
    ///
    /// # Errors
    /// [`ProcessError::Unwatched`]; it was ended then.
    pub fn wait(self) -> Result<Finished, ProcessError> {
        let pid = self.pid();
        let ended = self.run.finish(&mut [], None)?;
        let end = match ended.status.map(|status| (status.code(), status.signal())) {
            Some((Some(code), _)) => End::Exit(code),
            Some((None, signal)) => End::Signal(signal.unwrap_or_default()),
            None => End::Signal(rustix::process::Signal::KILL.as_raw()),
        };
        Ok(Finished { end, pid, left_behind: ended.left_behind, spared: ended.spared })
    }
}

/// The regular file `path`, to be added to. The tree belongs to the executor, which may have put anything there since.
fn append(path: &Path) -> io::Result<File> {
    use rustix::fs::OFlags;
    // Without the second flag the opening of a FIFO would wait for a reader.
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    let file = OpenOptions::new().append(true).create(true).custom_flags(flags.cast_signed()).open(path)?;
    if file.metadata()?.is_file() { Ok(file) } else { Err(io::Error::other("not a regular file")) }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{runs, shell, until};
    use super::*;

    fn executor(root: &Path, script: &str) -> Executor {
        Executor {
            argv: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
            cwd: root.to_owned(),
            stdout: root.join("out"),
            stderr: root.join("err"),
            environment: Environment::inherited().with("GIVEN", "yes"),
        }
    }

    #[test]
    fn its_output_is_added_and_its_end_is_told() {
        let root = tempfile::tempdir().unwrap();
        let (out, err) = (root.path().join("out"), root.path().join("err"));
        for (script, end) in [("echo $GIVEN; exit 7", End::Exit(7)), ("cat; echo two >&2; kill -6 $$", End::Signal(6))]
        {
            let running = executor(root.path(), script).start().unwrap();
            let pid = running.pid();
            assert_eq!(running.wait().unwrap(), Finished { end, pid, left_behind: Vec::new(), spared: Vec::new() });
        }
        assert_eq!(std::fs::read_to_string(out).unwrap(), "yes\n");
        assert_eq!(std::fs::read_to_string(err).unwrap(), "two\n");
    }

    #[test]
    fn what_is_no_plain_file_gets_no_output() {
        let root = tempfile::tempdir().unwrap();
        let precious = root.path().join("precious");
        File::create(&precious).unwrap();
        std::os::unix::fs::symlink(&precious, root.path().join("out")).unwrap();
        let error = executor(root.path(), "echo x").start().err().unwrap();
        assert!(matches!(error, ProcessError::Output { .. }), "{error}");
        std::fs::remove_file(root.path().join("out")).unwrap();
        assert!(shell("mkfifo out", &[], root.path()).status().unwrap().success());
        assert!(executor(root.path(), "echo x").start().is_err());
        assert_eq!(precious.metadata().unwrap().len(), 0);
    }

    #[test]
    fn one_that_cannot_start_says_which_and_where() {
        let root = tempfile::tempdir().unwrap();
        let mut executor = executor(root.path(), "");
        executor.argv = vec!["no-such-executor".into()];
        let error = executor.start().err().unwrap();
        assert!(matches!(error, ProcessError::NotStarted { .. }));
        let text = error.to_string();
        assert!(text.contains("no-such-executor") && text.contains(root.path().to_str().unwrap()), "{text}");
        executor.argv.clear();
        assert!(matches!(executor.start(), Err(ProcessError::NotStarted { .. })));
    }

    #[test]
    fn its_stray_is_ended_and_named() {
        let root = tempfile::tempdir().unwrap();
        let script = "(sleep 6546 & echo $! > inner)";
        let finished = executor(root.path(), script).start().unwrap().wait().unwrap();
        if cfg!(target_os = "linux") {
            assert_eq!((finished.left_behind.as_slice(), finished.spared.len()), (&["sleep 6546".to_owned()][..], 0));
        }
        assert!(!runs(inner(root.path())));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_took_a_session_of_its_own_is_named_and_stays() {
        let root = tempfile::tempdir().unwrap();
        let script = "(setsid sleep 6548 & echo $! > inner)";
        let finished = executor(root.path(), script).start().unwrap().wait().unwrap();
        assert_eq!((finished.left_behind.len(), finished.spared.as_slice()), (0, &["sleep 6548".to_owned()][..]));
        let stays = rustix::process::Pid::from_raw(inner(root.path())).unwrap();
        // Nor does the next program's end concern it.
        let next = executor(root.path(), "true").start().unwrap().wait().unwrap();
        assert_eq!((next.left_behind.len(), next.spared.len()), (0, 0));
        assert!(runs(stays.as_raw_pid()));
        rustix::process::kill_process(stays, rustix::process::Signal::KILL).unwrap();
    }

    fn inner(root: &Path) -> i32 {
        std::fs::read_to_string(root.join("inner")).unwrap().trim().parse().unwrap()
    }

    #[test]
    fn one_that_nobody_waits_for_is_ended() {
        let root = tempfile::tempdir().unwrap();
        let script = "sleep 6547 & echo $! > inner; wait";
        let running = executor(root.path(), script).start().unwrap();
        let inner = || std::fs::read_to_string(root.path().join("inner")).ok()?.trim().parse::<i32>().ok();
        until("it works", || inner().is_some());
        drop(running);
        assert!(!runs(inner().unwrap()));
    }
}
