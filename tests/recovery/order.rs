//! What a power failure would lose, told from the order of the system calls: nothing gets its name before it is on the
//! disk, and nothing is said, no reference moved, before the names are there too.

use std::collections::BTreeSet;

use crate::crash::prepared;
use crate::sandbox::Sandbox;
use crate::trace::{self, Alone};

const CALLS: &str = "write,fsync,fdatasync,rename,renameat,renameat2,mkdir,mkdirat";

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
        let counts = |path: &&String| path.contains("/repo/.git/") && !path.contains("/tmp_objdir-");
        self.files.iter().chain(&self.folders).filter(counts).collect()
    }

    fn moved(&mut self, from: &str, to: &str) -> Result<(), String> {
        // What is staged gets its name later.
        if to.contains("/tmp_objdir-") {
            if self.files.remove(from) {
                self.files.insert(to.to_owned());
            }
            return Ok(());
        }
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

#[test]
fn everything_is_on_the_disk_before_it_counts() {
    if !trace::possible() {
        return;
    }
    let sandbox = prepared();
    let args = sandbox.drain_args();
    let argv = sandbox.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
    let (said, mut points) = trace::points(&sandbox, Alone::Yes, CALLS, &argv);
    assert_eq!(said.status(), "DRAINED", "{said:?}");
    let sandbox = Sandbox::new();
    sandbox.package("inv", &[(crate::sandbox::Task::new("t1", &[]), "")]);
    let (said, more) = trace::points(&sandbox, Alone::Yes, CALLS, &sandbox.devlyn_argv(&["add", "inv"]));
    assert_eq!(said.status(), "ADDED", "{said:?}");
    points.extend(more);
    let (mut pending, mut faults, mut counted) = (Pending::default(), Vec::new(), 0);
    for (point, shown) in &points {
        let path = described(shown).unwrap_or_default();
        let words: Vec<&str> = shown.split('"').collect();
        match point.call.as_str() {
            "fsync" | "fdatasync" => {
                pending.files.remove(&path);
                pending.folders.remove(&path);
            }
            "write" if shown.starts_with("write(2") || shown.starts_with("write(1<") || shown.contains("start\\n") => {
                counted += 1;
                if !pending.state().is_empty() {
                    faults.push(format!("{:?} is not flushed at {shown}", pending.state()));
                    pending = Pending::default();
                }
            }
            "write" => drop(pending.files.insert(path)),
            "mkdir" | "mkdirat" => drop(pending.folders.insert(above(words[1]))),
            _ => faults.extend(pending.moved(words[1], words[3]).err()),
        }
    }
    eprintln!("{} calls, {counted} at which everything had to be on the disk", points.len());
    assert!(counted > 20 && points.len() > 200, "strace was not understood");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
