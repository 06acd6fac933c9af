//! Many at once: controllers, adds, questions, signals, and processes that stay behind.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::sandbox::{Said, Sandbox, Task, until, writers};
use crate::state;
use crate::trace;

/// A drain whose executor of `inv.t1` waits until it is let go.
struct Waiting {
    sandbox: Sandbox,
    drain: Child,
}

impl Waiting {
    fn new(words: &str) -> Self {
        let sandbox = Sandbox::new();
        sandbox.add("inv", &[(Task::new("t1", &[]), words)]);
        let drain = sandbox.start_drain();
        until("the executor waits", || sandbox.root.join("plan/inv.t1.waits").exists());
        Self { sandbox, drain }
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.drain), signal).unwrap();
    }

    fn go(&self) {
        fs::write(self.sandbox.root.join("plan/inv.t1.go"), "").unwrap();
    }

    fn ends(self) -> (Sandbox, Said) {
        let said = Sandbox::wait(self.drain);
        (self.sandbox, said)
    }
}

fn runs(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim())).unwrap_or_default();
    !stat.is_empty() && !stat.contains(") Z ")
}

#[test]
fn a_second_drain_is_refused_wherever_it_is_asked_for() {
    let waiting = Waiting::new("wait");
    let sandbox = &waiting.sandbox;
    let other = sandbox.root.join("elsewhere");
    sandbox.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    let args = sandbox.drain_args();
    for place in [&sandbox.repo, &other, &sandbox.root.join("repo.devlyn/inv/t1")] {
        let argv = sandbox.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let said = Sandbox::run(sandbox.command(&argv[0]).args(&argv[1..]).current_dir(place));
        assert_eq!((said.code, said.status()), (Some(1), "BLOCKED"), "{said:?}");
        assert!(said.reason().contains("another drain"), "{said:?}");
    }
    waiting.go();
    let (sandbox, said) = waiting.ends();
    assert_eq!((said.status(), sandbox.calls("inv.t1")), ("DRAINED", 1), "{said:?}");
}

#[test]
fn everything_else_goes_on_beside_a_drain() {
    let waiting = Waiting::new("wait");
    let sandbox = &waiting.sandbox;
    let user = state::user(sandbox);
    sandbox.package("next", &[(Task::new("t1", &[]), "")]);
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                for _ in 0..5 {
                    let clock = Instant::now();
                    let said = sandbox.devlyn(&["status"]);
                    assert_eq!((said.code, said.status()), (Some(0), "OK"), "{said:?}");
                    // The executor waits for as long as it takes; the status does not wait for it.
                    assert!(clock.elapsed() < Duration::from_secs(30), "it took {:?}", clock.elapsed());
                }
            });
        }
        scope.spawn(|| assert_eq!(sandbox.devlyn(&["check", "next"]).status(), "VALID"));
    });
    let receipt = sandbox.receipts()[0].0.join("receipt.json");
    let (receipt, acceptance) = (receipt.to_str().unwrap(), sandbox.root.join("none.json"));
    // Nothing to accept yet: refused with its reason, and the task is as it was.
    let args = ["task", "accept", "--receipt", receipt, "--acceptance", acceptance.to_str().unwrap()];
    let refused = sandbox.devlyn(&args);
    assert_eq!((refused.code, refused.status()), (Some(1), "BLOCKED"), "{refused:?}");
    assert_eq!(sandbox.devlyn(&["add", "next"]).status(), "ADDED");
    assert_eq!(state::user(sandbox), user);
    waiting.go();
    let (sandbox, said) = waiting.ends();
    // The drain that runs takes the new loop up.
    assert_eq!((said.status(), sandbox.calls("inv.t1"), sandbox.calls("next.t1")), ("DRAINED", 1, 1), "{said:?}");
}

