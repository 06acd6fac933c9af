//! Running other people's programs: a declared check, an executor, or a tool that is asked something.
//!
//! Each gets a process group of its own, the null device as standard input and the environment of
//! [`Environment`]. Whatever it does, nothing here waits for it longer than it was told to, keeps more of its
//! output than it was told to, or leaves a descendant of it behind unnamed. It judges nothing: what an exit means
//! is said elsewhere.

mod ask;
mod check;
mod environment;
mod executor;
mod interrupts;
mod output;
mod run;
mod strays;

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) use ask::ask;
pub use ask::{Answer, Tool};
pub use check::{Check, CheckRun, KEEP, Outcome, Words};
pub use environment::{Environment, GIT_LOCAL_VARIABLES, Program, find_program};
pub use executor::{End, Executor, Finished, Running};
pub use interrupts::{Grace, Interrupts, interrupted};
pub use output::Stream;

/// Why a program gave no result that could be believed.
#[derive(Debug, thiserror::Error)]
pub enum ProcessError {
    /// It could not be started; nothing of it ran.
    #[error("cannot start {program:?} in {}: {source}", .cwd.display())]
    NotStarted {
        /// Its first word.
        program: String,
        /// Where it should have run.
        cwd: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file for its output could not be made, written or flushed.
    #[error("cannot write {}: {source}", .path.display())]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// This process was told to end by this signal, so that what the program did means nothing.
    #[error("interrupted by signal {0}")]
    Interrupted(i32),
    /// It could not be waited for; it was ended.
    #[error("cannot watch process {pid}: {source}")]
    Unwatched {
        /// Its number.
        pid: u32,
        /// What the system said.
        source: io::Error,
    },
}

/// A command that starts `program` in `cwd` with nothing to read.
#[expect(clippy::disallowed_methods, reason = "the one place where a program other than Git is started")]
fn command(program: impl AsRef<OsStr>, cwd: &Path, environment: &Environment) -> Command {
    let mut command = Command::new(program);
    command.current_dir(cwd).stdin(Stdio::null());
    environment.apply(&mut command);
    command
}

/// What a tool of the system prints. Its exit status is no answer: `lsof` fails where it has one thing to remark.
///
/// # Errors
/// Where it cannot be started or prints nothing.
#[cfg(any(not(target_os = "linux"), test))]
pub(super) fn tool(program: &str, arguments: &[&str]) -> io::Result<Vec<u8>> {
    let environment = Environment::inherited().with("LC_ALL", "C");
    let output = command(program, Path::new("/"), &environment).args(arguments).output()?;
    if output.stdout.is_empty() {
        let said = String::from_utf8_lossy(&output.stderr).trim().to_owned();
        return Err(io::Error::other(format!("{program} said nothing ({}): {said}", output.status)));
    }
    Ok(output.stdout)
}

#[cfg(test)]
pub(in crate::os) mod testing {
    //! What the tests of this module share.

    use std::path::Path;
    use std::process::{Child, Command, Stdio};
    use std::time::{Duration, Instant};

    use super::Environment;

    /// A shell that runs `script` with `$1` and so on being `words`, in `cwd`.
    pub(in crate::os) fn shell(script: &str, words: &[&Path], cwd: &Path) -> Command {
        let mut command = super::command("/bin/sh", cwd, &Environment::inherited());
        command.args(["-c", script, "sh"]).args(words).stdout(Stdio::null());
        command
    }

    /// A command that runs the one ignored test `name` of this test binary with `KEY=value` variables, and hears a hangup
    /// even where the tests are run by one who does not (`nohup`): what this process takes over it does not hand down.
    pub(in crate::os) fn again(name: &str, variables: &[(&str, &Path)]) -> Command {
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Default::default()).unwrap();
        let mut environment = Environment::inherited();
        for (key, value) in variables {
            environment = environment.with(key, value);
        }
        let mut command = super::command(std::env::current_exe().unwrap(), Path::new("/"), &environment);
        command.args(["--exact", name, "--ignored", "--nocapture", "--test-threads=1"]);
        command
    }

    /// A child that is killed and waited for at the end of its test.
    pub(in crate::os) struct Guarded(pub(in crate::os) Child);

    impl Drop for Guarded {
        fn drop(&mut self) {
            let _ = self.0.kill();
            let _ = self.0.wait();
        }
    }

    /// Waits until `done`, and fails the test after ten seconds.
    #[track_caller]
    pub(in crate::os) fn until(what: &str, mut done: impl FnMut() -> bool) {
        let end = Instant::now() + Duration::from_secs(10);
        while !done() {
            assert!(Instant::now() < end, "never came: {what}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Whether a process of this number runs.
    pub(in crate::os) fn runs(pid: i32) -> bool {
        crate::os::table::all().unwrap().iter().any(|process| process.pid == pid && !process.is_dead())
    }
}
