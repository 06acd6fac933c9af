//! Bad input: a clear error with a place and a remedy, and nothing changed.

use std::path::Path;

use crate::common::{PROGRAM, Ran, Sandbox, Task};

fn refused(ran: &Ran, facts: &[&str]) {
    assert_eq!(ran.code, 1, "{ran:?}");
    for fact in facts {
        assert!(ran.stderr.contains(fact) || ran.stdout.contains(fact), "{fact:?} is not in {ran:?}");
    }
}

#[test]
fn a_directory_that_is_no_repository() {
    let sandbox = Sandbox::new();
    let outside = sandbox.root.join("home");
    for words in [&["status"][..], &["drain", "--", "sh", "{packet}"], &["report"], &["fsck"]] {
        refused(&sandbox.run(PROGRAM, &outside, words), &["is in no Git repository"]);
    }
    refused(&sandbox.run(PROGRAM, &outside, &["check", "docs/specs/inv/meta.md"]), &["no Git repository"]);
}

#[test]
fn a_bare_repository_and_a_head_without_a_commit() {
    let sandbox = Sandbox::new();
    let bare = sandbox.root.join("bare.git");
    sandbox.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    refused(&sandbox.run(PROGRAM, &bare, &["status"]), &["bare", "git worktree add"]);
    let unborn = sandbox.root.join("unborn");
    sandbox.git(&["init", "-q", "-b", "main", unborn.to_str().unwrap()]);
    assert_eq!(sandbox.run(PROGRAM, &unborn, &["status", "--json"]).ok().json()["next"], serde_json::Value::Null);
    sandbox.package("inv", &[Task::new("t1")]);
    std::fs::rename(sandbox.repo.join("docs"), unborn.join("docs")).unwrap();
    refused(&sandbox.run(PROGRAM, &unborn, &["add", "inv"]), &["base_sha"]);
}

#[test]
fn nobody_to_name_as_an_author() {
    let sandbox = Sandbox::new();
    sandbox.package("inv", &[Task::new("t1")]);
    let nameless = |words: &[&str]| {
        let mut command = sandbox.command(PROGRAM, &sandbox.repo);
        for name in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
            command.env_remove(name);
        }
        command
            .env("GIT_CONFIG_COUNT", "1")
            .env("GIT_CONFIG_KEY_0", "user.useConfigOnly")
            .env("GIT_CONFIG_VALUE_0", "true");
        let output = command.args(words).output().unwrap();
        Ran {
            code: output.status.code().unwrap(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    };
    let refs = sandbox.refs();
    refused(&nameless(&["add", "inv"]), &["git config user.name"]);
    assert_eq!(sandbox.refs(), refs);
    assert!(sandbox.repo.join("docs/specs/inv/meta.md").is_file());
    sandbox.devlyn(&["add", "inv"]).ok();
    refused(&nameless(&["drain", "--", "sh", "{packet}"]), &["git config user.name"]);
    assert!(!sandbox.receipt_dir("inv.t1").exists());
}

#[test]
fn a_meta_file_that_is_none() {
    let sandbox = Sandbox::new();
    let meta = sandbox.repo.join("docs/specs/inv/meta.md");
    let again = || {
        sandbox.package("inv", &[Task::new("t1")]);
        std::fs::remove_file(&meta).unwrap();
    };
    let refuses = |facts: &[&str]| {
        refused(&sandbox.devlyn(&["check", "docs/specs/inv/meta.md"]), facts);
        refused(&sandbox.devlyn(&["add", "inv"]), facts);
        assert_eq!(sandbox.git(&["for-each-ref", "refs/devlyn"]), "");
    };
    again();
    std::fs::create_dir(&meta).unwrap();
    refuses(&["meta.md:1:1", "directory"]);
    std::fs::remove_dir(&meta).unwrap();
    again();
    rustix::fs::mkfifoat(rustix::fs::CWD, &meta, rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR).unwrap();
    refuses(&["meta.md:1:1", "no regular file"]);
    std::fs::remove_file(&meta).unwrap();
    again();
    std::fs::write(sandbox.root.join("meta.md"), "# out\n").unwrap();
    std::os::unix::fs::symlink(sandbox.root.join("meta.md"), &meta).unwrap();
    refuses(&["meta.md:1:1", "link out of the repository"]);
    std::fs::remove_file(&meta).unwrap();
    again();
    std::fs::File::create(&meta).unwrap().set_len(1 << 30).unwrap();
    refuses(&["meta.md:1:1", "1073741824 bytes"]);
    std::fs::write(&meta, b"# caf\xe9\n").unwrap();
    refuses(&["meta.md:1:6", "UTF-8"]);
}

#[test]
fn an_executor_that_cannot_be_found_or_started() {
    let sandbox = Sandbox::new();
    sandbox.add("inv", &[Task::new("t1")]);
    let refs = sandbox.refs();
    refused(&sandbox.devlyn(&["drain", "--", "no-such-agent", "{packet}"]), &["no-such-agent", "PATH"]);
    let plain = sandbox.root.join("plain");
    std::fs::write(&plain, "#!/bin/sh\n").unwrap();
    refused(&sandbox.devlyn(&["drain", "--", plain.to_str().unwrap(), "{packet}"]), &["plain", "executed"]);
    refused(&sandbox.devlyn(&["drain", "--", "sh", "no packet"]), &["{packet}"]);
    assert_eq!(sandbox.devlyn(&["drain"]).code, 2);
    assert_eq!(sandbox.refs(), refs);
    assert!(!sandbox.receipt_dir("inv.t1").exists());
}

#[test]
fn an_extension_that_nobody_knows() {
    let sandbox = Sandbox::new();
    sandbox.git(&["config", "core.repositoryFormatVersion", "1"]);
    sandbox.git(&["config", "extensions.futureThing", "true"]);
    let ran = sandbox.run(PROGRAM, Path::new(&sandbox.repo), &["status"]);
    refused(&ran, &["extensions.futureThing"]);
}
