//! Records, worktrees and references that were put to other places or back to older states: what contradicts proves
//! nothing and touches nothing, the reason names it, and once it is put right everything goes on.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use git_devlyn::package::Key;

use crate::sandbox::{PROGRAM, Said, Sandbox, Task, until};
use crate::state;

/// A loop `inv` of these tasks, each waiting for the one before it, and what their executors do.
fn sandbox(words: &[&str]) -> Sandbox {
    let sandbox = Sandbox::new();
    let name = |n: usize| format!("t{n}");
    let tasks: Vec<(Task, &str)> = words
        .iter()
        .enumerate()
        .map(|(at, words)| {
            let after = if at == 0 { Vec::new() } else { vec![name(at)] };
            (Task { after, ..Task::new(&name(at + 1), &[]) }, *words)
        })
        .collect();
    sandbox.add("inv", &tasks);
    sandbox
}

fn dir(sandbox: &Sandbox, task: &str) -> PathBuf {
    sandbox.common().join("devlyn-completion").join(Key::of_branch(&format!("devlyn/inv/{task}")).as_str())
}

fn tree(sandbox: &Sandbox, task: &str) -> PathBuf {
    sandbox.root.join("repo.devlyn/inv").join(task)
}

/// Everything that was said, in one text.
fn told(said: &Said) -> String {
    format!("{} {}", said.object, said.stderr)
}

#[track_caller]
fn accepted(sandbox: &Sandbox, tasks: &[(&str, usize)]) {
    let said = sandbox.drain();
    for (task, calls) in tasks {
        let identity = format!("inv.{task}");
        assert_eq!(said.item(&identity)["result"], "accepted", "{said:?}");
        assert_eq!(sandbox.calls(&identity), *calls, "{identity}");
    }
    let fsck = sandbox.devlyn(&["fsck"]);
    assert_eq!((fsck.code, fsck.status()), (Some(0), "CLEAN"), "{fsck:?}");
}

#[test]
fn a_worktree_that_leads_to_the_users_own_changes_nothing_there() {
    let sandbox = sandbox(&["astray"]);
    sandbox.write("staged.txt", "mine\n");
    sandbox.git(&["add", "staged.txt"]);
    let index = fs::read(sandbox.common().join("index")).unwrap();
    let user = state::user(&sandbox);
    for _ in 0..2 {
        let said = sandbox.drain();
        assert_eq!(said.item("inv.t1")["result"], "active", "{said:?}");
        assert!(told(&said).contains("/repo/.git"), "{said:?}");
        assert_eq!(fs::read(sandbox.common().join("index")).unwrap(), index);
        assert_eq!(state::user(&sandbox), user);
    }
    let own = sandbox.common().join("worktrees/t1");
    fs::write(tree(&sandbox, "t1").join(".git"), format!("gitdir: {}\n", own.display())).unwrap();
    accepted(&sandbox, &[("t1", 1)]);
}

#[test]
fn no_executor_works_on_a_branch_that_is_not_its_tasks() {
    let sandbox = sandbox(&["nothing"]);
    sandbox.drain();
    sandbox.git(&["branch", "mine"]);
    let mine = sandbox.git(&["rev-parse", "mine"]);
    sandbox.git_in(&tree(&sandbox, "t1"), &["switch", "-q", "mine"]);
    sandbox.plan("inv.t1", "");
    let said = sandbox.drain();
    assert!(told(&said).contains("has mine checked out") && told(&said).contains("switch devlyn/inv/t1"), "{said:?}");
    assert_eq!((sandbox.git(&["rev-parse", "mine"]), sandbox.calls("inv.t1")), (mine, 1));
    sandbox.git_in(&tree(&sandbox, "t1"), &["switch", "-q", "devlyn/inv/t1"]);
    accepted(&sandbox, &[("t1", 2)]);
}

#[test]
fn an_older_receipt_takes_no_result_back() {
    let sandbox = sandbox(&["nothing"]);
    sandbox.drain();
    let receipt = dir(&sandbox, "t1").join("receipt.json");
    let older = fs::read(&receipt).unwrap();
    sandbox.plan("inv.t1", "");
    accepted(&sandbox, &[("t1", 2)]);
    let (bound, refs) = (fs::read(&receipt).unwrap(), sandbox.git(&["for-each-ref"]));
    fs::write(&receipt, older).unwrap();
    let said = sandbox.drain();
    assert_eq!(said.item("inv.t1")["result"], "active", "{said:?}");
    assert!(told(&said).contains("keeps a settled result"), "{said:?}");
    assert_eq!((sandbox.git(&["for-each-ref"]), sandbox.calls("inv.t1")), (refs, 2));
    fs::write(&receipt, bound).unwrap();
    accepted(&sandbox, &[("t1", 2)]);
}

