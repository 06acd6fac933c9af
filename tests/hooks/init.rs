//! Installing the hooks, and taking them out again so that every byte is as before.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::lab::{Lab, PROGRAM, put};

const HOOKS: [&str; 6] =
    ["pre-commit", "pre-merge-commit", "pre-applypatch", "prepare-commit-msg", "pre-push", "pre-receive"];

/// Every file below `dir` with its mode and bytes, folders included, object files aside.
fn snapshot(dir: &Path) -> BTreeMap<PathBuf, (u32, Vec<u8>)> {
    fn walk(dir: &Path, seen: &mut BTreeMap<PathBuf, (u32, Vec<u8>)>) {
        for entry in fs::read_dir(dir).unwrap() {
            let path = entry.unwrap().path();
            let meta = fs::symlink_metadata(&path).unwrap();
            if path.ends_with(".git/objects") {
                continue;
            }
            let bytes = if meta.is_dir() {
                walk(&path, seen);
                Vec::new()
            } else if meta.is_symlink() {
                fs::read_link(&path).unwrap().into_os_string().into_encoded_bytes()
            } else {
                fs::read(&path).unwrap()
            };
            seen.insert(path, (meta.permissions().mode(), bytes));
        }
    }
    let mut seen = BTreeMap::new();
    walk(dir, &mut seen);
    seen
}

/// Compares two snapshots and names what differs.
#[track_caller]
fn same(left: &BTreeMap<PathBuf, (u32, Vec<u8>)>, right: &BTreeMap<PathBuf, (u32, Vec<u8>)>, what: &str) {
    let paths: std::collections::BTreeSet<&PathBuf> = left.keys().chain(right.keys()).collect();
    let other: Vec<_> = paths.into_iter().filter(|path| left.get(*path) != right.get(*path)).collect();
    assert!(other.is_empty(), "{what}: {other:?}");
}

fn hook(path: &Path, text: &str) {
    put(path, text);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Installs twice and takes out twice: the second time nothing happens, and in the end all is as it was.
#[track_caller]
fn there_and_back(lab: &Lab, dir: &Path, args: &[&str]) {
    let before = snapshot(&lab.beside(""));
    let init = |more: &[&str]| lab.run(dir, PROGRAM, &[&["init"], more].concat(), None).fine();
    init(&[args, &["--dry-run"]].concat());
    same(&snapshot(&lab.beside("")), &before, "a dry run does nothing");
    init(args);
    let installed = snapshot(&lab.beside(""));
    assert!(installed != before);
    let said = init(args);
    assert!(said.contains("everything is in place"), "{said}");
    same(&snapshot(&lab.beside("")), &installed, "a second time changes nothing");
    init(&["--uninstall", "--dry-run"]);
    same(&snapshot(&lab.beside("")), &installed, "as it was");
    init(&["--uninstall"]);
    same(&snapshot(&lab.beside("")), &before, "every byte is as before");
    let said = init(&["--uninstall"]);
    assert!(said.contains("nothing of git devlyn is installed"), "{said}");
    same(&snapshot(&lab.beside("")), &before, "as it was");
    init(args);
    same(&snapshot(&lab.beside("")), &installed, "as it was");
}

#[test]
fn there_and_back_in_every_kind_of_repository() {
    let lab = Lab::plain();
    there_and_back(&lab, &lab.root, &[]);
    for name in HOOKS {
        let path = lab.root.join(".git/hooks").join(name);
        // What a strict umask takes from the others is not ours to give.
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o722, 0o700, "{name}");
        assert_eq!(fs::read_to_string(path).unwrap().lines().count(), 3, "two lines of shell");
    }
    // .gitignore has the rule, so that info/exclude is left alone.
    assert!(!fs::read_to_string(lab.root.join(".git/info/exclude")).unwrap().contains("devlyn"));

    let lab = Lab::plain();
    lab.git(&["rm", "-q", ".gitignore"]).fine();
    put(&lab.root.join(".git/info/exclude"), "no line feed at the end");
    there_and_back(&lab, &lab.root, &["--protect-refs", "--notes"]);
    assert!(lab.git(&["check-ignore", ".devlyn/"]).ok);
    assert_eq!(lab.git(&["config", "--get-all", "notes.displayRef"]).fine(), "refs/notes/devlyn");

    // No template, so neither hooks/ nor info/.
    let lab = Lab::plain();
    lab.git(&["init", "-q", "--template=", "../bare"]).fine();
    there_and_back(&lab, &lab.beside("bare"), &[]);

    let lab = Lab::plain();
    lab.git(&["clone", "-q", "--bare", ".", "../server.git"]).fine();
    there_and_back(&lab, &lab.beside("server.git"), &[]);
    assert!(fs::read_to_string(lab.beside("server.git/info/exclude")).unwrap().contains("\n.devlyn/\n"));
}

