//! The crash matrix: a whole loop, killed at each of its durable steps, then drained until it is settled, ends as the
//! loop that nobody disturbed.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::sandbox::{Said, Sandbox, Task, soak, until, writers};
use crate::state;
use crate::trace::{self, Alone, Point};

/// A loop of three tasks: accepted with the runner, accepted with a review, failed.
pub(crate) fn prepared() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.add("inv", &tasks());
    sandbox
}

pub(crate) fn tasks() -> [(Task, &'static str); 3] {
    [
        (Task::new("t1", &[]), "runner"),
        (Task::new("t2", &["t1"]).reviewed(), "review"),
        (Task::new("t3", &["t1", "t2"]).checked_by("cat t1.txt t2.txt t3.txt; exit 1"), ""),
    ]
}

pub(crate) const IDENTITIES: [&str; 3] = ["inv.t1", "inv.t2", "inv.t3"];

/// What was done to settle a loop.
#[derive(Debug, Default)]
pub(crate) struct Settled {
    pub(crate) drains: usize,
    pub(crate) recovered: usize,
}

/// Drains until nothing waits. An unfinished allocation is recovered as its reason says; a living executor is waited for.
///
/// # Errors
/// What it waits for, where that is nothing that a later drain takes up.
pub(crate) fn settle(sandbox: &Sandbox) -> Result<Settled, String> {
    let mut settled = Settled::default();
    for _ in 0..20 {
        let said = sandbox.drain();
        settled.drains += 1;
        match said.status() {
            "DRAINED" => return Ok(settled),
            "WAITING" => {}
            _ => return Err(format!("{said:?}")),
        }
        if let Some(task) = unfinished(sandbox, &said) {
            let said = sandbox.devlyn(&["recover", &task]);
            if said.status() != "RECOVERED" {
                return Err(format!("{task} is not recovered: {said:?}"));
            }
            settled.recovered += 1;
        } else if said.reason().contains("interrupted execution may go on") {
            let trees = sandbox.root.join("repo.devlyn");
            until("the interrupted executor ends", || writers(&trees).is_empty());
        } else if !said.reason().contains("left no submission") {
            return Err(format!("it waits for good: {}\n{}", said.reason(), said.stderr));
        }
    }
    Err("twenty drains did not settle it".to_owned())
}

/// The task whose reason tells to recover its unfinished allocation.
fn unfinished(sandbox: &Sandbox, said: &Said) -> Option<String> {
    let items = said.object["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
    let told = |reason: &str| {
        let found = sandbox.receipts().into_iter().any(|(dir, _)| reason.contains(dir.to_str().unwrap()));
        found
            && (reason.contains("its allocation was interrupted") || reason.contains("stands there without a receipt"))
    };
    let found = items.iter().find(|item| item["reason"].as_str().is_some_and(told))?;
    found["identity"].as_str().map(str::to_owned)
}

/// How often the executor ran for each task, and for which of them a result is bound.
pub(crate) fn calls(sandbox: &Sandbox, identities: &[&str]) -> BTreeMap<String, (usize, bool)> {
    let receipts = sandbox.receipts();
    let bound = |identity: &str| {
        receipts.iter().any(|(_, receipt)| receipt["task"] == identity && !receipt["acceptance"].is_null())
    };
    identities.iter().map(|&identity| (identity.to_owned(), (sandbox.calls(identity), bound(identity)))).collect()
}

/// What must hold of a loop that was killed, `calls` being those of that moment, and is settled.
pub(crate) fn compare(
    sandbox: &Sandbox,
    undisturbed: &str,
    noteless: bool,
    calls_then: &BTreeMap<String, (usize, bool)>,
) -> Result<(), String> {
    same(sandbox, undisturbed, noteless)?;
    for (identity, (now, _)) in calls(sandbox, &IDENTITIES) {
        let (then, bound) = calls_then[&identity];
        if now > 2 || (bound && now != then) {
            return Err(format!("{identity} was executed {then} times before and {now} times after, bound: {bound}"));
        }
    }
    Ok(())
}

/// Whether the state is the undisturbed one, with nothing left behind and nothing broken.
pub(crate) fn same(sandbox: &Sandbox, undisturbed: &str, noteless: bool) -> Result<(), String> {
    let mut found = state::of(sandbox);
    if noteless {
        found = state::without_notes(&found);
    }
    if found != undisturbed {
        let diff = similar::TextDiff::from_lines(undisturbed, &found);
        return Err(format!("it ended otherwise:\n{}", diff.unified_diff()));
    }
    let litter = state::litter(sandbox);
    if !litter.is_empty() {
        return Err(format!("left behind: {litter:#?}"));
    }
    state::sound(sandbox)
}

/// What a matrix came to.
#[derive(Debug, Default)]
struct Tally {
    covered: AtomicUsize,
    missed: AtomicUsize,
    drains: AtomicUsize,
    recovered: AtomicUsize,
    faults: Mutex<Vec<String>>,
}

/// Tries `points` with two workers as long as `time` lasts, a spread of the `first` of them before the others.
pub(crate) fn matrix<P: Sync + std::fmt::Debug>(
    what: &str,
    points: &[P],
    first: usize,
    time: Duration,
    attempt: impl Fn(&P) -> Result<Option<Settled>, String> + Sync,
) {
    let (tally, next, start) = (Tally::default(), AtomicUsize::new(0), Instant::now());
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while start.elapsed() < time {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    if at >= points.len() {
                        break;
                    }
                    let point = if at < first {
                        &points[spread(at, first)]
                    } else {
                        &points[first + spread(at - first, points.len() - first)]
                    };
                    match attempt(point) {
                        Ok(Some(settled)) => {
                            tally.covered.fetch_add(1, Ordering::Relaxed);
                            tally.drains.fetch_add(settled.drains, Ordering::Relaxed);
                            tally.recovered.fetch_add(settled.recovered, Ordering::Relaxed);
                        }
                        Ok(None) => drop(tally.missed.fetch_add(1, Ordering::Relaxed)),
                        Err(fault) => {
                            eprintln!("{what}: {point:?}: {fault}");
                            tally.faults.lock().unwrap().push(format!("{point:?}: {fault}"));
                        }
                    }
                }
            });
        }
    });
    let faults = tally.faults.into_inner().unwrap();
    eprintln!(
        "{what}: {} of {} points covered, {} not reached, {} drains to settle them, {} allocations recovered, {} \
         faults, {:.0} s",
        tally.covered.into_inner(),
        points.len(),
        tally.missed.into_inner(),
        tally.drains.into_inner(),
        tally.recovered.into_inner(),
        faults.len(),
        start.elapsed().as_secs_f64()
    );
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}

