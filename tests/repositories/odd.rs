//! Odd repositories work.

use std::path::Path;

use crate::common::{Does, PROGRAM, Ran, Sandbox, Task};

fn tasks() -> [Task; 2] {
    [Task::new("t1"), Task::new("t2").after("t1")]
}

/// A loop of two tasks in the main checkout, brought into the branch that it was added on.
#[track_caller]
fn whole_loop(sandbox: &Sandbox) {
    sandbox.add("inv", &tasks());
    let drained = sandbox.drained();
    assert_eq!(drained["counts"]["accepted"], 2, "{drained:#}");
    let command = "git merge --ff devlyn/inv/t2";
    let way = || {
        let drained =
            sandbox.devlyn(&sandbox.drain_args().into_iter().filter(|arg| arg != "--json").collect::<Vec<_>>());
        let (said, report) = (drained.ok().stdout, sandbox.devlyn(&["report", "inv"]).ok().stdout);
        assert_eq!(said.contains(command), report.contains(command), "{said}\n{report}");
        report.contains(&format!("- Bring into main: {command}"))
    };
    assert!(way());
    sandbox.run("sh", &sandbox.repo, &["-c", &format!("{command} --quiet")]).ok();
    assert!(!way(), "it was brought in");
    assert_eq!(sandbox.git(&["status", "--porcelain"]), "");
    assert!(sandbox.repo.join("inv-t2.txt").is_file());
    let status = sandbox.devlyn(&["status", "--json"]).ok().json();
    assert_eq!((&status["counts"]["accepted"], &status["next"]), (&2.into(), &serde_json::Value::Null), "{status:#}");
    sandbox.git(&["fsck", "--strict"]);
    sandbox.devlyn(&["fsck"]).ok();
}

/// Drains with an executor that takes no path out of its packet, which a shell cannot read where there are line feeds.
#[track_caller]
fn drained_by_hand(sandbox: &Sandbox) -> serde_json::Value {
    let script = "set -e; task=$(git branch --show-current | sed 's,devlyn/,,; s,/,-,'); echo done >\"$task.txt\"; \
                  git add .; git commit -q -m \"$task\"; \
                  printf '{\"schema_version\": 1, \"task\": \"%s\", \"source_sha\": \"%s\"}' \
                  \"$(echo \"$task\" | sed 's/-/./')\" \"$(git rev-parse HEAD)\" >\"$(dirname \"$1\")/submission.json\"";
    sandbox.devlyn(&["drain", "--json", "--", "sh", "-c", script, "sh", "{packet}"]).ok().json()
}

/// Makes the repository anew with these options of `git init`; whether this Git has them.
fn init(sandbox: &Sandbox, options: &[&str]) -> bool {
    std::fs::remove_dir_all(sandbox.repo.join(".git")).unwrap();
    let mut words = vec!["init", "-q", "-b", "main"];
    words.extend(options);
    if sandbox.run("git", &sandbox.repo, &words).code != 0 {
        return false;
    }
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-q", "-m", "Begin"]);
    true
}

#[test]
fn objects_named_by_sha_256() {
    let sandbox = Sandbox::new();
    assert!(init(&sandbox, &["--object-format=sha256"]));
    whole_loop(&sandbox);
    assert_eq!(sandbox.receipt("inv.t1")["source_sha"].as_str().unwrap().len(), 64);
}

#[test]
fn references_in_tables() {
    let sandbox = Sandbox::new();
    if !init(&sandbox, &["--ref-format=reftable"]) {
        eprintln!("skipped: this git knows no reftable");
        return;
    }
    whole_loop(&sandbox);
    let loose = sandbox.common().join("refs/devlyn");
    assert!(!loose.exists(), "{} would never be seen by git", loose.display());
}

#[test]
fn a_git_directory_elsewhere() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.root.join("git directory\nof mine");
    sandbox.git(&["init", "-q", "--separate-git-dir", elsewhere.to_str().unwrap()]);
    sandbox.add("inv", &tasks());
    assert_eq!(drained_by_hand(&sandbox)["counts"]["accepted"], 2);
    assert!(elsewhere.join("devlyn-completion").is_dir());
}

