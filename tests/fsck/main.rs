//! `git devlyn fsck` and `git devlyn recover`, driven as a person drives them: each thing is broken in turn, exactly its
//! finding is seen, and where the remedy is a command it is typed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a suite that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a suite starts programs and spoils files as a person would")]

#[path = "../common/mod.rs"]
mod common;

mod captures;
mod clean;
mod leftovers;
mod receipts;
mod recover;
mod worktrees;

use std::path::{Path, PathBuf};

use common::{Does, Sandbox, Task};
use serde_json::Value;

/// A repository with an accepted, a failed and a blocked task in `a`, an accepted one in `b`, and an active one in `c`.
fn worked() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add("a", &[Task::new("t1").reviewed(), Task::new("t2"), Task::new("t3").after("t1").after("t2")]);
    sandbox.add("b", &[Task::new("t1")]);
    sandbox.add("c", &[Task::new("t1")]);
    sandbox.executor_does("a.t2", Does::Badly);
    sandbox.executor_does("c.t1", Does::Nothing);
    let object = sandbox.drain().ok().json();
    assert_eq!(object["status"], "WAITING", "{object:#}");
    let counts = ["accepted", "failed", "blocked", "active"].map(|key| object["counts"][key].as_u64().unwrap());
    assert_eq!(counts, [2, 1, 1, 1], "{object:#}");
    clean(&sandbox);
    sandbox
}

/// What fsck finds, which changes nothing.
#[track_caller]
fn findings(sandbox: &Sandbox) -> Vec<Value> {
    let listing = || sandbox.run("sh", &sandbox.repo, &["-c", LISTING]).stdout;
    let before = listing();
    let findings = told(sandbox);
    assert_eq!(listing(), before);
    findings
}

/// What fsck finds while others may be at work.
#[track_caller]
fn told(sandbox: &Sandbox) -> Vec<Value> {
    let ran = sandbox.devlyn(&["fsck", "--json"]);
    assert!(ran.stderr.is_empty(), "{}", ran.stderr);
    let object = ran.json();
    let findings = object["findings"].as_array().unwrap().clone();
    let serious = findings.iter().any(|finding| finding["severity"] != "info");
    assert_eq!(object["status"], if serious { "FINDINGS" } else { "CLEAN" });
    assert_eq!(ran.code, i32::from(serious));
    findings
}

/// Every file of the state and of the worktrees, with its mode, size, time of change and number.
const LISTING: &str =
    "find .git ../repo.devlyn -path .git/objects -prune -o -printf '%p %m %s %T@ %i\\n' 2>/dev/null | sort";

/// Nothing at all is found.
#[track_caller]
fn clean(sandbox: &Sandbox) {
    assert_eq!(findings(sandbox), Vec::<Value>::new());
}

/// Exactly one finding: how much it matters, how its place ends, and what is said of it. Returns its remedy.
#[track_caller]
fn finds(sandbox: &Sandbox, severity: &str, place: &str, what: &str) -> String {
    let found = findings(sandbox);
    let [one] = found.as_slice() else { panic!("{what}: {found:#?}") };
    let text = |key: &str| one[key].as_str().unwrap().to_owned();
    assert_eq!(text("severity"), severity, "{one:#}");
    assert!(text("where").ends_with(place), "{place}: {one:#}");
    assert!(text("what").contains(what), "{what}: {one:#}");
    assert!(!text("remedy").is_empty());
    text("remedy")
}

/// As [`finds`], and the commands of the remedy mend it when they are typed.
#[track_caller]
fn mended(sandbox: &Sandbox, severity: &str, place: &str, what: &str) {
    let remedy = finds(sandbox, severity, place, what);
    let commands: Vec<&str> = remedy.split('`').skip(1).step_by(2).collect();
    assert!(!commands.is_empty(), "{remedy}");
    for command in commands {
        if !command.starts_with("git log") {
            sandbox.run("sh", &sandbox.repo, &["-c", command]).ok();
        }
    }
    clean(sandbox);
}

/// Something that was spoilt, and how it was before.
enum Before {
    Bytes(PathBuf, Vec<u8>),
    Nothing(PathBuf),
    Moved(PathBuf, PathBuf),
    Ref(String, Option<String>),
}

/// Spoils things of a repository and puts them back.
struct Spoils<'a> {
    sandbox: &'a Sandbox,
    before: Vec<Before>,
}

impl<'a> Spoils<'a> {
    fn new(sandbox: &'a Sandbox) -> Self {
        Self { sandbox, before: Vec::new() }
    }

    /// Writes a file anew, with its mode as it was.
    fn file(&mut self, path: &Path, text: impl AsRef<[u8]>) -> &mut Self {
        self.before.push(match std::fs::read(path) {
            Ok(bytes) => Before::Bytes(path.to_owned(), bytes),
            Err(_) => Before::Nothing(path.to_owned()),
        });
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
        self
    }

    /// Changes an object in a file.
    fn json(&mut self, path: &Path, edit: impl FnOnce(&mut serde_json::Map<String, Value>)) -> &mut Self {
        let mut value: Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
        edit(value.as_object_mut().unwrap());
        self.file(path, format!("{value:#}\n"))
    }

    /// Makes a directory.
    fn dir(&mut self, path: &Path) -> &mut Self {
        self.before.push(Before::Nothing(path.to_owned()));
        std::fs::create_dir_all(path).unwrap();
        self
    }

    /// Moves a file or directory away; it is itself when it comes back.
    fn gone(&mut self, path: &Path) -> &mut Self {
        let aside = self.sandbox.root.join(format!("aside-{}", self.before.len()));
        std::fs::rename(path, &aside).unwrap();
        self.before.push(Before::Moved(path.to_owned(), aside));
        self
    }

    /// Moves a reference, or takes it away.
    fn reference(&mut self, name: &str, to: Option<&str>) -> &mut Self {
        let before = self.sandbox.run("git", &self.sandbox.repo, &["rev-parse", "-q", "--verify", name]);
        self.before.push(Before::Ref(name.to_owned(), (before.code == 0).then(|| before.line())));
        self.set(name, to);
        self
    }

    fn set(&self, name: &str, to: Option<&str>) {
        match to {
            Some(to) => drop(self.sandbox.git(&["update-ref", name, to])),
            None => drop(self.sandbox.git(&["update-ref", "-d", name])),
        }
    }

    /// Puts everything back, and sees that nothing is found any more.
    #[track_caller]
    fn restore(&mut self) {
        while let Some(before) = self.before.pop() {
            match before {
                Before::Bytes(path, bytes) => std::fs::write(path, bytes).unwrap(),
                Before::Nothing(path) if path.is_dir() => std::fs::remove_dir_all(path).unwrap(),
                Before::Nothing(path) => drop(std::fs::remove_file(path)),
                Before::Moved(path, aside) => {
                    if path.is_dir() {
                        std::fs::remove_dir_all(&path).unwrap();
                    }
                    std::fs::rename(aside, path).unwrap();
                }
                Before::Ref(name, to) => self.set(&name, to.as_deref()),
            }
        }
        clean(self.sandbox);
    }
}
