//! One execution: its beginning on record before it is spawned, its end after it.

use std::ffi::OsString;

use super::Result;
use crate::exchange::Packet;
use crate::os::process::{End, Environment, Executor, ProcessError};
use crate::store::{StoreError, append_line};
use crate::task::placed;
use crate::view::Held;

/// How an execution went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// It ended.
    Ended {
        /// Its exit status; a signal as its negative number.
        code: i32,
        /// Command lines of its descendants that outlived it and were ended.
        left_behind: Vec<String>,
        /// Command lines of its descendants that outlived it on purpose and go on.
        spared: Vec<String>,
    },
    /// It could not begin.
    NotStarted(String),
}

/// Runs the executor on the task of `held`; `begun` is called once its beginning is on record.
///
/// # Errors
/// Where the log cannot be written or the executor cannot be watched; its beginning is then on record without an end.
pub fn execute(held: &Held, packet: &Packet, argv: &[OsString], begun: &mut dyn FnMut()) -> Result<Ran> {
    let receipt = &held.receipt;
    std::fs::create_dir_all(&packet.evidence_dir).map_err(StoreError::io(&packet.evidence_dir))?;
    let git_dir = receipt.worktree_gitdir.clone().unwrap_or_default();
    let executor = Executor {
        argv: placed(argv, &held.dir.packet(), &git_dir),
        cwd: receipt.worktree.clone(),
        stdout: packet.evidence_dir.join("executor.stdout"),
        stderr: packet.evidence_dir.join("executor.stderr"),
        environment: Environment::inherited(),
    };
    let log = |event: String| append_line(&held.dir.executions(), &format!("{} {event}", now()));
    log("start".to_owned())?;
    begun();
    let running = match executor.start() {
        Ok(running) => running,
        Err(error @ (ProcessError::NotStarted { .. } | ProcessError::Output { .. } | ProcessError::Interrupted(_))) => {
            let why = error.to_string().replace('\n', " ");
            log(format!("not started: {why}"))?;
            return Ok(Ran::NotStarted(why));
        }
        Err(error) => return Err(error.into()),
    };
    let finished = running.wait()?;
    let code = match finished.end {
        End::Exit(code) => code,
        End::Signal(signal) => -signal,
    };
    log(format!("exit {code} (pid {})", finished.pid))?;
    Ok(Ran::Ended { code, left_behind: finished.left_behind, spared: finished.spared })
}

/// This moment as the log has it: ISO 8601, UTC, microseconds.
fn now() -> String {
    jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S%.6f+00:00").to_string()
}
