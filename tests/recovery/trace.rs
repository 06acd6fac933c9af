//! The program under `strace`: which durable steps it takes, and how to end or starve it at one of them.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use crate::sandbox::{Said, Sandbox};

/// The calls that change what a later run can see, but for the opening of files: what it makes is seen by the write
/// that follows.
pub(crate) const STEPS: &str = "rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,unlink,unlinkat,rmdir,\
                                fsync,fdatasync,syncfs,write,writev,pwrite64,ftruncate,chmod,fchmod,fchmodat,flock,vfork,clone,clone3";

/// A system call by name, the first being number 1.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Point {
    pub(crate) call: String,
    pub(crate) number: usize,
}

/// How the program is watched.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Alone {
    /// The program dies by itself; what it started lives on.
    Yes,
    /// Everything dies with it, as when the power fails: it runs in a process namespace of its own.
    No,
}

/// Whether `strace` can be used here; says so where not.
pub(crate) fn possible() -> bool {
    let found = Command::new("strace").args(["-o", "/dev/null", "true"]).stderr(Stdio::null()).status();
    let possible = found.is_ok_and(|status| status.success());
    if !possible {
        eprintln!("skipped: strace is not there or may not trace (Debian: apt-get install strace)");
    }
    possible
}

/// Whether processes can be put into a namespace of their own; says so where not.
pub(crate) fn namespaces() -> bool {
    let found = Command::new("unshare").args(NAMESPACE).arg("true").stderr(Stdio::null()).status();
    let possible = found.is_ok_and(|status| status.success());
    if !possible {
        eprintln!("skipped: no process namespace can be made here");
    }
    possible
}

pub(crate) const NAMESPACE: [&str; 4] = ["--pid", "--fork", "--mount-proc", "--kill-child"];

/// The command that runs `argv` under `strace` with `options`.
pub(crate) fn strace(sandbox: &Sandbox, alone: Alone, options: &[&str], argv: &[String]) -> Command {
    let mut command = match alone {
        Alone::Yes => sandbox.command("strace"),
        Alone::No => {
            let mut command = sandbox.command("unshare");
            command.args(NAMESPACE).arg("strace");
            command
        }
    };
    command.args(options).arg("--").args(argv);
    command
}

/// The points that the program passes undisturbed, in their order, each call with what `strace` shows of it.
pub(crate) fn points(sandbox: &Sandbox, alone: Alone, calls: &str, argv: &[String]) -> (Said, Vec<(Point, String)>) {
    let log = sandbox.root.join("trace");
    let options =
        ["-qq", "-y", "-s", "200", "-o", log.to_str().unwrap(), "-e", &format!("trace={calls}"), "-e", "signal=none"];
    let said = Sandbox::run(&mut strace(sandbox, alone, &options, argv));
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    fs::remove_file(log).unwrap();
    let mut counts = BTreeMap::new();
    let points = text.lines().filter_map(|line| {
        let (call, _) = line.split_once('(')?;
        let number: &mut usize = counts.entry(call.to_owned()).or_default();
        *number += 1;
        Some((Point { call: call.to_owned(), number: *number }, line.to_owned()))
    });
    (said, points.collect())
}

/// Runs the program and kills it right before it passes `point`; whether it came to that.
pub(crate) fn killed_at(sandbox: &Sandbox, alone: Alone, point: &Point, argv: &[String]) -> bool {
    let (said, _) = injected(sandbox, alone, point, "signal=KILL", argv);
    // Without `strace` between: killed. With it as the first process of a namespace: 128 and the signal.
    said.code.is_none_or(|code| code == 137)
}

/// Runs the program and does `what` at `point`; with it the call that it was done to, which need not be quite the one of
/// the undisturbed run: how often the processes of the machine are looked at is a matter of time.
pub(crate) fn injected(sandbox: &Sandbox, alone: Alone, point: &Point, what: &str, argv: &[String]) -> (Said, String) {
    let log = sandbox.root.join("trace");
    let inject = format!("inject={}:{what}:when={}", point.call, point.number);
    let trace = format!("trace={}", point.call);
    let options =
        ["-qq", "-y", "-s", "200", "-o", log.to_str().unwrap(), "-e", &trace, "-e", "signal=none", "-e", &inject];
    let said = Sandbox::run(&mut strace(sandbox, alone, &options, argv));
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    fs::remove_file(log).unwrap();
    (said, text.lines().find(|line| line.ends_with("(INJECTED)")).unwrap_or_default().to_owned())
}