#[test]
fn linked_worktrees_share_the_hooks() {
    let lab = Lab::plain();
    lab.git(&["worktree", "add", "-q", "../linked"]).fine();
    there_and_back(&lab, &lab.beside("linked"), &[]);
    assert!(lab.root.join(".git/hooks/pre-commit").exists());
    assert!(lab.devlyn(&["init"]).fine().contains("everything is in place"));
    // From a folder of it too.
    assert!(lab.run(&lab.root.join("src"), PROGRAM, &["init"], None).fine().contains("everything is in place"));
}

#[test]
fn the_directory_is_the_one_that_git_uses() {
    let lab = Lab::plain();
    lab.git(&["config", "core.hooksPath", "tools/hooks"]).fine();
    there_and_back(&lab, &lab.root, &[]);
    assert!(lab.root.join("tools/hooks/pre-commit").exists() && !lab.root.join(".git/hooks/pre-commit").exists());
    lab.with_loop("inv", 1);
    lab.commit("docs/specs/inv/meta.md", "# Changed\n").refused("H7");

    // One of the user's own, for all repositories.
    let lab = Lab::plain();
    let global = lab.beside("gitconfig");
    put(&global, "[core]\n\thooksPath = ~/my hooks\n[user]\n\tname = T\n\temail = t@example.invalid\n");
    hook(&lab.beside("my hooks/pre-commit"), "#!/bin/sh\necho mine >> \"$HOME/log\"\n");
    let env: &[(&str, &OsStr)] = &[("GIT_CONFIG_GLOBAL", global.as_os_str())];
    let said = lab.run_with(&lab.root, PROGRAM, &["init"], None, env).fine();
    assert!(said.contains("my hooks/pre-commit.local") && said.contains("may serve other repositories"), "{said}");
    lab.with_loop("inv", 1);
    lab.write("docs/specs/inv/meta.md", "# Changed\n");
    lab.run_with(&lab.root, "git", &["commit", "-qam", "x"], None, env).refused("H7");
    assert_eq!(fs::read_to_string(lab.beside("log")).unwrap(), "mine\n");
    lab.run_with(&lab.root, PROGRAM, &["init", "--uninstall"], None, env).fine();
    assert_eq!(fs::read_dir(lab.beside("my hooks")).unwrap().count(), 1);
}