#[test]
fn a_path_with_blanks_a_line_feed_and_other_letters() {
    let mut sandbox = Sandbox::new();
    let odd = sandbox.root.join("a repo\nof 인사 'quoted'");
    std::fs::rename(&sandbox.repo, &odd).unwrap();
    sandbox.repo = odd;
    sandbox.add("inv", &tasks());
    let drained = drained_by_hand(&sandbox);
    assert_eq!(drained["counts"]["accepted"], 2, "{drained:#}");
    let report = sandbox.devlyn(&["report", "inv"]).ok().stdout;
    assert!(report.contains("- Bring into main: git merge --ff devlyn/inv/t2"), "{report}");
}

#[test]
fn a_linked_worktree_adds_and_drains() {
    let mut sandbox = Sandbox::new();
    let linked = sandbox.root.join("linked");
    sandbox.git(&["worktree", "add", "-q", "-b", "side", linked.to_str().unwrap()]);
    let main = std::mem::replace(&mut sandbox.repo, linked);
    sandbox.add("inv", &tasks());
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
    sandbox.git(&["merge", "-q", "--ff", "devlyn/inv/t2"]);
    assert_eq!(sandbox.git(&["branch", "--show-current"]), "side");
    assert!(!main.join("inv-t2.txt").exists());
}

#[test]
fn looking_at_a_repository_leaves_nothing_in_it() {
    let sandbox = Sandbox::new();
    let listing = || sandbox.run("find", &sandbox.repo, &["-printf", "%p %s %T@\\n"]).ok().stdout;
    let before = listing();
    for args in [&["status"][..], &["status", "--json"], &["report"], &["fsck"]] {
        sandbox.devlyn(args);
        assert_eq!(listing(), before, "{args:?}");
    }
}

#[test]
fn an_executor_is_the_one_that_stands_where_it_was_typed() {
    let sandbox = Sandbox::new();
    sandbox.write("tools/run", "exit 9\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-q", "-m", "Another one of that name"]);
    sandbox.add("inv", &tasks());
    let script = format!("#!/bin/sh\nexec sh {} \"$@\"\n", sandbox.executor().display());
    sandbox.write("tools/run", &script);
    sandbox.run("chmod", &sandbox.repo, &["+x", "tools/run"]).ok();
    let args = ["drain", "--json", "--", "./run", "{packet}"];
    let object = sandbox.run(PROGRAM, &sandbox.repo.join("tools"), &args).ok().json();
    assert_eq!(object["counts"]["accepted"], 2, "{object:#}");
}

#[test]
fn a_hook_that_fails_behind_a_checkout_is_named_and_recovered_from() {
    let sandbox = Sandbox::new();
    sandbox.add("inv", &tasks());
    let hook = sandbox.common().join("hooks/post-checkout");
    std::fs::create_dir_all(hook.parent().unwrap()).unwrap();
    std::fs::write(&hook, "#!/bin/sh\nexit 1\n").unwrap();
    sandbox.run("chmod", &sandbox.repo, &["+x", hook.to_str().unwrap()]).ok();
    let object = sandbox.drain().ok().json();
    let reason = object["reason"].as_str().unwrap();
    assert!(reason.contains("post-checkout") && reason.contains("git devlyn recover inv.t1"), "{reason}");
    std::fs::remove_file(&hook).unwrap();
    sandbox.devlyn(&["recover", "inv.t1"]).ok();
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
}

