//! Random walks: loops of every outcome are added and drained, interrupted again and again, while the user goes on with
//! the repository; after every step the promises are kept, and in the end every task has come out as it was to.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, FileFailurePersistence, TestCaseError, TestRunner};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::crash::settle;
use crate::sandbox::{Sandbox, Task, number, soak, until, writers};
use crate::state;
use crate::trace::{self, Alone, Point};

/// What a task is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Does {
    Well,
    WithRunner,
    WithReview,
    Badly,
    Doubt,
    Half,
    /// It leaves no submission until the walk is over.
    Nothing,
}

/// A step of a walk.
#[derive(Debug, Clone)]
enum Step {
    /// The next loop: what its tasks are, and whether each waits for the one before it.
    Add(Vec<(Does, bool)>),
    /// The same, killed.
    AddKilled(Vec<(Does, bool)>, Kill),
    Drain,
    DrainKilled(Kill),
    /// Killed when so many lines of progress were seen.
    DrainKilledAtLine(usize),
    /// Told to end when so many lines of progress were seen.
    DrainInterruptedAtLine(usize),
    Gc,
    Prune,
    Pack,
    Switch,
    Commit,
    Edit,
    /// A package copy of the loop comes back into the checkout with other words.
    Copy(usize),
}

/// A system call at which the program dies, alone or with everything.
#[derive(Debug, Clone)]
struct Kill {
    call: &'static str,
    number: usize,
    alone: bool,
}

fn does() -> impl Strategy<Value = Does> {
    prop_oneof![
        4 => Just(Does::Well),
        2 => Just(Does::WithRunner),
        2 => Just(Does::WithReview),
        2 => Just(Does::Badly),
        1 => Just(Does::Doubt),
        1 => Just(Does::Half),
        1 => Just(Does::Nothing),
    ]
}

fn kill() -> impl Strategy<Value = Kill> {
    let place = prop_oneof![
        (Just("renameat"), 1..60_usize),
        (Just("write"), 1..200_usize),
        (Just("mkdir"), 1..80_usize),
        (Just("clone3"), 1..28_usize),
        (Just("fdatasync"), 1..60_usize),
        (Just("fsync"), 1..100_usize),
        (Just("flock"), 1..24_usize),
    ];
    (place, any::<bool>()).prop_map(|((call, number), alone)| Kill { call, number, alone })
}

fn step() -> impl Strategy<Value = Step> {
    let tasks = || prop::collection::vec((does(), any::<bool>()), 1..4);
    prop_oneof![
        4 => tasks().prop_map(Step::Add),
        1 => (tasks(), kill()).prop_map(|(tasks, kill)| Step::AddKilled(tasks, kill)),
        2 => Just(Step::Drain),
        6 => kill().prop_map(Step::DrainKilled),
        2 => (1..20_usize).prop_map(Step::DrainKilledAtLine),
        2 => (1..20_usize).prop_map(Step::DrainInterruptedAtLine),
        1 => Just(Step::Gc),
        1 => Just(Step::Prune),
        1 => Just(Step::Pack),
        1 => Just(Step::Switch),
        1 => Just(Step::Commit),
        1 => Just(Step::Edit),
        1 => (0..4_usize).prop_map(Step::Copy),
    ]
}

type Checked = Result<(), String>;

/// A walk under way.
struct Walk {
    sandbox: Sandbox,
    strace: bool,
    namespaces: bool,
    loops: Vec<(String, Vec<(Does, bool)>)>,
    /// Files of the user's, and what they hold.
    files: BTreeMap<PathBuf, String>,
    /// The bound result of each task when it was first seen, and how often its executor had run.
    bound: BTreeMap<String, (Value, usize)>,
    side: bool,
}

impl Walk {
    fn new(strace: bool, namespaces: bool) -> Self {
        let (sandbox, loops) = (Sandbox::new(), Vec::new());
        Self { sandbox, strace, namespaces, loops, files: BTreeMap::new(), bound: BTreeMap::new(), side: false }
    }