#[test]
fn hooks_that_are_there_are_kept_and_called_first() {
    let lab = Lab::plain();
    let hooks = lab.root.join(".git/hooks");
    hook(&hooks.join("pre-commit"), "#!/bin/sh\necho \"$# $GIT_INDEX_FILE\" >> ../log\ntest ! -e fail || exit 7\n");
    hook(&hooks.join("pre-push"), "#!/bin/sh\necho \"push $1 $(cat)\" >> ../log\n");
    // One that reads nothing, one without a `#!`, one that may not run, one that is a link.
    hook(&hooks.join("pre-receive"), "exit 0\n");
    put(&hooks.join("prepare-commit-msg"), "#!/bin/sh\nexit 1\n");
    hook(&lab.root.join("src/hook"), "#!/bin/sh\nexit 0\n");
    symlink("../../src/hook", hooks.join("pre-merge-commit")).unwrap();
    there_and_back(&lab, &lab.root, &[]);

    lab.with_loop("inv", 1);
    lab.commit("src/c.txt", "c\n").fine();
    let log = fs::read_to_string(lab.beside("log")).unwrap();
    assert_eq!(log, "0 .git/index\n");
    // Its refusal counts, whatever ours would say.
    lab.write("fail", "");
    let said = lab.commit("docs/specs/inv/meta.md", "# Changed\n");
    assert!(!said.ok && !said.err.contains("H7"), "{}", said.err);
    fs::remove_file(lab.root.join("fail")).unwrap();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    // Standard input is for both.
    lab.git(&["reset", "-q", "--hard"]).fine();
    lab.git(&["init", "-q", "--bare", "../server.git"]).fine();
    lab.git(&["push", "-q", "../server.git", "main"]).fine();
    let log = fs::read_to_string(lab.beside("log")).unwrap();
    assert!(log.contains(&format!("push ../server.git refs/heads/main {}", lab.head())), "{log}");
    lab.write("docs/specs/inv/meta.md", "# Changed\n");
    lab.git(&["commit", "-qam", "x", "--no-verify"]).fine();
    lab.git(&["push", "-q", "../server.git", "main"]).refused("H7");
    lab.git(&["checkout", "-q", "-b", "side", "HEAD~1"]).fine();
    lab.commit("src/d.txt", "d\n").fine();
    lab.git(&["merge", "-q", "--no-ff", "main"]).fine();
}

#[test]
fn a_missing_program_still_calls_what_was_there() {
    let lab = Lab::plain();
    hook(&lab.root.join(".git/hooks/pre-commit"), "#!/bin/sh\necho there >> ../log\nexit 3\n");
    lab.devlyn(&["init"]).fine();
    let path = lab.run(&lab.root, "sh", &["-c", "dirname \"$(command -v git)\""], None).fine();
    let path = format!("{path}:/usr/bin:/bin");
    let env: &[(&str, &OsStr)] = &[("PATH", OsStr::new(&path))];
    let said = lab.run_with(&lab.root, "git", &["commit", "-q", "--allow-empty", "-m", "x"], None, env);
    assert!(!said.ok, "{}", said.err);
    assert_eq!(fs::read_to_string(lab.beside("log")).unwrap(), "there\n");
}

#[test]
fn what_is_in_the_way_is_said_before_anything_is_done() {
    let lab = Lab::plain();
    let hooks = lab.root.join(".git/hooks");
    hook(&hooks.join("pre-push"), "#!/bin/sh\n");
    put(&hooks.join("pre-push.local"), "somebody's\n");
    let before = snapshot(&lab.root);
    let said = lab.devlyn(&["init"]);
    assert!(said.code == Some(1) && said.err.contains("pre-push.local is in the way"), "{}", said.err);
    same(&snapshot(&lab.root), &before, "as it was");
    // A file of ours that somebody added to is theirs.
    fs::remove_file(hooks.join("pre-push.local")).unwrap();
    lab.devlyn(&["init"]).fine();
    let text = fs::read_to_string(hooks.join("pre-push")).unwrap() + "# and more\n";
    put(&hooks.join("pre-push"), &text);
    let said = lab.devlyn(&["init", "--uninstall"]).fine();
    assert!(said.contains("is not as git devlyn wrote it"), "{said}");
    assert!(hooks.join("pre-push.local").exists() && !hooks.join("pre-commit").exists());
}