#[test]
fn a_result_without_its_evidence_is_nobodys_beginning() {
    for what in ["gone", "shorter", "mode", "list"] {
        let sandbox = sandbox(&["", "nothing"]);
        sandbox.git(&["branch", "devlyn/inv/t2"]);
        assert_eq!(sandbox.drain().item("inv.t1")["result"], "accepted");
        sandbox.git(&["branch", "-q", "-D", "devlyn/inv/t2"]);
        let custody = dir(&sandbox, "t1").join("custody/.devlyn/loop/acceptance.json");
        let list = dir(&sandbox, "t1").join("manifest.json");
        let (bytes, listed) = (fs::read(&custody).unwrap(), fs::read(&list).unwrap());
        let rights = fs::metadata(&custody).unwrap().permissions();
        match what {
            "gone" => fs::remove_file(&custody).unwrap(),
            "shorter" => fs::write(&custody, "{}").unwrap(),
            "mode" => {
                fs::set_permissions(&custody, std::os::unix::fs::PermissionsExt::from_mode(0o400)).unwrap();
            }
            _ => fs::write(&list, "{}").unwrap(),
        }
        let said = sandbox.drain();
        assert_ne!(said.item("inv.t1")["result"], "accepted", "{what}: {said:?}");
        assert!(told(&said).contains("proves nothing any more"), "{what}: {said:?}");
        assert_eq!(sandbox.calls("inv.t2"), 0, "{what}");
        let _ = fs::remove_file(&custody);
        fs::write(&custody, bytes).unwrap();
        fs::set_permissions(&custody, rights).unwrap();
        fs::write(&list, listed).unwrap();
        sandbox.plan("inv.t2", "");
        accepted(&sandbox, &[("t1", 1), ("t2", 1)]);
    }
}

/// The command that the report of the loop names for bringing its work in.
fn way_in(sandbox: &Sandbox) -> Option<String> {
    let report = fs::read_to_string(sandbox.common().join("devlyn-loops/inv/drain-report.md")).unwrap();
    report.lines().find_map(|line| line.strip_prefix("- Bring into main: ").map(str::to_owned))
}

#[test]
fn what_was_committed_behind_a_result_is_not_brought_in_with_it() {
    let sandbox = sandbox(&[""]);
    accepted(&sandbox, &[("t1", 1)]);
    assert_eq!(way_in(&sandbox).as_deref(), Some("git merge --ff devlyn/inv/t1"));
    let place = tree(&sandbox, "t1");
    fs::write(place.join("unproven"), "").unwrap();
    sandbox.git_in(&place, &["add", "unproven"]);
    sandbox.git_in(&place, &["commit", "-q", "-m", "Unproven"]);
    sandbox.drain();
    let recovery = format!("refs/devlyn/completed/{}", Key::of_branch("devlyn/inv/t1").as_str());
    let command = format!("git merge --ff {recovery}");
    assert_eq!(way_in(&sandbox), Some(command.clone()));
    // Nor does the way in end with the branch.
    sandbox.git(&["worktree", "remove", place.to_str().unwrap()]);
    sandbox.git(&["branch", "-q", "-D", "devlyn/inv/t1"]);
    sandbox.drain();
    assert_eq!(way_in(&sandbox), Some(command));
    sandbox.git(&["merge", "-q", "--ff", &recovery]);
    assert!(!sandbox.repo.join("unproven").exists());
    sandbox.drain();
    assert_eq!(way_in(&sandbox), None);
}

#[test]
fn nothing_is_accepted_on_what_lost_its_proof() {
    for what in ["custody", "receipt", "ref"] {
        let sandbox = sandbox(&["", "nothing"]);
        assert_eq!(sandbox.drain().item("inv.t2")["result"], "active", "{what}");
        let kept = sandbox.root.join("kept");
        let recovery = format!("refs/devlyn/completed/{}", Key::of_branch("devlyn/inv/t1").as_str());
        let at = sandbox.git(&["rev-parse", &recovery]).trim().to_owned();
        let place = match what {
            "custody" => dir(&sandbox, "t1").join("custody"),
            _ => dir(&sandbox, "t1"),
        };
        match what {
            "ref" => drop(sandbox.git(&["update-ref", "-d", &recovery])),
            _ => fs::rename(&place, &kept).unwrap(),
        }
        sandbox.plan("inv.t2", "");
        let said = sandbox.drain();
        assert_eq!(said.item("inv.t2")["result"], "active", "{what}: {said:?}");
        assert!(said.item("inv.t2")["reason"].as_str().unwrap().contains("inv.t1"), "{what}: {said:?}");
        assert_eq!((sandbox.calls("inv.t2"), way_in(&sandbox)), (1, None), "{what}");
        match what {
            "ref" => drop(sandbox.git(&["update-ref", &recovery, &at])),
            _ => fs::rename(&kept, &place).unwrap(),
        }
        accepted(&sandbox, &[("t1", 1), ("t2", 2)]);
        assert_eq!(way_in(&sandbox).as_deref(), Some("git merge --ff devlyn/inv/t2"), "{what}");
    }
}