#[test]
fn what_is_put_into_the_folder_of_evidence_is_ignored_or_nothing_begins() {
    let lists = [
        (".devlyn/", true),
        (".devlyn", true),
        ("/.devlyn/*", true),
        (".devlyn/**", true),
        (".dev*", true),
        (".devlyn/\n!.devlyn/kept", true),
        ("", false),
        (".devlyn/loop/", false),
        (".devlyn/*.json", false),
        (".devlyn/*/", false),
        (".devlyn/*\n!.devlyn/*", false),
        (".devlyn/\n!.devlyn/", false),
    ];
    for (list, ignored) in lists {
        let sandbox = Sandbox::new();
        sandbox.write(".gitignore", &format!("{list}\n"));
        sandbox.git(&["commit", "-q", "-a", "--allow-empty", "-m", "Ignore"]);
        let git = sandbox.run("git", &sandbox.repo, &["check-ignore", "-q", "--no-index", ".devlyn/whatever"]);
        assert_eq!(git.code == 0, ignored, "{list:?}: {git:?}");
        sandbox.add("inv", &tasks());
        let object = sandbox.drain().ok().json();
        assert_eq!(object["counts"]["accepted"], if ignored { 2 } else { 0 }, "{list:?} {object:#}");
        let reason = object["reason"].as_str().unwrap_or_default();
        assert_eq!(reason.contains("does not ignore .devlyn/"), !ignored, "{list:?} {object:#}");
    }
}

#[test]
fn settings_that_change_what_a_checkout_holds() {
    for settings in [
        &["core.autocrlf=true"][..],
        &["core.ignorecase=true"],
        &["core.fsmonitor=true", "core.untrackedCache=true"],
        &["core.hooksPath=/nonexistent/hooks"],
        &["core.logAllRefUpdates=always", "gc.auto=1"],
        &["commit.gpgSign=true", "gpg.program=/nonexistent/gpg"],
        &["status.showUntrackedFiles=no", "diff.noprefix=true", "color.ui=always"],
    ] {
        let sandbox = Sandbox::new();
        for setting in settings {
            let (key, value) = setting.split_once('=').unwrap();
            sandbox.git(&["config", key, value]);
        }
        sandbox.add("inv", &tasks());
        // Executors' commits are theirs: this one cannot sign them, and says so by its exit status.
        let signed = settings.iter().any(|setting| setting.starts_with("commit.gpgSign"));
        let object = sandbox.drain().ok().json();
        let accepted = if signed { 0 } else { 2 };
        assert_eq!(object["counts"]["accepted"], accepted, "{settings:?} {object:#}");
        let capture = sandbox.git(&["cat-file", "commit", "refs/devlyn/captures/inv"]);
        assert!(!capture.contains("gpgsig"), "{settings:?}");
    }
}