    fn take(&mut self, step: &Step) -> Checked {
        let before = self.user();
        match step {
            Step::Add(tasks) => self.add(tasks, None)?,
            Step::AddKilled(tasks, kill) => self.add(tasks, Some(kill))?,
            Step::Drain => drop(self.sandbox.drain()),
            Step::DrainKilled(kill) => {
                let args = self.sandbox.drain_args();
                self.killed(kill, &args.iter().map(String::as_str).collect::<Vec<_>>());
            }
            Step::DrainKilledAtLine(line) => self.signalled(*line, Signal::KILL),
            Step::DrainInterruptedAtLine(line) => self.signalled(*line, Signal::INT),
            Step::Gc => {
                self.alone();
                self.sandbox.git(&["gc", "-q", "--prune=now"]);
            }
            Step::Prune => drop(self.sandbox.git(&["worktree", "prune"])),
            Step::Pack => drop(self.sandbox.git(&["pack-refs", "--all"])),
            Step::Switch => {
                let to = if self.sandbox.git(&["branch", "--show-current"]).trim() == "main" { "side" } else { "main" };
                let args: &[&str] = if self.side { &["switch", "-q", to] } else { &["switch", "-q", "-c", "side"] };
                self.sandbox.git(args);
                self.side = true;
                return self.promises();
            }
            Step::Commit => {
                self.sandbox.git(&["commit", "-q", "--allow-empty", "-m", "Something of mine"]);
                return self.promises();
            }
            Step::Edit => {
                let name = format!("mine {}.txt", self.files.len());
                self.mine(&name, "not to be touched\n");
                return self.promises();
            }
            Step::Copy(at) => {
                if let Some((id, _)) = self.loops.get(*at) {
                    self.mine(&format!("docs/specs/{}/meta.md", id.clone()), "# Revised\n");
                }
                return self.promises();
            }
        }
        let after = self.user();
        if before != after {
            let diff = similar::TextDiff::from_lines(&before, &after);
            return Err(format!("the user's own changed:\n{}", diff.unified_diff()));
        }
        self.promises()
    }

    fn mine(&mut self, name: &str, text: &str) {
        self.sandbox.write(name, text);
        self.files.insert(self.sandbox.repo.join(name), text.to_owned());
    }

    /// What is the user's, less the package copies that an add may take away.
    fn user(&self) -> String {
        let all = state::user(&self.sandbox);
        all.lines().filter(|line| !line.contains("docs/")).map(|line| format!("{line}\n")).collect()
    }

    fn add(&mut self, tasks: &[(Does, bool)], kill: Option<&Kill>) -> Checked {
        let id = format!("l{}", self.loops.len() + 1);
        let package: Vec<(Task, &str)> = (0..tasks.len()).map(|at| task(tasks, at)).collect();
        self.sandbox.package(&id, &package);
        if let Some(kill) = kill {
            self.killed(kill, &["add", &id]);
            self.promises()?;
        }
        let said = self.sandbox.devlyn(&["add", &id]);
        if said.status() != "ADDED" {
            return Err(format!("add: {said:?}"));
        }
        self.loops.push((id, tasks.to_vec()));
        Ok(())
    }

    fn killed(&self, kill: &Kill, args: &[&str]) {
        if !self.strace {
            return self.signalled(kill.number % 20, Signal::KILL);
        }
        let alone = if kill.alone || !self.namespaces { Alone::Yes } else { Alone::No };
        let point = Point { call: kill.call.to_owned(), number: kill.number };
        trace::killed_at(&self.sandbox, alone, &point, &self.sandbox.devlyn_argv(args));
    }

    fn signalled(&self, line: usize, signal: Signal) {
        let mut drain = self.sandbox.start_drain();
        let progress = BufReader::new(drain.stderr.take().unwrap());
        for _ in progress.lines().map_while(Result::ok).take(line) {}
        let _ = kill_process(Pid::from_child(&drain), signal);
        Sandbox::wait(drain);
    }

