//! Repositories that are as they should be, whatever was done to them that may be done.

use std::process::Stdio;
use std::time::Duration;

use serde_json::Value;

use super::common::PROGRAM;
use super::{Does, Sandbox, Task, clean, told, worked};

#[test]
fn a_repository_without_anything_of_ours_is_clean_and_stays_so() {
    let sandbox = Sandbox::new();
    clean(&sandbox);
    assert!(!sandbox.common().join("devlyn-loops").exists(), "looking makes nothing");
    let text = sandbox.devlyn(&["fsck"]).ok().stdout;
    assert_eq!(text, "Everything that is kept agrees.\n");
}

#[test]
fn what_git_does_with_its_own_store_is_no_finding() {
    let sandbox = worked();
    sandbox.git(&["gc", "-q", "--prune=now"]);
    clean(&sandbox);
    sandbox.git(&["pack-refs", "--all", "--prune"]);
    clean(&sandbox);
    sandbox.git(&["worktree", "prune"]);
    sandbox.git(&["worktree", "repair"]);
    clean(&sandbox);
    let report = std::fs::read_to_string(sandbox.common().join("devlyn-loops/b/drain-report.md")).unwrap();
    let bring = report.lines().find_map(|line| line.strip_prefix("- Bring into main: ")).unwrap();
    sandbox.run("sh", &sandbox.repo, &["-c", bring]).ok();
    clean(&sandbox);
    // Its branch and its worktree are the owner's once the result is brought in.
    sandbox.git(&["worktree", "remove", sandbox.worktree("b.t1").to_str().unwrap()]);
    sandbox.git(&["branch", "-q", "-D", &Sandbox::branch("b.t1")]);
    clean(&sandbox);
    sandbox.executor_does("c.t1", Does::Well);
    sandbox.drained();
    clean(&sandbox);
}

#[test]
fn a_loop_at_work_and_one_that_was_killed_at_it_are_clean() {
    let sandbox = Sandbox::new();
    sandbox.add("a", &[Task::new("t1"), Task::new("t2").after("t1")]);
    clean(&sandbox);
    sandbox.executor_does("a.t1", Does::Wait);
    let mut command = sandbox.command(PROGRAM, &sandbox.repo);
    command.args(sandbox.drain_args()).stdout(Stdio::null()).stderr(Stdio::null());
    let mut drain = Running(command.spawn().unwrap());
    while sandbox.calls().is_empty() {
        assert!(drain.0.try_wait().unwrap().is_none());
        assert_eq!(told(&sandbox), Vec::<Value>::new(), "half of an allocation that goes on is no finding");
    }
    clean(&sandbox);
    drop(drain);
    clean(&sandbox);
    sandbox.open_gate();
    let settled = || sandbox.drain().ok().json()["status"] == "DRAINED";
    let mut rounds = (0..600).map(|_| std::thread::sleep(Duration::from_millis(20)));
    assert!(rounds.any(|()| settled()), "the executor that outlived its drain ends");
    clean(&sandbox);
}

/// A process that is ended with the test.
struct Running(std::process::Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