#[test]
fn thirty_two_adds_at_once_are_thirty_two_records() {
    let sandbox = Sandbox::new();
    let loops: Vec<String> = (1..=32).map(|n| format!("l{n}")).collect();
    for id in &loops {
        sandbox.package(id, &[(Task::new("t1", &[]), "")]);
    }
    let adds: Vec<Child> = loops
        .iter()
        .map(|id| {
            let argv = sandbox.devlyn_argv(&["add", id]);
            let mut command = sandbox.command(&argv[0]);
            command.args(&argv[1..]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        })
        .collect();
    for add in adds {
        let said = Sandbox::wait(add);
        assert_eq!((said.code, said.status()), (Some(0), "ADDED"), "{said:?}");
    }
    let sequences: BTreeSet<u64> = loops
        .iter()
        .map(|id| {
            let record = fs::read(sandbox.common().join("devlyn-loops").join(id).join("added.json")).unwrap();
            serde_json::from_slice::<serde_json::Value>(&record).unwrap()["sequence"].as_u64().unwrap()
        })
        .collect();
    assert_eq!(sequences, (1..=32).collect());
    assert!(!sandbox.repo.join("docs/specs").read_dir().is_ok_and(|mut left| left.next().is_some()));
    assert_eq!(sandbox.devlyn(&["status"]).object["counts"]["pending"], 32);
    assert_eq!(state::litter(&sandbox), [""; 0]);
}

#[test]
fn the_lock_of_a_dead_drain_is_free_and_its_living_executor_is_not_run_twice() {
    let mut waiting = Waiting::new("wait");
    waiting.drain.kill().unwrap();
    waiting.drain.wait().unwrap();
    let sandbox = &waiting.sandbox;
    let said = sandbox.drain();
    assert_eq!(said.status(), "WAITING", "{said:?}");
    assert!(said.reason().contains("interrupted execution may go on"), "{said:?}");
    assert_eq!(sandbox.calls("inv.t1"), 1);
    waiting.go();
    let tree = sandbox.root.join("repo.devlyn");
    until("the executor ends", || writers(&tree).is_empty());
    assert_eq!((sandbox.drain().status(), sandbox.calls("inv.t1")), ("DRAINED", 1));
}

/// What a drain says that a signal ended, and that the next one goes on.
fn interrupted(signal: Signal) {
    let waiting = Waiting::new("wait");
    waiting.signal(signal);
    let (sandbox, said) = waiting.ends();
    assert_eq!(said.code, Some(128 + signal.as_raw()), "{said:?}");
    assert_eq!(said.status(), "WAITING", "{said:?}");
    assert!(said.reason().contains("drain again"), "{said:?}");
    assert_eq!(said.item("inv.t1")["result"], "active", "{said:?}");
    assert!(writers(&sandbox.root.join("repo.devlyn")).is_empty(), "its executor was told to end");
    sandbox.plan("inv.t1", "");
    assert_eq!((sandbox.drain().status(), sandbox.calls("inv.t1")), ("DRAINED", 2));
    assert_eq!(state::litter(&sandbox), [""; 0]);
}

#[test]
fn ctrl_c_ends_a_drain_that_can_be_gone_on_with() {
    interrupted(Signal::INT);
}

#[test]
fn a_closed_terminal_ends_a_drain_that_can_be_gone_on_with() {
    interrupted(Signal::HUP);
}

#[test]
fn the_end_of_the_session_ends_a_drain_that_can_be_gone_on_with() {
    interrupted(Signal::TERM);
}

#[test]
fn the_second_ctrl_c_ends_it_at_once() {
    let mut waiting = Waiting::new("wait ignore");
    let clock = Instant::now();
    let mut ended = None;
    // A second signal within a tenth of a second counts as an echo of the first; so it is sent until it is heard.
    until("the drain ends", || {
        waiting.signal(Signal::INT);
        ended = waiting.drain.try_wait().unwrap();
        ended.is_some()
    });
    assert_eq!(ended.and_then(|status| status.code()), Some(130));
    assert!(clock.elapsed() < Duration::from_secs(9), "it waited for its executor: {:?}", clock.elapsed());
    let tree = waiting.sandbox.root.join("repo.devlyn");
    until("the executor is gone", || writers(&tree).is_empty());
    waiting.sandbox.plan("inv.t1", "");
    assert_eq!((waiting.sandbox.drain().status(), waiting.sandbox.calls("inv.t1")), ("DRAINED", 2));
}

#[test]
#[ignore = "waits for the twelve seconds that an executor is given"]
fn an_executor_that_ignores_everything_is_ended_in_its_time() {
    let waiting = Waiting::new("wait ignore");
    let clock = Instant::now();
    waiting.signal(Signal::INT);
    let (sandbox, said) = waiting.ends();
    assert_eq!((said.code, said.status()), (Some(130), "WAITING"), "{said:?}");
    assert!(clock.elapsed() > Duration::from_secs(10) && clock.elapsed() < Duration::from_secs(60));
    assert!(writers(&sandbox.root.join("repo.devlyn")).is_empty());
    sandbox.plan("inv.t1", "");
    assert_eq!(sandbox.drain().status(), "DRAINED");
}

#[test]
fn an_interrupt_during_checks_decides_nothing() {
    let sandbox = Sandbox::new();
    let begun = sandbox.root.join("begun");
    let check = format!("cat t1.txt; touch '{0}'; test -e '{0}.second' || sleep 600", begun.display());
    sandbox.add("inv", &[(Task::new("t1", &[]).checked_by(&check), "")]);
    let drain = sandbox.start_drain();
    until("the check runs", || begun.exists());
    kill_process(Pid::from_child(&drain), Signal::INT).unwrap();
    let said = Sandbox::wait(drain);
    assert_eq!((said.code, said.item("inv.t1")["result"].as_str()), (Some(130), Some("active")), "{said:?}");
    fs::write(begun.with_extension("second"), "").unwrap();
    assert_eq!((sandbox.drain().status(), sandbox.calls("inv.t1")), ("DRAINED", 1));
}

#[test]
fn what_an_executor_leaves_behind_is_ended_or_told() {
    let sandbox = Sandbox::new();
    sandbox.add("inv", &[(Task::new("t1", &[]), "stray"), (Task::new("t2", &["t1"]), "")]);
    let said = sandbox.drain();
    assert_eq!(said.status(), "DRAINED", "{said:?}");
    let told = said.object["cleanup"].to_string();
    assert!(told.contains("ended a process that its executor left behind: sleep 6011"), "{said:?}");
    assert!(told.contains("left a process running: ") && told.contains("sleep 6012"), "{said:?}");
    let pid = |name: &str| fs::read_to_string(sandbox.root.join("plan").join(name)).unwrap();
    // A session of its own means to stay; neither the next executor's end nor the drain's own changes that.
    assert!(!runs(&pid("inv.t1.child")) && runs(&pid("inv.t1.stray")));
    assert!(!writers(&sandbox.root.join("repo.devlyn/inv/t1")).is_empty());
}

#[test]
fn what_a_check_leaves_behind_is_ended_and_told() {
    let sandbox = Sandbox::new();
    let place = sandbox.root.join("stray");
    let check = format!(
        "cat t1.txt; setsid sh -c 'echo $$ >\"$1\"; exec sleep 6013' sh '{0}' </dev/null >/dev/null 2>&1 & \
         while ! test -s '{0}'; do sleep 0.02; done",
        place.display()
    );
    sandbox.add("inv", &[(Task::new("t1", &[]).checked_by(&check), "")]);
    let said = sandbox.drain();
    assert_eq!((said.status(), said.item("inv.t1")["result"].as_str()), ("DRAINED", Some("accepted")), "{said:?}");
    assert!(!runs(&fs::read_to_string(place).unwrap()));
    let receipt = sandbox.receipts()[0].1.to_string();
    assert!(receipt.contains("left_behind") && receipt.contains("sleep 6013"), "{receipt}");
}

#[test]
fn a_drain_works_in_a_process_namespace() {
    if !trace::namespaces() {
        return;
    }
    let sandbox = Sandbox::new();
    sandbox.add("inv", &[(Task::new("t1", &[]), "runner stray"), (Task::new("t2", &["t1"]).reviewed(), "review")]);
    let args = sandbox.drain_args();
    let argv = sandbox.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
    // As the first process of its namespace, whose group leads from outside and has no number inside.
    let said = Sandbox::run(sandbox.command("unshare").args(trace::NAMESPACE).args(&argv));
    assert_eq!((said.code, said.status()), (Some(0), "DRAINED"), "{said:?}");
    assert_eq!((sandbox.calls("inv.t1"), sandbox.calls("inv.t2")), (1, 1));
    assert!(said.object["cleanup"].to_string().contains("sleep 6012"), "{said:?}");
    assert_eq!(said.object["counts"]["accepted"], 2);
}

#[test]
fn who_reads_the_progress_may_go_away() {
    let sandbox = Sandbox::new();
    sandbox.add("inv", &[(Task::new("t1", &[]), "")]);
    let mut drain = sandbox.start_drain();
    drop((drain.stderr.take(), drain.stdout.take()));
    let status = drain.wait().unwrap();
    assert_eq!(status.signal(), None);
    assert_eq!(
        (sandbox.devlyn(&["status"]).object["counts"]["accepted"].as_u64(), sandbox.calls("inv.t1")),
        (Some(1), 1)
    );
}