#[test]
fn our_commits_are_signed_where_that_was_asked_for() {
    let sandbox = Sandbox::new();
    let signer = sandbox.root.join("signer");
    std::fs::write(
        &signer,
        "#!/bin/sh\ncat >/dev/null\nprintf '[GNUPG:] SIG_CREATED \\n' >&2\n\
         printf -- '-----BEGIN PGP SIGNATURE-----\\n\\nours\\n-----END PGP SIGNATURE-----\\n'\n",
    )
    .unwrap();
    std::fs::set_permissions(&signer, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    sandbox.git(&["config", "gpg.program", signer.to_str().unwrap()]);
    sandbox.git(&["config", "devlyn.sign", "true"]);
    sandbox.add("inv", &tasks());
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
    for commit in ["refs/devlyn/captures/inv", "devlyn/inv/t1", "devlyn/inv/t2"] {
        assert!(sandbox.git(&["cat-file", "commit", commit]).contains("gpgsig"), "{commit}");
    }
}

#[test]
fn a_shallow_clone() {
    let mut sandbox = Sandbox::new();
    for number in 0..3 {
        sandbox.write("README.md", &format!("{number}\n"));
        sandbox.git(&["commit", "-q", "-am", "more"]);
    }
    let clone = sandbox.root.join("shallow");
    let from = format!("file://{}", sandbox.repo.display());
    sandbox.git(&["clone", "-q", "--depth", "1", &from, clone.to_str().unwrap()]);
    sandbox.repo = clone;
    sandbox.add("inv", &tasks());
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
}

#[test]
fn a_sparse_checkout() {
    let sandbox = Sandbox::new();
    sandbox.write("src/a/one.txt", "1\n");
    sandbox.write("src/b/two.txt", "2\n");
    sandbox.write("CLAUDE.md", "Be brief.\n");
    sandbox.git(&["add", "."]);
    sandbox.git(&["commit", "-q", "-m", "sources"]);
    sandbox.git(&["sparse-checkout", "set", "src/a", "docs"]);
    whole_loop(&sandbox);
    assert!(!sandbox.repo.join("src/b/two.txt").exists());
}

#[test]
fn a_submodule() {
    let sandbox = Sandbox::new();
    let module = sandbox.root.join("module");
    sandbox.git(&["init", "-q", "-b", "main", module.to_str().unwrap()]);
    sandbox.run("git", &module, &["commit", "-q", "--allow-empty", "-m", "module"]).ok();
    let allow = ["-c", "protocol.file.allow=always"];
    sandbox.git(&[allow[0], allow[1], "submodule", "--quiet", "add", module.to_str().unwrap(), "mod"]);
    sandbox.git(&["commit", "-q", "-m", "with a submodule"]);
    sandbox.add("inv", &tasks());
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
}

#[test]
fn packed_references_and_collected_garbage_between_the_steps() {
    let sandbox = Sandbox::new();
    let tidy = || {
        sandbox.git(&["pack-refs", "--all"]);
        sandbox.git(&["reflog", "expire", "--expire=now", "--all"]);
        sandbox.git(&["gc", "-q", "--prune=now"]);
        sandbox.git(&["worktree", "prune"]);
    };
    sandbox.add("inv", &tasks());
    tidy();
    sandbox.executor_does("inv.t2", Does::Nothing);
    sandbox.drain().ok();
    tidy();
    sandbox.executor_does("inv.t2", Does::Well);
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
    tidy();
    assert_eq!(sandbox.drained()["counts"]["accepted"], 2);
    sandbox.devlyn(&["fsck"]).ok();
}

#[test]
fn a_repository_named_by_the_environment_and_by_an_option() {
    let sandbox = Sandbox::new();
    let elsewhere = sandbox.root.join("home");
    sandbox.package("inv", &tasks());
    let by_option = |words: &[&str]| -> Ran {
        let mut all = vec!["--repo", sandbox.repo.to_str().unwrap()];
        let (verb, rest) = words.split_first().unwrap();
        all.splice(0..0, [*verb]);
        all.extend(rest);
        sandbox.run(crate::common::PROGRAM, &elsewhere, &all)
    };
    by_option(&["check", "inv"]).ok();
    by_option(&["add", "inv"]).ok();
    assert_eq!(by_option(&["status", "--json"]).ok().json()["next"], "inv.t1");
    let mut command = sandbox.command(crate::common::PROGRAM, &elsewhere);
    command.env("GIT_DIR", sandbox.common()).env("GIT_WORK_TREE", &sandbox.repo).args(sandbox.drain_args());
    let output = command.output().unwrap();
    let drained: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(drained["counts"]["accepted"], 2, "{drained:#}");
    // An executor that makes a repository of its own must not have been told which one we meant.
    assert_eq!(sandbox.git(&["config", "core.bare"]), "false");
    assert!(Path::new(&sandbox.worktree("inv.t1")).is_dir());
}

#[test]
fn a_worktree_that_is_away_is_expected_back_in_its_place() {
    let sandbox = Sandbox::new();
    sandbox.add("inv", &[Task::new("t1")]);
    sandbox.executor_does("inv.t1", Does::Nothing);
    sandbox.drain().ok();
    let (place, away) = (sandbox.worktree("inv.t1"), sandbox.root.join("away"));
    std::fs::rename(&place, &away).unwrap();
    sandbox.executor_does("inv.t1", Does::Well);
    assert_eq!(sandbox.drain().ok().json()["status"], "WAITING");
    std::fs::rename(&away, &place).unwrap();
    assert_eq!(sandbox.drained()["counts"]["accepted"], 1);
}
