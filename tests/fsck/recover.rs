//! Every state that an interrupted allocation leaves, and an interrupted recovery; and everything else, refused.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Does, Sandbox, Task, clean};

/// What the worktree of an interrupted allocation began at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Began {
    Baseline,
    Inputs,
}

/// A repository with one loop whose task was just allocated, as if its receipt had not been written to the end yet.
fn interrupted(began: Began) -> (Sandbox, Left) {
    let sandbox = Sandbox::new();
    sandbox.write("deep/er/file.txt", &"line\n".repeat(100));
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-q", "-m", "More"]);
    sandbox.add("a", &[Task::new("t1")]);
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let place = sandbox.worktree("a.t1");
    let branch = Sandbox::branch("a.t1");
    let args = ["task", "allocate", "--task", "a.t1", "--branch", &branch, "--base", "main", "--local-base", &head];
    sandbox.devlyn(&[args.as_slice(), &["--worktree", place.to_str().unwrap()]].concat()).ok();
    let registration = PathBuf::from(sandbox.receipt("a.t1")["worktree_gitdir"].as_str().unwrap());
    if began == Began::Inputs {
        commit_inputs(&sandbox, &place, "a.t1");
    }
    sandbox.edit_receipt("a.t1", |receipt| {
        receipt.insert("allocation".into(), json!("allocating"));
        receipt.remove("worktree_gitdir");
        receipt.remove("worktree_identity");
    });
    let left = Left { dir: sandbox.receipt_dir("a.t1"), place, registration, branch };
    (sandbox, left)
}

/// What the drain commits before it makes the worktree.
fn commit_inputs(sandbox: &Sandbox, place: &Path, task: &str) {
    sandbox.run("git", place, &["checkout", "-q", "refs/devlyn/captures/a", "--", "docs/specs/a"]).ok();
    sandbox.run("git", place, &["commit", "-q", "-m", &format!("devlyn loop: inputs {task}")]).ok();
}

/// Where everything of it is.
struct Left {
    dir: PathBuf,
    place: PathBuf,
    registration: PathBuf,
    branch: String,
}

impl Left {
    fn lock(&self, reason: &str) {
        std::fs::write(self.registration.join("locked"), reason).unwrap();
    }

    /// Takes away everything in the registration but these.
    fn registered(&self, kept: &[&str]) {
        for entry in std::fs::read_dir(&self.registration).unwrap().map(Result::unwrap) {
            if !kept.iter().any(|name| entry.file_name() == *name) {
                gone(&entry.path());
            }
        }
    }

    /// Takes away everything in the worktree but these.
    fn holds(&self, kept: &[&str]) {
        for entry in std::fs::read_dir(&self.place).unwrap().map(Result::unwrap) {
            if !kept.iter().any(|name| entry.file_name() == *name) {
                gone(&entry.path());
            }
        }
    }
}

fn gone(path: &Path) {
    if path.is_dir() {
        std::fs::remove_dir_all(path).unwrap();
    } else {
        std::fs::remove_file(path).unwrap();
    }
}

fn delete_branch(sandbox: &Sandbox, left: &Left) {
    sandbox.git(&["update-ref", "-d", &format!("refs/heads/{}", left.branch)]);
}

const MAKING: &str = "git-devlyn is making it";

