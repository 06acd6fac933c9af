//! The program and the `git` that it has called die together, `git` being in the middle of its own work: a worktree half
//! made, a reference locked and not moved, a checkout half brought up to its commit.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

use crate::crash::{IDENTITIES, calls, compare, matrix, prepared, settle, time};
use crate::sandbox::{Sandbox, files};
use crate::state;
use crate::trace;

/// Stands before `git` on the program's path. Counts the calls that the program makes; with $AT=<n> the n-th of them is
/// ended at its $NUMBER-th $CALL, and its caller with it, otherwise each leaves its trace in $SHIM.
const SHIM: &str = r#"#!/bin/sh
read -r name <"/proc/$PPID/comm"
[ "$name" = git-devlyn ] || exec "$REAL" "$@"
echo "$*" >>"$SHIM/calls"
number=$(wc -l <"$SHIM/calls")
[ -n "$AT" ] || exec strace -qq -o "$SHIM/$number.trace" -e signal=none -e "trace=$CALL" "$REAL" "$@"
[ "$AT" = "$number" ] || exec "$REAL" "$@"
strace -qq -o /dev/null -e signal=none -e "trace=$CALL" -e "inject=$CALL:signal=KILL:when=$NUMBER" "$REAL" "$@"
code=$?
[ $code = 137 ] || exit $code
: >"$SHIM/hit"
kill -9 $PPID
"#;

/// The calls by which `git` changes what is on the disk.
const STEPS: &str = "rename,renameat,renameat2,link,linkat,symlink,symlinkat,mkdir,mkdirat,unlink,unlinkat,rmdir,write,fsync,\
                     fdatasync,ftruncate,chmod,fchmod";

/// A call of `git`, and a call of the system that it makes.
#[derive(Debug, PartialEq, Eq)]
struct Death {
    git: usize,
    words: String,
    call: String,
    number: usize,
}

/// Runs a drain behind the shim.
fn drain(sandbox: &Sandbox, at: Option<&Death>) {
    let shim = sandbox.root.join("shim");
    fs::create_dir(&shim).unwrap();
    let place = shim.join("git");
    fs::write(&place, SHIM).unwrap();
    fs::set_permissions(&place, fs::Permissions::from_mode(0o755)).unwrap();
    let args = sandbox.drain_args();
    let argv = sandbox.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let mut command = sandbox.command(&argv[0]);
    let path = command.get_envs().find(|(name, _)| *name == "PATH").and_then(|(_, path)| path).unwrap().to_owned();
    let path = format!("{}:{}", shim.display(), path.to_str().unwrap());
    command.env("PATH", path).env("SHIM", &shim).env("REAL", real_git());
    match at {
        None => command.env("AT", "").env("CALL", STEPS),
        Some(at) => command.env("AT", at.git.to_string()).env("CALL", &at.call).env("NUMBER", at.number.to_string()),
    };
    Sandbox::run(command.args(&argv[1..]));
}

fn real_git() -> String {
    let found = Command::new("sh").args(["-c", "command -v git"]).output().unwrap();
    String::from_utf8(found.stdout).unwrap().trim().to_owned()
}

/// Every step that `git` takes in an undisturbed drain.
fn deaths(shim: &Path) -> Vec<Death> {
    let calls = fs::read_to_string(shim.join("calls")).unwrap();
    let mut found: Vec<Death> = Vec::new();
    for (at, words) in calls.lines().enumerate() {
        let trace = fs::read(shim.join(format!("{}.trace", at + 1))).unwrap_or_default();
        for line in String::from_utf8_lossy(&trace).lines() {
            let Some((call, rest)) = line.split_once('(') else { continue };
            let number = 1 + found.iter().filter(|death| death.git == at + 1 && death.call == call).count();
            // What it prints changes nothing.
            let printed = call == "write" && (rest.starts_with("1,") || rest.starts_with("2,"));
            let death = Death { git: at + 1, words: words.to_owned(), call: call.to_owned(), number };
            found.push(if printed { Death { git: 0, ..death } } else { death });
        }
    }
    found
}

#[test]
fn a_drain_that_dies_with_git_in_the_middle_of_its_work_is_taken_up() {
    if !trace::possible() {
        return;
    }
    let prepared = prepared();
    let example = prepared.copy();
    drain(&example, None);
    let deaths: Vec<Death> = deaths(&example.root.join("shim")).into_iter().filter(|death| death.git > 0).collect();
    assert!(files(&example.root.join("shim")).len() > 10 && deaths.len() > 20, "the shim was not called");
    let undisturbed = state::of(&example);
    matrix("drain killed with git", &deaths, deaths.len(), time(), |death| {
        let sandbox = prepared.copy();
        drain(&sandbox, Some(death));
        if !sandbox.root.join("shim/hit").exists() {
            return Ok(None);
        }
        let calls = calls(&sandbox, &IDENTITIES);
        let settled = settle(&sandbox)?;
        compare(&sandbox, &undisturbed, false, &calls)?;
        Ok(Some(settled))
    });
}