    /// Until no executor of a drain that died runs any more.
    fn alone(&self) {
        let trees = self.sandbox.root.join("repo.devlyn");
        until("interrupted executors end", || writers(&trees).is_empty());
    }

    /// What holds at any time.
    fn promises(&mut self) -> Checked {
        let status = self.sandbox.devlyn(&["status"]);
        if (status.code, status.status()) != (Some(0), "OK") {
            return Err(format!("the status cannot be read: {status:?}"));
        }
        let blockers = status.object["blockers"].to_string();
        for word in ["contradict", "unreadable", "the recovery ref", "claims", "cannot be read"] {
            if blockers.contains(word) {
                return Err(format!("something contradicts itself: {blockers}"));
            }
        }
        for (path, text) in &self.files {
            if fs::read_to_string(path).ok().as_ref() != Some(text) {
                return Err(format!("{} of the user's was touched", path.display()));
            }
        }
        let refs = self.sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)", "refs/devlyn/completed"]);
        let refs: BTreeMap<&str, &str> = refs.lines().filter_map(|line| line.split_once(' ')).collect();
        for (dir, receipt) in self.sandbox.receipts() {
            if receipt["acceptance"].is_null() {
                continue;
            }
            let identity = receipt["task"].as_str().unwrap().to_owned();
            let calls = self.sandbox.calls(&identity);
            let result: Value =
                ["acceptance", "acceptance_digest", "source_sha", "files"].map(|key| receipt[key].clone()).into();
            let first = self.bound.entry(identity.clone()).or_insert_with(|| (result.clone(), calls));
            if *first != (result, calls) {
                return Err(format!(
                    "the bound result of {identity} changed, or it was executed again ({calls} times)"
                ));
            }
            let at = refs.get(receipt["recovery_ref"].as_str().unwrap()).copied();
            let (source, publish) = (receipt["source_sha"].as_str(), receipt["publish_sha"].as_str());
            let parent = || self.sandbox.git(&["rev-parse", &format!("{}^", at.unwrap())]);
            let proven =
                at.is_some() && (at == publish || (receipt["queue"].is_null() && source == Some(parent().trim())));
            if !proven {
                return Err(format!("the recovery ref of {identity} is at {at:?}, its receipt says {publish:?}"));
            }
            for (path, record) in receipt["files"].as_object().into_iter().flatten() {
                let bytes = fs::read(dir.join("custody").join(path)).map_err(|error| format!("{path}: {error}"))?;
                let digest: String = Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect();
                if record["sha256"] != digest.as_str() {
                    return Err(format!("{path} of {identity} is not what was bound"));
                }
            }
        }
        state::sound(&self.sandbox)
    }

    /// Lets everything come to its end, which is the one that was planned.
    fn end(&mut self) -> Checked {
        self.alone();
        for (id, tasks) in &self.loops {
            for (at, _) in tasks.iter().enumerate().filter(|(_, (does, _))| *does == Does::Nothing) {
                self.sandbox.plan(&format!("{id}.t{}", at + 1), "");
            }
        }
        let user = self.user();
        settle(&self.sandbox)?;
        self.promises()?;
        if self.user() != user {
            return Err("the last drains changed what is the user's".to_owned());
        }
        let state = state::of(&self.sandbox);
        let said = self.sandbox.drain();
        if said.status() != "DRAINED" || state::of(&self.sandbox) != state {
            return Err(format!("a drain that has nothing to do did something: {said:?}"));
        }
        for (id, tasks) in &self.loops {
            for (at, expected) in outcomes(tasks).into_iter().enumerate() {
                let item = said.item(&format!("{id}.t{}", at + 1));
                if item["result"] != expected {
                    return Err(format!("{id}.t{} is not {expected}: {item:#}", at + 1));
                }
            }
        }
        let litter = state::litter(&self.sandbox);
        if litter.is_empty() { Ok(()) } else { Err(format!("left behind: {litter:#?}")) }
    }
}