/// The points in an order in which those come first that lie between two different states: a flush and the pieces of an
/// object change nothing that a later run could see.
pub(crate) fn telling(points: Vec<(Point, String)>) -> (Vec<(Point, String)>, usize) {
    let same = |(point, shown): &(Point, String)| {
        matches!(point.call.as_str(), "fsync" | "fdatasync" | "syncfs")
            || shown.contains("/objects/tmp_obj_")
            || shown.contains("\\1")
    };
    let (same, telling): (Vec<_>, Vec<_>) = points.into_iter().partition(same);
    let count = telling.len();
    (telling.into_iter().chain(same).collect(), count)
}

/// The `at`-th of `count` places in an order in which any beginning is spread over the whole.
fn spread(at: usize, count: usize) -> usize {
    let mut step = (count * 618 / 1000).max(1);
    while gcd(step, count) != 1 {
        step += 1;
    }
    at * step % count
}

fn gcd(a: usize, b: usize) -> usize {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// The time that a matrix may take.
pub(crate) fn time() -> Duration {
    Duration::from_secs(if soak() { 24 * 3600 } else { 15 })
}

fn killed_drains(alone: Alone) {
    if !trace::possible() || (alone == Alone::No && !trace::namespaces()) {
        return;
    }
    let prepared = prepared();
    let argv =
        |sandbox: &Sandbox| sandbox.devlyn_argv(&sandbox.drain_args().iter().map(String::as_str).collect::<Vec<_>>());
    let example = prepared.copy();
    let (said, points) = trace::points(&example, alone, trace::STEPS, &argv(&example));
    assert_eq!((said.code, said.status()), (Some(0), "DRAINED"), "{said:?}");
    let undisturbed = state::of(&example);
    assert_eq!(state::litter(&example), [""; 0]);
    let what = format!("drain killed {}", if alone == Alone::Yes { "alone" } else { "with everything" });
    let (points, first) = telling(points);
    matrix(&what, &points, first, time(), |(point, _)| {
        let sandbox = prepared.copy();
        if !trace::killed_at(&sandbox, alone, point, &argv(&sandbox)) {
            return Ok(None);
        }
        let calls = calls(&sandbox, &IDENTITIES);
        let settled = settle(&sandbox)?;
        compare(&sandbox, &undisturbed, false, &calls)?;
        Ok(Some(settled))
    });
}

#[test]
fn a_drain_that_dies_at_any_step_is_taken_up() {
    killed_drains(Alone::Yes);
}

#[test]
fn a_drain_that_dies_with_everything_at_any_step_is_taken_up() {
    killed_drains(Alone::No);
}

/// An add that was killed: everything can be read, and the same add finishes it, or a drain does where it is on record.
fn killed_adds(alone: Alone) {
    if !trace::possible() || (alone == Alone::No && !trace::namespaces()) {
        return;
    }
    let prepared = Sandbox::new();
    prepared.add("old", &[(Task::new("t1", &[]), "")]);
    prepared.package("inv", &tasks());
    let argv = |sandbox: &Sandbox| sandbox.devlyn_argv(&["add", "inv"]);
    let example = prepared.copy();
    let (said, points) = trace::points(&example, alone, trace::STEPS, &argv(&example));
    assert_eq!((said.code, said.status()), (Some(0), "ADDED"), "{said:?}");
    let undisturbed = state::of(&example);
    let what = format!("add killed {}", if alone == Alone::Yes { "alone" } else { "with everything" });
    let (points, first) = telling(points);
    matrix(&what, &points, first, time() / 3, |(point, _)| {
        let sandbox = prepared.copy();
        if !trace::killed_at(&sandbox, alone, point, &argv(&sandbox)) {
            return Ok(None);
        }
        let status = sandbox.devlyn(&["status"]);
        if status.status() != "OK" {
            return Err(format!("status: {status:?}"));
        }
        let again = sandbox.devlyn(&["add", "inv"]);
        if again.status() != "ADDED" || again.object["cleanup"] != serde_json::json!([]) {
            return Err(format!("the second add: {again:?}"));
        }
        same(&sandbox, &undisturbed, false)?;
        Ok(Some(Settled::default()))
    });
}

#[test]
fn an_add_that_dies_at_any_step_is_taken_up() {
    killed_adds(Alone::Yes);
}

#[test]
fn an_add_that_dies_with_everything_at_any_step_is_taken_up() {
    killed_adds(Alone::No);
}

#[test]
fn a_spread_visits_everything_once() {
    for count in [1, 2, 7, 100, 618] {
        let mut seen: Vec<usize> = (0..count).map(|at| spread(at, count)).collect();
        seen.sort_unstable();
        assert_eq!(seen, (0..count).collect::<Vec<_>>());
    }
}
