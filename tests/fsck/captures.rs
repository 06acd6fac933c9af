//! Captures, records, references and rows.

use serde_json::json;

use super::{Sandbox, Spoils, Task, clean, finds, mended, worked};

#[test]
fn captures_are_held_against_their_records() {
    let sandbox = worked();
    let (capture, record) = ("refs/devlyn/captures/b", sandbox.common().join("devlyn-loops/b/added.json"));
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let spoils = &mut Spoils::new(&sandbox);

    spoils.reference(capture, Some(&head));
    mended(&sandbox, "error", capture, "its add record says");
    spoils.reference(capture, None);
    mended(&sandbox, "error", capture, "is not there");
    spoils.restore();

    spoils.file(&record, "{");
    finds(&sandbox, "error", "b/added.json", "cannot be relied on");
    spoils.restore();
    spoils.json(&record, |record| drop(record.insert("tree".into(), json!(head))));
    finds(&sandbox, "error", capture, "its tree is");
    spoils.restore();
    spoils.json(&record, |record| drop(record.insert("commit".into(), json!("1".repeat(40)))));
    spoils.reference(capture, None);
    let found = super::findings(&sandbox);
    assert!(found.iter().all(|one| one["where"] == capture), "{found:#?}");
    spoils.restore();
    spoils.json(&record, |record| drop(record.insert("sequence".into(), json!(1))));
    finds(&sandbox, "error", "added.json", "the loops a and b have the same sequence 1");
    spoils.restore();
    spoils.json(&record, |record| drop(record.insert("delivery".into(), json!("pr"))));
    finds(&sandbox, "error", capture, "is delivered as local-only");
    spoils.restore();

    spoils.gone(&record);
    finds(&sandbox, "error", capture, "a capture whose add record is gone");
    spoils.restore();
}

#[test]
fn a_capture_holds_the_package_and_nothing_else() {
    let sandbox = worked();
    let queue = sandbox.git(&["show", "refs/devlyn/captures/b:docs/specs/b/queue.md"]) + "\n";
    let spoils = &mut Spoils::new(&sandbox);
    for (path, text, parent, what) in [
        ("docs/specs/b/more.txt", "more", false, "holds docs/specs/b/more.txt"),
        ("docs/specs/b/t1/spec.md", "", false, "holds no docs/specs/b/t1/spec.md"),
        ("docs/specs/b/queue.md", "", true, "has a parent"),
        ("docs/specs/b/meta.md", "# Nothing\n", false, "docs/specs/b/meta.md"),
        ("docs/specs/b/queue.md", &queue.replace("[ ]", "[x]"), false, "has a settled row"),
    ] {
        let (commit, tree) = recaptured(&sandbox, path, (!text.is_empty()).then_some(text), parent);
        spoils.json(&sandbox.common().join("devlyn-loops/b/added.json"), |record| {
            record.insert("commit".into(), json!(commit));
            record.insert("tree".into(), json!(tree));
        });
        spoils.reference("refs/devlyn/captures/b", Some(&commit));
        let found = super::findings(&sandbox);
        let told = found.iter().filter(|one| one["what"].as_str().unwrap().contains(what)).count();
        assert_eq!(told, 1, "{what}: {found:#?}");
        spoils.restore();
    }
}

/// The capture of `b` with one file changed, or without it where `parent` is no other change.
fn recaptured(sandbox: &Sandbox, path: &str, text: Option<&str>, parent: bool) -> (String, String) {
    let script = format!(
        "export GIT_INDEX_FILE={index}; rm -f $GIT_INDEX_FILE; git read-tree refs/devlyn/captures/b; {change}; \
         tree=$(git write-tree); echo $(git commit-tree -m x {parent} $tree) $tree",
        index = sandbox.root.join("index").display(),
        change = match text {
            Some(_) => format!("git update-index --add --cacheinfo 100644,$(git hash-object -w {}),{path}", "$TEXT"),
            None if parent => ":".to_owned(),
            None => format!("git rm -q --cached {path}"),
        },
        parent = if parent { "-p HEAD" } else { "" },
    );
    let file = sandbox.root.join("text");
    std::fs::write(&file, text.unwrap_or_default()).unwrap();
    let script = script.replace("$TEXT", file.to_str().unwrap());
    let said = sandbox.run("sh", &sandbox.repo, &["-c", &script]).ok().line();
    let (commit, tree) = said.split_once(' ').unwrap();
    (commit.to_owned(), tree.to_owned())
}