/// The `at`-th task of a loop and what its executor does. The last one waits for all.
fn task(tasks: &[(Does, bool)], at: usize) -> (Task, &'static str) {
    let name = |at: usize| format!("t{}", at + 1);
    let after: Vec<String> = after(tasks, at).into_iter().map(name).collect();
    let task = Task { after, ..Task::new(&name(at), &[]) };
    match tasks[at].0 {
        Does::Well => (task, ""),
        Does::WithRunner => (task, "runner"),
        Does::WithReview => (task.reviewed(), "review"),
        Does::Badly => (task.checked_by("exit 1"), ""),
        Does::Doubt => (task, "doubt"),
        Does::Half => (task, "half"),
        Does::Nothing => (task, "nothing"),
    }
}

fn after(tasks: &[(Does, bool)], at: usize) -> Vec<usize> {
    if at + 1 == tasks.len() { (0..at).collect() } else { (at.saturating_sub(1)..at).filter(|_| tasks[at].1).collect() }
}

fn outcomes(tasks: &[(Does, bool)]) -> Vec<&'static str> {
    let mut results: Vec<&str> = Vec::new();
    for (at, (does, _)) in tasks.iter().enumerate() {
        let result = if after(tasks, at).iter().any(|before| results[*before] != "accepted") {
            "blocked"
        } else if matches!(does, Does::Badly | Does::Doubt | Does::Half) {
            "failed"
        } else {
            "accepted"
        };
        results.push(result);
    }
    results
}

#[test]
fn a_random_walk_ends_where_it_was_to() {
    let walks = number("DEVLYN_WALKS").unwrap_or(if soak() { 10_000 } else { 300 });
    let limit = Duration::from_secs(if soak() || number("DEVLYN_WALKS").is_some() { 7 * 24 * 3600 } else { 300 });
    let lanes = std::thread::available_parallelism().map_or(1, usize::from).min(8);
    let tally = Tally { start: Instant::now(), limit, walks: AtomicUsize::new(0), steps: AtomicUsize::new(0) };
    let failed: Vec<String> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..lanes).map(|_| scope.spawn(|| tally.lane(walks.div_ceil(lanes)))).collect();
        lanes.into_iter().filter_map(|lane| lane.join().unwrap().err()).collect()
    });
    tally.tell();
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

/// The walks of all lanes.
struct Tally {
    start: Instant,
    /// After which no walk is begun: a slow machine takes fewer of them.
    limit: Duration,
    walks: AtomicUsize,
    steps: AtomicUsize,
}

impl Tally {
    /// So many walks, one after the other, or the first that went wrong, with the seed that finds it again.
    fn lane(&self, walks: usize) -> Result<(), String> {
        let (strace, namespaces) = (trace::possible(), trace::namespaces());
        let config = Config {
            cases: u32::try_from(walks).unwrap(),
            // What failed once is walked first ever after; the seed of a new failure is written there too.
            failure_persistence: Some(Box::new(FileFailurePersistence::Direct("tests/recovery/walks.regressions"))),
            max_shrink_iters: 40,
            ..Config::default()
        };
        let walked = TestRunner::new(config).run(&prop::collection::vec(step(), 3..10), |steps| {
            if self.start.elapsed() > self.limit {
                return Ok(());
            }
            let mut walk = Walk::new(strace, namespaces);
            for (at, step) in steps.iter().enumerate() {
                walk.take(step).map_err(|why| TestCaseError::fail(format!("step {at}, {step:?}: {why}")))?;
                self.steps.fetch_add(1, Ordering::Relaxed);
            }
            walk.end().map_err(|why| TestCaseError::fail(format!("at the end: {why}")))?;
            if (self.walks.fetch_add(1, Ordering::Relaxed) + 1).is_multiple_of(500) {
                self.tell();
            }
            Ok(())
        });
        walked.map_err(|error| error.to_string())
    }

    fn tell(&self) {
        let count = |number: &AtomicUsize| number.load(Ordering::Relaxed);
        let seconds = self.start.elapsed().as_secs_f64();
        eprintln!("{} walks of {} steps, {seconds:.0} s", count(&self.walks), count(&self.steps));
    }
}