/// How each state is made of a whole allocation; its name says what was there when it was interrupted.
type State = (&'static str, fn(&Sandbox, &Left));

const STATES: [State; 23] = [
    ("the whole of it", |_, _| {}),
    ("the whole of it, still locked", |_, left| left.lock(MAKING)),
    ("a receipt that was being written anew", |_, left| {
        std::fs::write(left.dir.join(".receipt.json.aB3dE6"), "{").unwrap();
    }),
    ("some files, one of them cut off, and no index", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir", "commondir", "HEAD"]);
        std::fs::write(left.registration.join("index.lock"), "DIRC").unwrap();
        gone(&left.place.join("README.md"));
        std::fs::write(left.place.join("deep/er/file.txt"), "line\nli").unwrap();
    }),
    ("no files, and a head", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir", "commondir", "HEAD"]);
        left.holds(&[".git"]);
    }),
    ("no head", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir"]);
        left.holds(&[".git"]);
    }),
    ("a head that was never written", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir", "HEAD"]);
        std::fs::write(left.registration.join("HEAD"), "").unwrap();
        left.holds(&[".git"]);
    }),
    ("a head, and no way to the common directory", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir", "commondir", "HEAD"]);
        std::fs::write(left.registration.join("commondir"), "").unwrap();
        left.holds(&[".git"]);
    }),
    ("a .git file that was never written", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir"]);
        left.holds(&[".git"]);
        std::fs::write(left.place.join(".git"), "").unwrap();
    }),
    ("an index that was never written", |_, left| {
        left.lock(MAKING);
        std::fs::write(left.registration.join("index"), "").unwrap();
    }),
    ("an empty directory that Git has on record", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked", "gitdir"]);
        left.holds(&[]);
    }),
    ("an empty directory, and the lock of its registration", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked"]);
        left.holds(&[]);
    }),
    ("the lock of a registration", |_, left| {
        left.lock(MAKING);
        left.registered(&["locked"]);
        gone(&left.place);
    }),
    ("a branch", |sandbox, left| {
        sandbox.git(&["worktree", "remove", left.place.to_str().unwrap()]);
    }),
    ("a receipt", |sandbox, left| {
        sandbox.git(&["worktree", "remove", left.place.to_str().unwrap()]);
        delete_branch(sandbox, left);
    }),
    ("half a receipt", |sandbox, left| {
        sandbox.git(&["worktree", "remove", left.place.to_str().unwrap()]);
        delete_branch(sandbox, left);
        std::fs::rename(left.dir.join("receipt.json"), left.dir.join(".receipt.json.aB3dE6")).unwrap();
    }),
    ("a scratch", |sandbox, left| {
        sandbox.git(&["worktree", "remove", left.place.to_str().unwrap()]);
        delete_branch(sandbox, left);
        gone(&left.dir.join("receipt.json"));
    }),
    ("a directory", |sandbox, left| {
        sandbox.git(&["worktree", "remove", left.place.to_str().unwrap()]);
        delete_branch(sandbox, left);
        gone(&left.dir.join("receipt.json"));
        gone(&left.dir.join("scratch"));
    }),
    ("a removal that took some files", |_, left| gone(&left.place.join("deep"))),
    ("a removal that took the .git file and some others", |_, left| {
        gone(&left.place.join(".git"));
        gone(&left.place.join("README.md"));
    }),
    ("a removal that took the files", |_, left| gone(&left.place)),
    ("a removal that took the files and half of what is on record", |_, left| {
        gone(&left.place);
        left.registered(&["commondir", "HEAD", "index"]);
    }),
    ("a removal that took the receipt", |sandbox, left| {
        sandbox.git(&["worktree", "remove", left.place.to_str().unwrap()]);
        delete_branch(sandbox, left);
        gone(&left.dir.join("receipt.json"));
        std::fs::write(left.dir.join("lock"), "").unwrap();
    }),
];