#[test]
fn directories_that_others_manage_are_left_alone() {
    for (path, text, config, lines) in [
        (
            ".husky/_/pre-commit",
            "#!/usr/bin/env sh\n. \"${0%/*}/h\"\n",
            ".husky/_",
            ".husky/pre-commit: git-devlyn hook pre-commit \"$@\"",
        ),
        (
            ".git/hooks/pre-commit",
            "#!/bin/sh\ncall_lefthook run \"pre-commit\" \"$@\"\n",
            "",
            "lefthook.yml: pre-commit: {commands: {git-devlyn: {run: 'git-devlyn hook pre-commit {0}'}}}",
        ),
        (
            ".git/hooks/pre-commit",
            "#!/usr/bin/env bash\n# File generated by pre-commit: https://pre-commit.com\n",
            "",
            ".pre-commit-config.yaml: - {repo: local",
        ),
    ] {
        let lab = Lab::plain();
        hook(&lab.root.join(path), text);
        if !config.is_empty() {
            lab.git(&["config", "core.hooksPath", config]).fine();
        }
        let before = snapshot(&lab.root);
        let said = lab.devlyn(&["init"]).fine();
        assert!(said.contains(lines), "{said}");
        same(&snapshot(&lab.root), &before, "as it was");
        lab.devlyn(&["init", "--uninstall"]).fine();
        same(&snapshot(&lab.root), &before, "as it was");
    }
}

#[test]
fn a_template_brings_the_hooks_into_every_new_repository() {
    let lab = Lab::new();
    let template = lab.beside("template");
    for name in HOOKS {
        hook(&template.join("hooks").join(name), &fs::read_to_string(lab.root.join(".git/hooks").join(name)).unwrap());
    }
    let new = lab.beside("new");
    lab.git(&["init", "-q", "--template", template.to_str().unwrap(), new.to_str().unwrap()]).fine();
    lab.identify(&new);
    put(&new.join(".devlyn/x"), "x");
    lab.git_in(&new, &["add", "-f", "."]).fine();
    lab.git_in(&new, &["commit", "-qm", "x"]).refused("H1");
    let said = lab.run(&new, PROGRAM, &["init"], None).fine();
    assert!(!said.contains("hooks/") && said.contains("info/exclude"), "{said}");
}

#[test]
fn a_newer_git_takes_the_hooks_from_its_configuration() {
    let lab = Lab::plain();
    let real = lab.run(&lab.root, "sh", &["-c", "command -v git"], None).fine();
    let newer = format!(
        "#!/bin/sh\ntest \"$*\" = \"${{*%version}}\" || {{ echo git version 2.54.0; exit; }}\nexec '{real}' \"$@\"\n"
    );
    hook(&lab.beside("newer/git"), &newer);
    let path = format!("{}:{}", lab.beside("newer").display(), std::env::var_os("PATH").unwrap().to_str().unwrap());
    let bin = Path::new(PROGRAM).parent().unwrap().display().to_string();
    let path = format!("{bin}:{path}");
    let env: &[(&str, &OsStr)] = &[("PATH", OsStr::new(&path))];
    let init = |args: &[&str]| lab.run_with(&lab.root, PROGRAM, &[&["init"], args].concat(), None, env).fine();
    let before = snapshot(&lab.root);
    init(&[]);
    assert!(!lab.root.join(".git/hooks/pre-commit").exists());
    let get = |key: &str| lab.git(&["config", "--local", "--get-all", key]).fine();
    assert_eq!(get("hook.devlyn-pre-push.event"), "pre-push");
    let installed = snapshot(&lab.root);
    assert!(init(&[]).contains("everything is in place"));
    same(&snapshot(&lab.root), &installed, "as it was");
    // What Git runs: the command with the arguments behind it.
    let command = format!("{} \"$@\"", get("hook.devlyn-pre-commit.command"));
    lab.run(&lab.root, "sh", &["-c", &command, "sh"], None).fine();
    put(&lab.root.join(".devlyn/x"), "x");
    lab.git(&["add", "-f", ".devlyn"]).fine();
    lab.run(&lab.root, "sh", &["-c", &command, "sh"], None).refused("H1");
    lab.git(&["rm", "-r", "-q", "--cached", ".devlyn"]).fine();
    fs::remove_dir_all(lab.root.join(".devlyn")).unwrap();
    init(&["--uninstall"]);
    let (mut after, mut before) = (snapshot(&lab.root), before);
    let index = lab.root.join(".git/index");
    after.remove(&index);
    before.remove(&index);
    same(&after, &before, "as it was");
    // The files of an older time give way.
    lab.devlyn(&["init"]).fine();
    init(&[]);
    assert!(!lab.root.join(".git/hooks/pre-commit").exists());
}

