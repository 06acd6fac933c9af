//! H1 to H7 through `git commit` in all its forms.

use crate::lab::{Lab, accept, fail, row};

const NOBODY: &str = "0123456789abcdef01234567";

#[test]
fn an_ordinary_commit_passes_and_says_nothing() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    let said = lab.commit("src/new.txt", "new\n");
    assert_eq!((said.ok, said.err.as_str()), (true, ""));
}

#[test]
fn h1_nothing_below_devlyn_is_committed() {
    let lab = Lab::new();
    lab.write(".devlyn/loop/acceptance.json", "{}");
    lab.git(&["add", "-f", ".devlyn"]).fine();
    let said = lab.git(&["commit", "-qm", "x"]).refused("H1");
    assert!(said.contains(".devlyn/loop/acceptance.json") && said.contains("git rm -r -q --cached .devlyn"));
    lab.git(&["rm", "-r", "-q", "--cached", ".devlyn"]).fine();
    // A file of that name is not better, a folder of another name is none of our business.
    lab.write("sub/.devlyn/x", "x");
    lab.git(&["add", "-f", "sub/.devlyn"]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
    std::fs::remove_dir_all(lab.root.join(".devlyn")).unwrap();
    lab.write(".devlyn", "x");
    lab.git(&["add", "-f", ".devlyn"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H1");
}

#[test]
fn h2_devlyn_stays_ignored_while_there_is_a_loop() {
    let lab = Lab::new();
    lab.commit(".gitignore", "target/\n").fine();
    lab.commit(".gitignore", ".devlyn/\n").fine();
    lab.capture("inv", 1);
    lab.commit(".gitignore", "target/\n").refused("H2");
    lab.commit(".gitignore", ".devlyn/\n!.devlyn/\n").refused("H2");
    lab.commit(".gitignore", "/.dev*\n").fine();
    // By any other list it is ignored as well.
    lab.git(&["rm", "-q", "--cached", ".gitignore"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H2");
    crate::lab::put(&lab.beside("ignored"), ".devlyn\n");
    lab.git(&["config", "core.excludesFile", lab.beside("ignored").to_str().unwrap()]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
    lab.git(&["config", "--unset", "core.excludesFile"]).fine();
    lab.commit("src/c.txt", "c\n").refused("H2");
    crate::lab::put(&lab.beside(".config/git/ignore"), ".devlyn/\n");
    lab.git(&["commit", "-qm", "x"]).fine();
    std::fs::remove_file(lab.beside(".config/git/ignore")).unwrap();
    crate::lab::put(&lab.root.join(".git/info/exclude"), ".devlyn/\n");
    lab.commit("src/d.txt", "d\n").fine();
}

#[test]
fn h3_a_queue_file_changes_by_one_settled_row() {
    let lab = Lab::new();
    lab.with_loop("inv", 3);
    let queue = lab.queue("inv");
    let illegal = [
        (accept(&accept(&queue, "inv", 1), "inv", 2), "inv.t1 and inv.t2"),
        (queue.replacen("[ ] inv.t1", "[F] inv.t1", 1), "inv.t1"),
        (queue.replacen("[ ] inv.t1", "[X] inv.t1", 1), "inv.t1"),
        (accept(&queue, "inv", 1).replace("Task 1", "Task one"), "inv.t1"),
        (accept(&queue, "inv", 1).replace("t1/spec.md)", "t1/spec.md) — done"), "inv.t1"),
        (fail(&queue, "inv", 1, "somewhere"), "inv.t1"),
        (queue.replace("Task 2", "Task two"), "inv.t2"),
        (format!("{queue}\n"), "line 7"),
        (queue.trim_end().to_owned(), "line"),
        (format!("{queue}\n{}\n", row("inv", 4)), "line"),
        (queue.replacen(&format!("{}\n\n", row("inv", 1)), "", 1), "inv.t1"),
        (queue.replace('\n', "\r\n"), "inv.t1"),
        (String::new(), "inv.t1"),
    ];
    for (text, named) in illegal {
        let said = lab.commit("docs/specs/inv/queue.md", &text).refused("H3");
        assert!(said.contains("docs/specs/inv/queue.md") && said.contains(named), "{named}:\n{said}");
        lab.git(&["reset", "-q", "--hard"]).fine();
    }
    lab.git(&["update-index", "--chmod=+x", "docs/specs/inv/queue.md"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H3");
    lab.git(&["reset", "-q", "--hard"]).fine();

    let one = accept(&queue, "inv", 1);
    lab.commit("docs/specs/inv/queue.md", &one).fine();
    let two = fail(&one, "inv", 2, NOBODY);
    lab.commit("docs/specs/inv/queue.md", &two).fine();
    let said = lab.commit("docs/specs/inv/queue.md", &one).refused("H3");
    assert!(said.contains("turned back to pending") && said.contains("plan the task anew"), "{said}");
    lab.commit("docs/specs/inv/queue.md", &two.replace("failed: no", "failed: yes")).refused("H3");
    lab.commit("docs/specs/inv/queue.md", &accept(&two, "inv", 3).replace("failed: no", "failed: yes")).refused("H3");
}

#[test]
fn h3_holds_for_loops_that_only_came_with_the_history() {
    let lab = Lab::new();
    let files = lab.package("far", 1);
    lab.plumb(&lab.root, &files, "inputs");
    lab.commit("docs/specs/far/queue.md", &lab.queue("far").replace("Task", "Tisk")).refused("H3");
    lab.git(&["reset", "-q", "--hard"]).fine();
    // Its package is not known here, so only the record of what was done is guarded.
    lab.commit("docs/specs/far/meta.md", "# Changed\n").fine();
    lab.git(&["rm", "-q", "docs/specs/far/queue.md"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H3");
}

#[test]
fn other_files_of_that_name_are_nobodys_queue() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.commit("docs/specs/notes/queue.md", "# Queue\n- [ ] milk\n").fine();
    lab.commit("docs/specs/notes/queue.md", "# Queue\n- [x] milk\n- [ ] eggs\n").fine();
    lab.commit("docs/specs/queue.md", "- [ ] an intent\n").fine();
    lab.commit("docs/specs/queue.md", "- [x] an intent\n- [ ] another\n").fine();
    lab.commit("docs/specs/Not A Loop/queue.md", "- [ ] x\n").fine();
    lab.git(&["rm", "-q", "docs/specs/notes/queue.md"]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
}

#[test]
fn h4_a_row_is_settled_alone() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    lab.with_loop("other", 1);
    let queue = lab.queue("inv");
    lab.write("docs/specs/inv/queue.md", &accept(&queue, "inv", 1));
    lab.write("src/a.txt", "changed\n");
    lab.git(&["add", "."]).fine();
    let said = lab.git(&["commit", "-qm", "x"]).refused("H4");
    assert!(said.contains("src/a.txt") && said.contains("inv.t1"), "{said}");
    lab.git(&["restore", "--staged", "src/a.txt"]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
    // Neither do two loops settle rows together.
    lab.write("docs/specs/inv/queue.md", &accept(&accept(&queue, "inv", 1), "inv", 2));
    lab.write("docs/specs/other/queue.md", &accept(&lab.queue("other"), "other", 1));
    lab.git(&["add", "docs"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H4");
}

#[test]
fn h5_a_row_says_what_its_receipt_says() {
    let lab = Lab::new();
    lab.with_loop("inv", 3);
    let queue = lab.queue("inv");
    let file = "docs/specs/inv/queue.md";
    let key = lab.key("inv", "t1");
    let settle = |text: &str| {
        let said = lab.commit(file, text);
        lab.git(&["reset", "-q", "--hard"]).fine();
        said
    };
    lab.receipt("inv", "t1", None);
    let said = settle(&accept(&queue, "inv", 1)).refused("H5");
    assert!(said.contains("no result yet") && said.contains(&key), "{said}");
    lab.receipt("inv", "t1", Some("FAILED"));
    settle(&accept(&queue, "inv", 1)).refused("H5");
    settle(&fail(&queue, "inv", 1, NOBODY)).refused("H5");
    settle(&fail(&queue, "inv", 1, "none")).refused("H5");
    lab.receipt("inv", "t1", Some("ACCEPTED"));
    settle(&fail(&queue, "inv", 1, &key)).refused("H5");
    lab.commit(file, &accept(&queue, "inv", 1)).fine();
    lab.receipt("inv", "t2", Some("FAILED"));
    let queue = lab.queue("inv");
    lab.commit(file, &fail(&queue, "inv", 2, &lab.key("inv", "t2"))).fine();
    // A task that waits for one that failed has no receipt of its own and names the other's.
    let queue = lab.queue("inv");
    lab.commit(file, &fail(&queue, "inv", 3, &lab.key("inv", "t2"))).fine();
}

#[test]
fn h5_a_queue_file_that_comes_with_settled_rows_says_what_their_receipts_say() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    let queue = lab.queue("inv");
    lab.git(&["checkout", "-q", "-b", "other", "main~1"]).fine();
    lab.receipt("inv", "t1", Some("FAILED"));
    lab.git(&["checkout", "main", "--", "docs"]).fine();
    let file = "docs/specs/inv/queue.md";
    lab.commit(file, &accept(&queue, "inv", 1)).refused("H5");
    lab.commit(file, &fail(&queue, "inv", 1, &lab.key("inv", "t1"))).fine();
}

#[test]
fn h5_an_unreadable_receipt_proves_nothing() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    crate::lab::put(&lab.receipt("inv", "t1", Some("ACCEPTED")), "{");
    lab.commit("docs/specs/inv/queue.md", &accept(&lab.queue("inv"), "inv", 1)).refused("H5");
}

#[test]
fn h6_a_queue_file_appears_as_it_was_captured() {
    let lab = Lab::new();
    lab.capture("inv", 2);
    let queue = crate::lab::rows("inv", 2);
    let file = "docs/specs/inv/queue.md";
    for text in [
        queue.replace("Task 1", "Task one"),
        format!("{queue}\n{}\n", row("inv", 3)),
        row("inv", 1) + "\n",
        "# nothing\n".to_owned(),
        queue.replacen("[ ] inv.t1", "[F] inv.t1", 1),
    ] {
        let said = lab.commit(file, &text).refused("H6");
        assert!(said.contains("git show refs/devlyn/captures/inv:docs/specs/inv/queue.md"), "{said}");
    }
    lab.commit(file, &fail(&accept(&queue, "inv", 1), "inv", 2, NOBODY)).fine();
    // Where nothing is captured, nothing is known.
    lab.commit("docs/specs/else/queue.md", "- [ ] else.t1 [T](docs/specs/else/t1/spec.md)\n").fine();
}

#[test]
fn h7_the_package_of_a_captured_loop_does_not_change() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    for (path, text) in [
        ("docs/specs/inv/meta.md", "# Changed\n"),
        ("docs/specs/inv/t1/spec.md", "# Changed\n"),
        ("docs/specs/inv/t2/spec.expected.json", "{\"pure_design\": true}\n"),
    ] {
        let said = lab.commit(path, text).refused("H7");
        assert!(said.contains(path), "{said}");
        lab.git(&["reset", "-q", "--hard"]).fine();
        lab.git(&["rm", "-q", path]).fine();
        lab.git(&["commit", "-qm", "x"]).refused("H7");
        lab.git(&["reset", "-q", "--hard"]).fine();
        lab.git(&["update-index", "--chmod=+x", path]).fine();
        lab.git(&["commit", "-qm", "x"]).refused("H7");
        lab.git(&["reset", "-q", "--hard"]).fine();
    }
    lab.git(&["rm", "-q", "docs/specs/inv/queue.md"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    lab.git(&["reset", "-q", "--hard"]).fine();
    lab.git(&["mv", "docs/specs/inv", "docs/specs/inventory"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    lab.git(&["reset", "-q", "--hard"]).fine();
    // What stands beside the package is not part of it.
    lab.commit("docs/specs/inv/notes.md", "notes\n").fine();
}

#[test]
fn h7_a_package_is_committed_as_it_was_captured_or_not_at_all() {
    let lab = Lab::new();
    let files = lab.capture("inv", 1);
    lab.commit("docs/specs/inv/meta.md", "# Another\n").refused("H7");
    lab.git(&["rm", "-q", "--cached", "docs/specs/inv/meta.md"]).fine();
    for (path, text) in &files {
        lab.write(path, text);
    }
    lab.git(&["add", "docs"]).fine();
    lab.git(&["commit", "-qm", "inputs"]).fine();
}

#[test]
fn no_verify_stays_the_users_right() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.commit("docs/specs/inv/meta.md", "# Changed\n").refused("H7");
    lab.git(&["commit", "-q", "--no-verify", "-m", "x"]).fine();
    let said = lab.devlyn(&["verify", "HEAD~1..HEAD"]);
    assert_eq!(said.code, Some(1));
    assert!(said.out.contains("H7 docs/specs/inv/meta.md"), "{}", said.out);
}

#[test]
fn a_first_commit_is_judged_too() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.git(&["checkout", "-q", "--orphan", "new"]).fine();
    lab.git(&["commit", "-qm", "all at once"]).fine();
    lab.git(&["checkout", "-q", "--orphan", "newer"]).fine();
    lab.write("docs/specs/inv/queue.md", "- [ ] inv.t9 [T](docs/specs/inv/t9/spec.md)\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "all at once"]).refused("H6");
}

#[test]
fn a_commit_is_judged_in_all_its_forms() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    let changed = lab.queue("inv").replace("Task", "Tisk");
    // -a, and paths: a temporary index.
    lab.write("docs/specs/inv/queue.md", &changed);
    lab.git(&["commit", "-qam", "x"]).refused("H3");
    lab.git(&["commit", "-qm", "x", "docs/specs/inv/queue.md"]).refused("H3");
    lab.git(&["commit", "-qm", "x", "-o", "docs"]).refused("H3");
    lab.git(&["commit", "-qm", "x", "-i", "docs"]).refused("H3");
    // What stays out of the commit is not judged.
    lab.git(&["reset", "-q"]).fine();
    lab.write("src/a.txt", "aa\n");
    lab.git(&["commit", "-qm", "x", "src/a.txt"]).fine();
    lab.write("src/a.txt", "aaa\n");
    lab.git(&["add", "src"]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
    lab.git(&["add", "docs"]).fine();
    lab.write("src/b.txt", "bb\n");
    lab.git(&["commit", "-qm", "x", "src/b.txt"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H3");
    lab.git(&["reset", "-q", "--hard"]).fine();
    // A row that is staged, but committed alone by its path.
    lab.write("docs/specs/inv/queue.md", &accept(&lab.queue("inv"), "inv", 1));
    lab.write("src/a.txt", "aaaa\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H4");
    lab.git(&["commit", "-qm", "x", "docs/specs/inv/queue.md"]).fine();
    // --amend, --fixup, --allow-empty.
    lab.git(&["commit", "-qm", "rest"]).fine();
    lab.git(&["commit", "-q", "--amend", "-m", "the rest"]).fine();
    lab.git(&["commit", "-q", "--allow-empty", "-m", "empty"]).fine();
    lab.write("docs/specs/inv/t1/spec.md", "# Changed\n");
    lab.git(&["commit", "-qa", "--amend", "-m", "x"]).refused("H7");
    lab.git(&["commit", "-qa", "--fixup=HEAD"]).refused("H7");
}

#[test]
fn files_with_any_name_pass() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    for name in ["with space", "new\nline", "한글", "-dash", "quo\"te"] {
        lab.commit(&format!("names/{name}"), "x\n").fine();
        lab.commit(&format!("docs/specs/inv/{name}"), "x\n").fine();
    }
    use std::os::unix::ffi::OsStrExt;
    let odd = lab.root.join("names").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    crate::lab::put(&odd, "x");
    let odd = lab.root.join("docs/specs/inv").join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    crate::lab::put(&odd, "x");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
}