#[test]
fn every_interrupted_allocation_is_undone_and_made_anew() {
    for (began, (name, make)) in
        [Began::Baseline, Began::Inputs].into_iter().flat_map(|b| STATES.map(|state| (b, state)))
    {
        let name = format!("{name}, at its {began:?}");
        let (sandbox, left) = interrupted(began);
        make(&sandbox, &left);
        let listing = || {
            let files =
                sandbox.run("find", &sandbox.root, &["-path", "*/objects", "-prune", "-o", "-printf", "%p %s\\n"]);
            (files.stdout, sandbox.refs())
        };
        let drained = sandbox.drain().ok().json();
        assert_eq!((&drained["status"], sandbox.calls().len()), (&json!("WAITING"), 0), "{name}: {drained:#}");
        let found = super::findings(&sandbox);
        assert_eq!(found.len(), 1, "{name}: {found:#?}");
        assert!(found[0]["remedy"].as_str().unwrap().contains("git devlyn recover a.t1"), "{name}: {found:#?}");
        // Showing it makes the locks that are not there yet, and nothing else.
        sandbox.devlyn(&["recover", "a.t1", "--dry-run"]);
        let before = listing();
        let shown = sandbox.devlyn(&["recover", "a.t1", "--dry-run", "--json"]);
        assert_eq!(shown.code, 0, "{name}: {shown:?}");
        assert_eq!(shown.json()["status"], "RECOVERABLE", "{name}");
        assert_eq!(listing(), before, "{name}");
        let undone = sandbox.devlyn(&["recover", "a.t1", "--json"]);
        assert_eq!(undone.code, 0, "{name}: {undone:?}");
        let (shown, undone) = (shown.json(), undone.json());
        assert_eq!(
            (&undone["status"], &undone["holds"]["worktree"]),
            (&json!("RECOVERED"), &shown["holds"]["worktree"])
        );
        assert!(!left.dir.exists() && !left.place.exists(), "{name}");
        assert_eq!(sandbox.git(&["for-each-ref", "refs/heads/devlyn"]), "", "{name}");
        assert_eq!(sandbox.git(&["worktree", "list"]).lines().count(), 1, "{name}");
        clean(&sandbox);
        sandbox.devlyn(&["recover", "a.t1"]).exits(1);
        sandbox.drained();
        assert_eq!(sandbox.calls(), ["a.t1"], "{name}");
        clean(&sandbox);
    }
}

/// What refuses, and a word of why.
#[track_caller]
fn refused(sandbox: &Sandbox, name: &str, why: &str) {
    let before = (sandbox.refs(), std::fs::read(sandbox.receipt_dir("a.t1").join("receipt.json")).ok());
    for args in [["recover", "a.t1", "--json"].as_slice(), &["recover", "a.t1", "--dry-run", "--json"]] {
        let ran = sandbox.devlyn(args);
        assert_eq!(ran.code, 1, "{name}: {ran:?}");
        let object: Value = ran.json();
        assert_eq!(object["status"], "BLOCKED", "{name}");
        assert!(object["reason"].as_str().unwrap().contains(why), "{name}: {object:#}");
    }
    let after = (sandbox.refs(), std::fs::read(sandbox.receipt_dir("a.t1").join("receipt.json")).ok());
    assert_eq!(before, after, "{name}");
}

/// What may be somebody's work: its name, a word of the refusal, how it is done in the worktree, and undone.
const UNDONE: [(&str, &str, &str, &str); 13] = [
    ("untracked", "new.txt", ": >new.txt", "rm new.txt"),
    ("ignored", ".devlyn/", "mkdir .devlyn; : >.devlyn/x", "rm -r .devlyn"),
    ("changed", "README.md", "echo mine >README.md", "git checkout -q ."),
    ("cut off, with an index", "README.md", "printf '#' >README.md", "git checkout -q ."),
    (
        "staged only",
        "README.md",
        "echo mine >README.md; git add README.md; git show HEAD:README.md >README.md",
        "git reset -q",
    ),
    (
        "another branch",
        "has another branch checked out",
        "git switch -q -c mine",
        "git switch -q devlyn/a/t1; git branch -q -D mine",
    ),
    (
        "a commit beside the branch",
        "stands at",
        "git switch -q --detach; git commit -q --allow-empty -m mine",
        "git switch -q devlyn/a/t1",
    ),
    ("a commit", "look at `git log", "git commit -q --allow-empty -m mine", "git reset -q --hard HEAD~"),
    (
        "a branch that is checked out elsewhere",
        "is checked out in",
        "git switch -q --detach; git worktree add -q $SANDBOX/mine devlyn/a/t1",
        "git worktree remove $SANDBOX/mine; git switch -q devlyn/a/t1",
    ),
    ("a foreign lock", "locked by somebody else", "echo mine >$G/locked", "rm $G/locked"),
    ("something in the scratch", "scratch is nothing that an allocation leaves", ": >$D/scratch/x", "rm $D/scratch/x"),
    ("something else", "packet.json is nothing that an allocation leaves", ": >$D/packet.json", "rm $D/packet.json"),
    (
        "another directory in its place",
        "Git does not know it",
        "mv $G $SANDBOX/g; mv $W $SANDBOX/w; mkdir $W; : >$W/x",
        "cd /; rm -r $W; mv $SANDBOX/w $W; mv $SANDBOX/g $G",
    ),
];

