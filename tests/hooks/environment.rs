//! Hooks with every environment that Git makes for them.

use std::ffi::OsStr;

use crate::lab::{Lab, accept, put};

#[test]
fn a_hook_in_a_linked_worktree_judges_that_worktree() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    let linked = lab.beside("linked");
    lab.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]).fine();
    put(&linked.join("docs/specs/inv/meta.md"), "# Changed\n");
    lab.git_in(&linked, &["commit", "-qam", "x"]).refused("H7");
    lab.git_in(&linked, &["add", "."]).fine();
    lab.git_in(&linked, &["commit", "-qm", "x"]).refused("H7");
    lab.git_in(&linked, &["commit", "-qm", "x", "docs"]).refused("H7");
    lab.git_in(&linked, &["reset", "-q", "--hard"]).fine();
    put(&linked.join("src/a.txt"), "changed\n");
    lab.git_in(&linked, &["commit", "-qm", "x", "src/a.txt"]).fine();
    // From a folder of it, and from elsewhere.
    put(&linked.join("docs/specs/inv/meta.md"), "# Changed\n");
    lab.git_in(&linked.join("src"), &["commit", "-qam", "x"]).refused("H7");
    lab.git(&["-C", linked.to_str().unwrap(), "commit", "-qam", "x"]).refused("H7");
    assert_eq!(lab.git(&["status", "--porcelain"]).fine(), "");
}

#[test]
fn a_hook_finds_its_index_wherever_git_is_called_from() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.write("docs/specs/inv/meta.md", "# Changed\n");
    let root = lab.root.to_str().unwrap();
    lab.git_in(&lab.root.join("docs/specs"), &["commit", "-qam", "x"]).refused("H7");
    lab.git_in(&lab.beside(""), &["-C", root, "commit", "-qam", "x"]).refused("H7");
    let git_dir = lab.root.join(".git");
    let args = ["--git-dir", git_dir.to_str().unwrap(), "--work-tree", root, "commit", "-qam", "x"];
    lab.git_in(&lab.beside(""), &args).refused("H7");
    let env: &[(&str, &OsStr)] = &[("GIT_DIR", git_dir.as_os_str()), ("GIT_WORK_TREE", lab.root.as_os_str())];
    lab.run_with(&lab.beside(""), "git", &["commit", "-qam", "x"], None, env).refused("H7");
    // An index of the user's own.
    let index = lab.beside("my-index");
    let env: &[(&str, &OsStr)] = &[("GIT_INDEX_FILE", index.as_os_str())];
    lab.run_with(&lab.root, "git", &["read-tree", "HEAD"], None, env).fine();
    lab.run_with(&lab.root, "git", &["add", "docs"], None, env).fine();
    lab.run_with(&lab.root, "git", &["commit", "-qm", "x"], None, env).refused("H7");
    lab.run_with(&lab.root, "git", &["read-tree", "HEAD"], None, env).fine();
    lab.run_with(&lab.root, "git", &["commit", "-qm", "x", "--allow-empty"], None, env).fine();
}

#[test]
fn every_form_of_index_is_understood() {
    for settings in [
        &["index.version=4"][..],
        &["core.splitIndex=true"],
        &["core.untrackedCache=true", "index.threads=4"],
        &["feature.manyFiles=true", "index.skipHash=true"],
    ] {
        let lab = Lab::new();
        lab.with_loop("inv", 1);
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            lab.git(&["config", key, value]).fine();
        }
        lab.git(&["update-index", "--refresh"]).fine();
        lab.commit("src/c.txt", "c\n").fine();
        lab.commit("docs/specs/inv/meta.md", "# Changed\n").refused("H7");
        lab.git(&["reset", "-q", "--hard"]).fine();
        lab.write("src/new.txt", "new\n");
        lab.git(&["add", "-N", "src/new.txt"]).fine();
        lab.commit("docs/specs/inv/queue.md", &accept(&lab.queue("inv"), "inv", 1)).fine();
    }
}

#[test]
fn a_sparse_index_is_understood() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]).fine();
    lab.commit("src/c.txt", "c\n").fine();
    lab.git(&["sparse-checkout", "add", "docs"]).fine();
    lab.commit("docs/specs/inv/meta.md", "# Changed\n").refused("H7");
}

#[test]
fn other_kinds_of_repository_are_judged_alike() {
    for args in [&["--object-format=sha256"][..], &["--ref-format=reftable"]] {
        let lab = Lab::plain();
        if args.contains(&"--ref-format=reftable") && !lab.git_is((2, 45)) {
            continue;
        }
        let root = lab.beside("other kind");
        let root_text = root.to_str().unwrap().to_owned();
        let mut init = vec!["init", "-q", "-b", "main", root_text.as_str()];
        init.extend(args);
        lab.git(&init).fine();
        lab.identify(&root);
        lab.run(&root, crate::lab::PROGRAM, &["init"], None).fine();
        put(&root.join("docs/specs/inv/queue.md"), &crate::lab::rows("inv", 2));
        lab.git_in(&root, &["add", "."]).fine();
        lab.git_in(&root, &["commit", "-qm", "base"]).fine();
        let queue = crate::lab::rows("inv", 2);
        put(&root.join("docs/specs/inv/queue.md"), &accept(&accept(&queue, "inv", 1), "inv", 2));
        lab.git_in(&root, &["commit", "-qam", "x"]).refused("H3");
        put(&root.join("docs/specs/inv/queue.md"), &accept(&queue, "inv", 1));
        lab.git_in(&root, &["commit", "-qam", "x"]).fine();
        put(&root.join(".devlyn/x"), "x");
        lab.git_in(&root, &["add", "-f", ".devlyn"]).fine();
        lab.git_in(&root, &["commit", "-qm", "x"]).refused("H1");
    }
}

#[test]
fn a_missing_program_locks_nobody_out() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.write("docs/specs/inv/meta.md", "# Changed\n");
    let path = lab.run(&lab.root, "sh", &["-c", "dirname \"$(command -v git)\""], None).fine();
    let path = format!("{path}:/usr/bin:/bin");
    let env: &[(&str, &OsStr)] = &[("PATH", OsStr::new(&path))];
    lab.git(&["config", "devlyn.hooksRequired", "true"]).fine();
    let said = lab.run_with(&lab.root, "git", &["commit", "-qam", "x"], None, env);
    assert!(!said.ok && said.err.contains("not on PATH"), "{}", said.err);
    lab.git(&["config", "devlyn.hooksRequired", "false"]).fine();
    let said = lab.run_with(&lab.root, "git", &["commit", "-qam", "x"], None, env);
    assert!(said.ok && said.err.contains("not on PATH"), "{}", said.err);
}