#[test]
fn a_loop_whose_record_is_gone_is_missed() {
    let sandbox = sandbox(&["nothing"]);
    sandbox.drain();
    let record = sandbox.common().join("devlyn-loops/inv/added.json");
    let bytes = fs::read(&record).unwrap();
    fs::remove_file(&record).unwrap();
    for args in [&["status"][..], &["drain", "--", "true", "{packet}"]] {
        let said = sandbox.devlyn(args);
        assert_eq!((said.code, said.status()), (Some(1), "BLOCKED"), "{said:?}");
        assert!(said.reason().contains("added.json") && said.reason().contains("backup"), "{said:?}");
    }
    let fsck = told(&sandbox.devlyn(&["fsck"]));
    assert!(fsck.contains("add record is gone") && !fsck.contains("update-ref -d refs/devlyn/captures"), "{fsck}");
    fs::write(&record, bytes).unwrap();
    sandbox.plan("inv.t1", "");
    accepted(&sandbox, &[("t1", 2)]);
}

#[test]
fn a_packet_names_its_tasks_own_places() {
    let sandbox = sandbox(&["nothing"]);
    sandbox.drain();
    let place = dir(&sandbox, "t1").join("packet.json");
    let packet = fs::read_to_string(&place).unwrap();
    let mine = sandbox.root.join("mine");
    fs::create_dir(&mine).unwrap();
    fs::write(mine.join("executor.stdout"), "precious\n").unwrap();
    for key in ["evidence_dir", "submission", "scratch", "receipt", "allocation_base", "schema_version"] {
        let mut value: serde_json::Value = serde_json::from_str(&packet).unwrap();
        value[key] = match key {
            "schema_version" => 2.into(),
            "allocation_base" => "a".repeat(40).into(),
            _ => mine.to_str().unwrap().into(),
        };
        fs::write(&place, value.to_string()).unwrap();
        let said = sandbox.drain();
        assert!(told(&said).contains("packet.json contradicts"), "{key}: {said:?}");
        assert_eq!(sandbox.calls("inv.t1"), 1, "{key}");
    }
    assert_eq!(fs::read_to_string(mine.join("executor.stdout")).unwrap(), "precious\n");
    fs::write(&place, packet).unwrap();
    sandbox.plan("inv.t1", "");
    accepted(&sandbox, &[("t1", 2)]);
}

#[test]
fn nothing_waits_for_a_pipe_that_stands_where_state_was() {
    let sandbox = sandbox(&["nothing"]);
    sandbox.drain();
    let places = [
        dir(&sandbox, "t1").join("executions.log"),
        dir(&sandbox, "t1").join("receipt.json"),
        sandbox.common().join("devlyn-loops/inv/drain-report.md"),
        sandbox.common().join("devlyn-loops/drain.lock"),
    ];
    for place in places {
        let aside = place.with_extension("aside");
        fs::rename(&place, &aside).unwrap();
        assert!(Command::new("mkfifo").arg(&place).status().unwrap().success());
        for args in [&["status"][..], &["fsck"], &["report"], &["drain", "--", "true", "{packet}"]] {
            let argv = sandbox.devlyn_argv(args);
            let mut child = sandbox.command(&argv[0]);
            let mut child = child.args(&argv[1..]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
            until(&format!("{args:?} with {}", place.display()), || child.try_wait().unwrap().is_some());
        }
        fs::remove_file(&place).unwrap();
        fs::rename(&aside, &place).unwrap();
    }
    // A directory there hides whether an execution ended, and that is told.
    let log = dir(&sandbox, "t1").join("executions.log");
    let bytes = fs::read(&log).unwrap();
    fs::remove_file(&log).unwrap();
    fs::create_dir(&log).unwrap();
    assert!(told(&sandbox.devlyn(&["fsck"])).contains("executions.log"));
    fs::remove_dir(&log).unwrap();
    fs::write(&log, bytes).unwrap();
    sandbox.plan("inv.t1", "");
    accepted(&sandbox, &[("t1", 2)]);
}

#[test]
fn an_answer_that_cannot_be_written_is_no_success() {
    let sandbox = sandbox(&[""]);
    for args in [&["status", "--json"][..], &["status"]] {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = sandbox.command(&PROGRAM).args(args).stdout(full).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(1), "{told}");
        assert!(told.contains("cannot be written"), "{told}");
    }
}

#[test]
fn the_highest_sequence_is_the_last() {
    let sandbox = sandbox(&[""]);
    let record = sandbox.common().join("devlyn-loops/inv/added.json");
    let text = fs::read_to_string(&record).unwrap();
    fs::write(&record, text.replace("\"sequence\": 1", &format!("\"sequence\": {}", u64::MAX))).unwrap();
    sandbox.package("more", &[(Task::new("t1", &[]), "")]);
    let said = sandbox.devlyn(&["add", "more"]);
    assert!(said.status() == "BLOCKED" && said.reason().contains("highest sequence"), "{said:?}");
    fs::write(&record, text).unwrap();
    assert_eq!(sandbox.devlyn(&["add", "more"]).status(), "ADDED");
    // Nor is a link taken for a record.
    let aside = record.with_extension("aside");
    fs::rename(&record, &aside).unwrap();
    symlink(&aside, &record).unwrap();
    assert_eq!(sandbox.devlyn(&["status"]).code, Some(1));
}