#[test]
fn whatever_may_be_somebody_s_work_is_refused_by_name() {
    let (sandbox, left) = interrupted(Began::Baseline);
    let typed = |line: &str| {
        let mut shell = sandbox.command("sh", &left.place);
        shell.env("W", &left.place).env("D", &left.dir).env("G", &left.registration);
        let done = shell.args(["-e", "-c", line]).output().unwrap();
        assert!(done.status.success(), "{line}: {done:?}");
    };
    for (name, why, spoil, undo) in UNDONE {
        typed(spoil);
        refused(&sandbox, name, why);
        typed(undo);
        sandbox.devlyn(&["recover", "a.t1", "--dry-run"]).ok();
    }
    let mut writer = sandbox.command("sleep", &left.place).arg("600").spawn().unwrap();
    refused(&sandbox, "a writer", "active process");
    writer.kill().unwrap();
    writer.wait().unwrap();
    let drain_lock = std::fs::File::create(sandbox.common().join("devlyn-loops/drain.lock")).unwrap();
    drain_lock.lock().unwrap();
    refused(&sandbox, "a drain", "a drain works in this repository");
    drop(drain_lock);
    sandbox.devlyn(&["recover", "a.t1"]).ok();
    refused(&sandbox, "nothing", "nothing is left of an allocation");
}

/// What looks like the inputs of an allocation and is somebody's work: its name, and how it is made of a branch at its
/// baseline.
const PRETENDED: [(&str, &str); 6] = [
    ("more than the package", "echo mine >mine; git add mine; git commit -q --amend --no-edit"),
    ("a package that was edited", "echo mine >>docs/specs/a/meta.md; git commit -q -a --amend --no-edit"),
    ("a queue that is none", "echo '- [F] mine' >>docs/specs/a/queue.md; git commit -q -a --amend --no-edit"),
    ("a file that was taken away", "git rm -q README.md; git commit -q --amend --no-edit"),
    ("another message", "git commit -q --amend -m mine"),
    ("a commit on it", "git commit -q --allow-empty -m 'devlyn loop: inputs a.t1'"),
];

#[test]
fn what_only_looks_like_inputs_is_somebody_s_work() {
    let (sandbox, left) = interrupted(Began::Inputs);
    let typed = |line: &str| sandbox.run("sh", &left.place, &["-e", "-c", line]).ok();
    let inputs = typed("git rev-parse HEAD").line();
    for (name, make) in PRETENDED {
        typed(make);
        refused(&sandbox, name, "look at `git log");
        typed(&format!("git reset -q --hard {inputs}"));
        sandbox.devlyn(&["recover", "a.t1", "--dry-run"]).ok();
    }
    let shown = sandbox.devlyn(&["recover", "a.t1"]).ok().stdout;
    assert!(shown.contains(&format!("is at its inputs {inputs}")), "{shown}");
}