#[test]
fn the_report_is_an_object_too() {
    let lab = Lab::plain();
    let said = lab.devlyn(&["init", "--json"]).fine();
    let object: serde_json::Value = serde_json::from_str(&said).unwrap();
    assert_eq!(object["status"], "INSTALLED");
    assert_eq!(object["steps"].as_array().unwrap().len(), HOOKS.len());
    assert!(object["hooks"].as_str().unwrap().ends_with(".git/hooks"));
}

#[test]
fn notes_that_somebody_else_asked_for_stay() {
    let lab = Lab::plain();
    lab.git(&["config", "notes.displayRef", "refs/notes/mine"]).fine();
    let before = snapshot(&lab.root);
    lab.devlyn(&["init", "--notes"]).fine();
    assert_eq!(lab.git(&["config", "--get-all", "notes.displayRef"]).fine(), "refs/notes/mine\nrefs/notes/devlyn");
    lab.devlyn(&["init", "--uninstall"]).fine();
    same(&snapshot(&lab.root), &before, "as it was");
    lab.git(&["config", "--add", "notes.displayRef", "refs/notes/devlyn"]).fine();
    let before = snapshot(&lab.root);
    lab.devlyn(&["init", "--notes"]).fine();
    lab.devlyn(&["init", "--uninstall"]).fine();
    same(&snapshot(&lab.root), &before, "as it was");
}

#[test]
fn what_is_the_users_own_stays_whatever_it_looks_like() {
    // A file with the name under which a hook would be kept.
    let lab = Lab::plain();
    let kept = lab.root.join(".git/hooks/pre-commit.local");
    hook(&kept, "#!/bin/sh\necho mine\n");
    let before = snapshot(&lab.root);
    let said = lab.devlyn(&["init"]);
    assert!(
        said.code == Some(1) && format!("{}{}", said.out, said.err).contains("pre-commit.local is in the way"),
        "{}",
        said.err
    );
    lab.devlyn(&["init", "--uninstall"]).fine();
    same(&snapshot(&lab.root), &before, "as it was");

    // Folders that were empty, a link and the rights of a file, a word in a comment.
    let lab = Lab::plain();
    lab.git(&["rm", "-q", ".gitignore"]).fine();
    fs::remove_dir_all(lab.root.join(".git/hooks")).unwrap();
    hook(&lab.root.join(".git/hooks/post-commit"), "#!/bin/sh\n# we no longer use husky or lefthook\n");
    fs::remove_file(lab.root.join(".git/hooks/post-commit")).unwrap();
    let exclude = lab.root.join(".git/info/exclude");
    let real = lab.beside("exclude");
    put(&real, "*.tmp\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    fs::remove_file(&exclude).unwrap();
    symlink(&real, &exclude).unwrap();
    there_and_back(&lab, &lab.root, &[]);
    assert!(
        fs::symlink_metadata(&exclude).unwrap().is_symlink() && fs::read_to_string(&real).unwrap().contains(".devlyn")
    );

    let lab = Lab::plain();
    hook(&lab.root.join(".git/hooks/post-commit"), "#!/bin/sh\n# we no longer use husky or lefthook\n");
    there_and_back(&lab, &lab.root, &[]);
    assert!(lab.root.join(".git/hooks/pre-commit").exists());
}

#[test]
fn a_kept_hook_is_called_when_the_framework_comes_later() {
    let lab = Lab::plain();
    let hooks = lab.root.join(".git/hooks");
    hook(&hooks.join("pre-commit"), "#!/bin/sh\necho kept >> ../log\n");
    lab.devlyn(&["init"]).fine();
    // What `pre-commit install` does.
    fs::rename(hooks.join("pre-commit"), hooks.join("pre-commit.legacy")).unwrap();
    hook(&hooks.join("pre-commit"), "#!/bin/sh\nexec \"$0.legacy\" \"$@\"\n");
    lab.git(&["commit", "-q", "--allow-empty", "-m", "x"]).fine();
    assert_eq!(fs::read_to_string(lab.beside("log")).unwrap(), "kept\n");
}
