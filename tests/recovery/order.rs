//! What a power failure would lose, told from the order of the system calls: nothing gets its name before it is on the
//! disk, and nothing is said, no reference moved, before the names are there too.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use crate::crash::prepared;
use crate::sandbox::{Said, Sandbox, Task};
use crate::trace::{self, Alone};

const CALLS: &str = "write,fsync,fdatasync,syncfs,rename,renameat,renameat2,mkdir,mkdirat,clone,clone3";

/// What is not on the disk yet.
#[derive(Debug, Default)]
struct Pending {
    /// Files with bytes.
    files: BTreeSet<String>,
    /// Folders with names.
    folders: BTreeSet<String>,
}

impl Pending {
    /// What of it belongs to the state that later runs rely on.
    fn state(&self) -> Vec<&String> {
        let counts = |path: &&String| path.contains("/repo/.git/") && !path.contains("/objects/tmp_obj_");
        self.files.iter().chain(&self.folders).filter(counts).collect()
    }

    fn moved(&mut self, from: &str, to: &str) -> Result<(), String> {
        let loose = |path: &&String| *path == from || path.starts_with(&format!("{from}/"));
        if let Some(path) = self.files.iter().chain(&self.folders).find(loose) {
            return Err(format!("{path} is not flushed when {from} becomes {to}"));
        }
        self.folders.insert(above(to));
        Ok(())
    }
}

fn above(path: &str) -> String {
    path.rsplit_once('/').map_or("", |(above, _)| above).to_owned()
}

/// The path that strace shows in angle brackets behind a descriptor.
fn described(shown: &str) -> Option<String> {
    let (_, rest) = shown.split_once('<')?;
    let (path, _) = rest.split_once('>')?;
    path.starts_with('/').then(|| path.to_owned())
}

/// The calls of the program and all its threads, without those of the programs that it starts, in the order in which
/// they came to their end.
fn calls(sandbox: &Sandbox, argv: &[String]) -> (Said, Vec<String>) {
    let log = sandbox.root.join("trace");
    let options = ["-f", "-qq", "-y", "-s", "200", "-o", log.to_str().unwrap(), "-e", &format!("trace={CALLS}")];
    let said = Sandbox::run(&mut trace::strace(sandbox, Alone::Yes, &options, argv));
    let text = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    let mut begun: BTreeMap<&str, &str> = BTreeMap::new();
    let mut all: Vec<(&str, String)> = Vec::new();
    for line in text.lines() {
        let (thread, call) = line.split_once(' ').unwrap();
        let call = call.trim_start();
        if let Some(first) = call.strip_suffix(" <unfinished ...>") {
            begun.insert(thread, first);
        } else if let Some((_, rest)) = call.strip_prefix("<... ").and_then(|rest| rest.split_once(" resumed>")) {
            all.push((thread, format!("{}{rest}", begun.remove(thread).unwrap_or_default())));
        } else {
            all.push((thread, call.to_owned()));
        }
    }
    let mut threads: BTreeSet<&str> = text.split(' ').next().into_iter().collect();
    for (thread, call) in &all {
        if threads.contains(thread) && call.contains("CLONE_THREAD") {
            threads.extend(call.rsplit_once(" = ").map(|(_, number)| number.trim()));
        }
    }
    let own = all.iter().filter(|(thread, call)| {
        threads.contains(thread) && call.starts_with(|c: char| c.is_ascii_lowercase()) && !call.starts_with("clone")
    });
    (said, own.map(|(_, call)| call.clone()).collect())
}

#[test]
fn everything_is_on_the_disk_before_it_counts() {
    if !trace::possible() {
        return;
    }
    let sandbox = prepared();
    let args = sandbox.drain_args();
    let argv = sandbox.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let (said, mut all) = calls(&sandbox, &argv);
    assert_eq!(said.status(), "DRAINED", "{said:?}");
    let sandbox = Sandbox::new();
    sandbox.package("inv", &[(Task::new("t1", &[]), "")]);
    let (said, more) = calls(&sandbox, &sandbox.devlyn_argv(&["add", "inv"]));
    assert_eq!(said.status(), "ADDED", "{said:?}");
    all.extend(more);
    let (mut pending, mut faults, mut counted) = (Pending::default(), Vec::new(), 0);
    let (mut receipts, mut whole) = (BTreeMap::new(), false);
    for shown in &all {
        let path = described(shown).unwrap_or_default();
        let words: Vec<&str> = shown.split('"').collect();
        match shown.split('(').next().unwrap_or_default() {
            "fsync" | "fdatasync" => {
                pending.files.remove(&path);
                pending.folders.remove(&path);
            }
            // Git flushed nothing of the worktree that a receipt is about to call whole.
            "syncfs" => whole = true,
            "write" if shown.starts_with("write(2") || shown.starts_with("write(1<") || shown.contains("start\\n") => {
                counted += 1;
                if !pending.state().is_empty() {
                    faults.push(format!("{:?} is not flushed at {shown}", pending.state()));
                    pending = Pending::default();
                }
            }
            "write" => drop(pending.files.insert(path)),
            "mkdir" | "mkdirat" => drop(pending.folders.insert(above(words[1]))),
            _ => {
                let to = words[3];
                faults.extend(pending.moved(words[1], to).err());
                if to.ends_with("/receipt.json") {
                    let seen: &mut usize = receipts.entry(to.to_owned()).or_default();
                    *seen += 1;
                    match *seen {
                        1 => whole = false,
                        2 if !whole => faults.push(format!("the worktree of {to} is not flushed when it is owned")),
                        _ => {}
                    }
                }
            }
        }
    }
    eprintln!("{} calls, {counted} at which everything had to be on the disk", all.len());
    assert!(receipts.values().any(|seen| *seen >= 2), "no receipt was seen");
    assert!(counted > 20 && all.len() > 200, "strace was not understood");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