#[test]
fn whatever_is_no_unfinished_allocation_is_refused_by_name() {
    let (sandbox, left) = interrupted(Began::Baseline);
    let receipt = left.dir.join("receipt.json");
    let whole = std::fs::read(&receipt).unwrap();
    std::fs::write(&receipt, "{").unwrap();
    refused(&sandbox, "unreadable", "receipt.json");
    std::fs::write(&receipt, &whole).unwrap();
    sandbox.edit_receipt("a.t1", |receipt| drop(receipt.insert("common_gitdir".into(), json!("/else"))));
    refused(&sandbox, "misplaced", "belongs to the repository");
    std::fs::write(&receipt, &whole).unwrap();
    // A receipt that names the main checkout, or another worktree, takes neither away.
    let other = sandbox.root.join("other");
    sandbox.git(&["worktree", "add", "-q", "-b", "mine", other.to_str().unwrap()]);
    for place in [&sandbox.repo, &other] {
        sandbox.edit_receipt("a.t1", |receipt| drop(receipt.insert("worktree".into(), json!(place))));
        refused(&sandbox, "elsewhere", "checked out");
    }
    std::fs::write(&receipt, &whole).unwrap();
    std::fs::rename(&receipt, sandbox.root.join("receipt.json")).unwrap();
    refused(&sandbox, "a branch without a receipt", "no receipt says that it is the task's");
    std::fs::rename(sandbox.root.join("receipt.json"), &receipt).unwrap();
    sandbox.devlyn(&["recover", "a.t1"]).ok();

    sandbox.executor_does("a.t1", Does::Nothing);
    sandbox.drain().ok();
    refused(&sandbox, "active", "goes on with `git devlyn drain`");
    sandbox.executor_does("a.t1", Does::Badly);
    sandbox.drained();
    refused(&sandbox, "failed", "has a result, which is never undone");
    sandbox.devlyn(&["recover", "a.t9"]).exits(1);
    sandbox.devlyn(&["recover", "../../etc"]).exits(1);
}

#[test]
fn a_drain_that_is_killed_while_git_makes_its_worktree_is_recovered() {
    for when in ["before", "after"] {
        let sandbox = Sandbox::new();
        sandbox.add("a", &[Task::new("t1")]);
        // A `git` that ends its caller around the making of a worktree.
        let real = sandbox.run("sh", &sandbox.root, &["-c", "command -v git"]).line();
        let script = format!(
            "#!/bin/sh\ncase \"$*\" in *'worktree add'*) [ {when} = before ] || {real} \"$@\"; kill -9 $PPID; exit 1;; esac\n\
             exec {real} \"$@\"\n"
        );
        let folder = sandbox.root.join("bin");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("git"), script).unwrap();
        sandbox.run("chmod", &sandbox.root, &["+x", "bin/git"]).ok();
        let mut drain = sandbox.command(super::common::PROGRAM, &sandbox.repo);
        drain.args(sandbox.drain_args());
        let path = drain.get_envs().find(|(key, _)| *key == "PATH").unwrap().1.unwrap().to_owned();
        drain.env("PATH", format!("{}:{}", folder.display(), path.to_str().unwrap()));
        assert!(!drain.output().unwrap().status.success());
        assert_eq!(sandbox.receipt("a.t1")["allocation"], "allocating", "{when}");
        assert_eq!(sandbox.drain().ok().json()["status"], "WAITING");
        let text = sandbox.devlyn(&["recover", "a.t1"]).ok().stdout;
        assert!(text.contains("A drain allocates the task anew"), "{text}");
        clean(&sandbox);
        sandbox.drained();
        clean(&sandbox);
    }
}

#[test]
fn a_task_that_was_allocated_by_hand_is_recovered_by_its_name() {
    let sandbox = Sandbox::new();
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let args = ["task", "allocate", "--task", "Fix it", "--branch", "fix", "--base", "main", "--local-base", &head];
    let made = sandbox
        .devlyn(&[args.as_slice(), &["--worktree", sandbox.root.join("fix").to_str().unwrap(), "--json"]].concat())
        .ok()
        .json();
    clean(&sandbox);
    let receipt = PathBuf::from(made["receipt"].as_str().unwrap());
    let text = std::fs::read_to_string(&receipt).unwrap();
    std::fs::write(&receipt, text.replace("\"owned\"", "\"allocating\"")).unwrap();
    super::mended(&sandbox, "warning", "receipt.json", "the allocation of Fix it was never finished");
    assert!(!sandbox.root.join("fix").exists());
}
