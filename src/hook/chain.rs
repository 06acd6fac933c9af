//! The hook that was there before ours: kept as `<name>.local` beside it, and called first, with the same arguments,
//! environment and standard input.

use std::ffi::OsString;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::shims::is_shim;
use super::{Event, HookError, Result};

/// How the hook that was there before ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Chained {
    /// There is none, or it may not be executed, and Git would not call it either.
    None,
    /// It ended with this exit status; 128 and the signal's number where a signal ended it.
    Status(i32),
}

/// Where the hook that was there before is kept.
pub(super) fn local(dir: &Path, event: Event) -> PathBuf {
    dir.join(format!("{}.local", event.name()))
}

/// Calls the hook that was there before ours in the directory `hooks`, if there is one. `input` is what Git says on
/// standard input, where it says anything.
///
/// # Errors
/// Where it cannot be started.
pub fn run_local(hooks: &Path, event: Event, args: &[OsString], input: Option<&[u8]>) -> Result<Chained> {
    let path = local(hooks, event);
    let executable =
        std::fs::metadata(&path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0);
    // Where Git calls the file of that name besides, because ours is no file, it is not called twice.
    // The pre-commit framework keeps what was there under a name of its own, and calls it.
    let legacy = format!("{}.legacy", event.name());
    if !executable || ![event.name(), &legacy].iter().any(|name| is_shim(&hooks.join(name), event)) {
        return Ok(Chained::None);
    }
    let mut child = match start(command(path.as_os_str()), args, input.is_some()) {
        // A file without `#!`, which a shell runs, as it does for Git.
        Err(error) if error.raw_os_error() == Some(rustix::io::Errno::NOEXEC.raw_os_error()) => {
            let mut shell = command("sh".as_ref());
            shell.arg(&path);
            start(shell, args, input.is_some())
        }
        started => started,
    }
    .map_err(HookError::io(&path))?;
    let status = std::thread::scope(|scope| {
        if let (Some(mut stdin), Some(input)) = (child.stdin.take(), input) {
            // A hook that does not read all of it is in its right.
            scope.spawn(move || stdin.write_all(input));
        }
        child.wait()
    })
    .map_err(HookError::io(&path))?;
    Ok(Chained::Status(status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))))
}

fn command(program: &std::ffi::OsStr) -> Command {
    #[expect(clippy::disallowed_methods, reason = "a hook gets the environment that Git made for it, unchanged")]
    Command::new(program)
}

fn start(mut command: Command, args: &[OsString], input: bool) -> std::io::Result<Child> {
    command.args(args).stdin(if input { Stdio::piped() } else { Stdio::inherit() }).spawn()
}