#[test]
fn references_that_git_chokes_on_or_nobody_knows_are_named() {
    let sandbox = worked();
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let recovery = Sandbox::recovery_ref("b.t1");
    let spoils = &mut Spoils::new(&sandbox);
    for name in [recovery.as_str(), "refs/devlyn/captures/a", "refs/heads/devlyn/b/t1", "refs/notes/devlyn"] {
        for (text, what) in [("", "is an empty file"), ("nonsense\n", "holds no object's id"), ("ref: x\n", "symbolic")]
        {
            let file = sandbox.common().join(name);
            spoils.file(&file, text);
            finds(&sandbox, "error", name, what);
            spoils.restore();
        }
    }
    let file = sandbox.common().join(&recovery);
    std::fs::write(&file, "").unwrap();
    assert_ne!(sandbox.run("git", &sandbox.repo, &["gc", "-q"]).code, 0, "what it is a finding for");
    mended(&sandbox, "error", &recovery, "git gc");
    // Also where the file hides what is packed.
    sandbox.git(&["pack-refs", "--all"]);
    let file = sandbox.common().join("refs/devlyn/captures/a");
    std::fs::create_dir_all(file.parent().unwrap()).unwrap();
    std::fs::write(file, "").unwrap();
    mended(&sandbox, "error", "refs/devlyn/captures/a", "an empty file");

    let lock = sandbox.common().join(format!("{recovery}.lock"));
    std::fs::create_dir_all(lock.parent().unwrap()).unwrap();
    std::fs::write(&lock, "").unwrap();
    mended(&sandbox, "warning", ".lock", "did not end well");

    for (name, severity, what) in [
        ("refs/devlyn/completed/0123456789abcdef01234567", "error", "no receipt here tells of"),
        ("refs/devlyn/completed/deep/er", "error", "no receipt here tells of"),
        ("refs/devlyn/captures/never", "warning", "a capture without an add record"),
        ("refs/devlyn/else", "warning", "is none of the references"),
    ] {
        sandbox.git(&["update-ref", name, &head]);
        let remedy = finds(&sandbox, severity, name, what);
        let delete = format!("git update-ref -d {name} {head}");
        assert!(remedy.contains(&delete), "{remedy}");
        sandbox.run("sh", &sandbox.repo, &["-c", &delete]).ok();
        clean(&sandbox);
    }
    spoils.reference("refs/heads/devlyn/z/t9", Some(&head));
    finds(&sandbox, "warning", "refs/heads/devlyn/z/t9", "no receipt owns it");
    spoils.restore();
}

#[test]
fn rows_are_held_against_receipts() {
    let sandbox = worked();
    sandbox.git(&["merge", "-q", "--ff", &Sandbox::branch("a.t1")]);
    clean(&sandbox);
    let file = sandbox.repo.join("docs/specs/a/queue.md");
    let text = std::fs::read_to_string(&file).unwrap();
    for (from, to, what) in [
        ("[ ] a.t2", "[x] a.t2", "marks a.t2 as [x], and its receipt says that it failed"),
        ("[ ] a.t3", "[x] a.t3", "marks a.t3 as [x], and no receipt here proves that"),
    ] {
        std::fs::write(&file, text.replace(from, to)).unwrap();
        sandbox.git(&["commit", "-q", "-a", "-m", "by hand"]);
        finds(&sandbox, "error", ":docs/specs/a/queue.md", what);
        sandbox.git(&["reset", "-q", "--hard", "HEAD~"]);
    }
    // A queue that nobody can read stops everything.
    let row = "- [ ] y.t1 [T](docs/specs/y/t1/spec.md)\n";
    sandbox.write("docs/specs/y/queue.md", &format!("{row}\n{row}"));
    sandbox.git(&["add", "docs/specs/y"]);
    finds(&sandbox, "error", "docs/specs/y/queue.md", "stands there twice");
}

#[test]
fn open_work_needs_its_place_ignored() {
    let sandbox = worked();
    sandbox.write(".gitignore", "target/\n");
    sandbox.git(&["commit", "-q", "-a", "-m", "Ignore something else"]);
    clean(&sandbox);
    sandbox.add("d", &[Task::new("t1")]);
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    finds(&sandbox, "error", &head, "d.t1 works on this commit, and it does not ignore .devlyn/");
    std::fs::write(sandbox.common().join("info/exclude"), ".devlyn/\n").unwrap();
    clean(&sandbox);
}
