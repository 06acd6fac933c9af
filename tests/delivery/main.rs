//! Delivery from outside, against a scripted host that answers slowly, answers what was before, answers garbage, and
//! fails before or after its effects: no second request, no lost merge, no secret shown.
//!
//! `DEVLYN_DELIVERY_RUNS` is how many random walks there are (200 with `DEVLYN_SOAK`, 24 otherwise),
//! `DEVLYN_DELIVERY_SEED` repeats the ones of a seed.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a suite that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a suite starts programs and spoils files as a person would")]
#![allow(clippy::print_stdout, reason = "a seed is told so that its walks can be repeated")]
#![allow(unreachable_pub, reason = "a suite has no users")]

mod place;

use std::fs;
use std::path::Path;

use serde_json::Value;

use place::{PASSWORD, Place, write};

/// xorshift64*: enough to shuffle faults, and the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 33) % sides
    }

    fn letters(&mut self, of: &str, number: usize) -> String {
        let of: Vec<char> = of.chars().collect();
        (0..number).map(|_| format!("{}\n", of[usize::try_from(self.roll(of.len() as u64)).unwrap()])).collect()
    }
}

impl Place {
    /// One task from its allocation to its merge, whatever goes wrong on the way.
    fn walk(&mut self, task: &str, dice: &mut Dice) {
        let branch = format!("devlyn/{}", task.replace('.', "/"));
        for name in ["plan", "roads", "pending"] {
            let _ = fs::remove_file(self.root.join(name));
        }
        write(&self.root.join("roads"), &dice.letters("oof", 2));
        for attempt in 0.. {
            assert!(attempt < 20, "{task} was never allocated: {}", self.said);
            if self.allocate(task)["status"] == "ALLOCATED" {
                break;
            }
            assert!(!Path::new(&self.receipt_path(task)).exists() && !self.tree(task).exists());
        }
        let source = self.product(task);
        let mode = ["auto", "auto", "pr"][usize::try_from(dice.roll(3)).unwrap()];
        if dice.roll(2) == 0 {
            write(&self.root.join("pending"), "");
        }
        write(&self.root.join("plan"), &dice.letters("ooooosfafagl", 12));
        write(&self.root.join("roads"), &dice.letters("ooooofa", 12));
        let mut done = false;
        for attempt in 0..40 {
            if dice.roll(6) == 0 {
                self.a_secret_in_the_remote(task);
            }
            let asked = ["--mode", mode];
            let value = self.complete(task, if attempt == 0 { &asked } else { &[] });
            let status = value["status"].as_str().unwrap().to_owned();
            let requests = self.requests(&branch);
            assert!(requests.len() <= 1, "{task}: {requests:?} {}", self.said);
            if let Some(at) = self.there(&format!("refs/heads/{branch}")) {
                assert_eq!(at, source, "{task}: something else was published");
            }
            match status.as_str() {
                "COMPLETE" => done = true,
                "PR" | "PENDING" if dice.roll(2) == 0 => self.merge_by_hand(&requests[0]),
                "PR" | "PENDING" | "BLOCKED" | "CLEANUP_PENDING" => {}
                other => panic!("{task}: {other}"),
            }
            if done {
                break;
            }
        }
        assert!(done, "{task} was never complete: {}", self.said);
        self.delivered(task, &branch);
    }

    /// What the scripted host has: its references, its requests and what was merged.
    fn effects(&self) -> (String, usize, String) {
        let refs = self.git(&self.root.join("bare"), &["for-each-ref"]);
        let requests = fs::read_dir(self.root.join("prs")).map_or(0, Iterator::count);
        (refs, requests, fs::read_to_string(self.root.join("merged")).unwrap_or_default())
    }

    /// A remote with a password in it is refused without being shown.
    fn a_secret_in_the_remote(&mut self, task: &str) {
        let url = format!("https://owner:{PASSWORD}@github.com/test/project.git");
        self.git(&self.repo(), &["config", "remote.origin.pushurl", &url]);
        let before = self.effects();
        let value = self.complete(task, &[]);
        let settled = ["COMPLETE", "CLEANUP_PENDING"].iter().any(|status| value["status"] == *status);
        assert!(value["status"] == "BLOCKED" || settled, "{value}");
        assert_eq!(self.effects(), before);
        self.git(&self.repo(), &["config", "--unset", "remote.origin.pushurl"]);
    }

    fn delivered(&self, task: &str, branch: &str) {
        let receipt = self.receipt(task);
        let requests = self.requests(branch);
        assert_eq!(requests.len(), 1, "{task}");
        let merge = fs::read_to_string(self.root.join("prs").join(&requests[0]).join("merge")).unwrap();
        assert_eq!(receipt["merge"]["mergeCommit"]["oid"], merge.trim());
        let merged = fs::read_to_string(self.root.join("merged")).unwrap();
        assert_eq!(merged.lines().filter(|line| *line == requests[0]).count(), 1, "{task} was merged once");
        assert_eq!((&receipt["delivery"], &receipt["status"]), (&"COMPLETE".into(), &"COMPLETE".into()));
        assert!(self.there(&format!("main:{task}.txt")).is_some(), "{task} is on the base");
        assert_eq!(self.there(&format!("refs/heads/{branch}")), None);
        assert!(!self.tree(task).exists());
        let kept = self.git(&self.repo(), &["rev-parse", receipt["recovery_ref"].as_str().unwrap()]);
        assert_eq!(receipt["publish_sha"], kept.as_str());
        let branches =
            self.git(&self.repo(), &["for-each-ref", &format!("refs/heads/{branch}"), "refs/remotes/origin/devlyn"]);
        assert_eq!(branches, "");
        let records = Path::new(&self.receipt_path(task)).with_file_name("records/.devlyn/checks.log");
        assert_eq!(fs::read_to_string(records).unwrap(), "1 passed\n");
    }
}

fn number(variable: &str) -> Option<u64> {
    std::env::var_os(variable)?.to_str()?.parse().ok()
}

#[test]
fn whatever_the_host_does_a_task_is_requested_once_and_merged_once() {
    let seed = number("DEVLYN_DELIVERY_SEED").unwrap_or_else(|| {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
        u64::from(now.subsec_nanos()) | 1
    });
    let usual = if std::env::var_os("DEVLYN_SOAK").is_some() { 200 } else { 24 };
    let runs = number("DEVLYN_DELIVERY_RUNS").unwrap_or(usual);
    println!("DEVLYN_DELIVERY_SEED={seed} DEVLYN_DELIVERY_RUNS={runs}");
    let hands = 4;
    std::thread::scope(|scope| {
        for hand in 0..hands {
            scope.spawn(move || {
                let mut place = Place::new();
                for run in (hand..runs).step_by(usize::try_from(hands).unwrap()) {
                    // Each walk has dice of its own, so that a seed repeats it whatever the others did.
                    let mut dice = Dice(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15).wrapping_add(run * 2 + 1) | 1);
                    place.walk(&format!("walk.t{run}"), &mut dice);
                    place.no_secret_was_shown();
                    place.said.clear();
                }
                let found = place.devlyn(&["fsck"]);
                assert_eq!(found["status"], "CLEAN", "{found}");
                assert!(!place.root.join("violations").exists(), "the host was asked for what is never asked");
            });
        }
    });
}

#[test]
fn without_a_host_a_merge_is_recognised_by_its_commits_or_its_patches() {
    let mut place = Place::new();
    place.env.insert("NOBODY".to_owned(), "1".to_owned());
    let bare = place.root.join("bare").display().to_string();
    place.git(&place.repo(), &["remote", "set-url", "origin", &bare]);
    place.git(&place.repo(), &["config", "devlyn.forge", "none"]);
    // Whoever asks a host here fails the test.
    write(&place.root.join("bin/gh"), "#!/bin/sh\nexit 9\n");
    for (task, by) in [("n.merge", "ancestry"), ("n.squash", "squash"), ("n.rebase", "rebase")] {
        assert_eq!(place.allocate(task)["status"], "ALLOCATED", "{}", place.said);
        assert_eq!(place.receipt(task)["repository"], Value::Null);
        if by == "rebase" {
            place.product(task);
            write(&place.tree(task).join("more.txt"), "more\n");
        }
        let source = place.product(task);
        for _ in 0..2 {
            let value = place.complete(task, &[]);
            assert_eq!((&value["status"], &value["pr"]), (&"PR".into(), &Value::Null), "{}", place.said);
        }
        let branch = format!("devlyn/{}", task.replace('.', "/"));
        assert_eq!(place.there(&format!("refs/heads/{branch}")), Some(source));
        let person = place.root.join(task);
        place.git(&place.root, &["clone", "-q", &bare, person.to_str().unwrap()]);
        write(&person.join("meanwhile.txt"), task);
        place.git(&person, &["add", "-A"]);
        place.git(&person, &["commit", "-q", "-m", "meanwhile"]);
        let branch = format!("origin/{branch}");
        match by {
            "ancestry" => place.git(&person, &["merge", "-q", "--no-ff", "--no-edit", &branch]),
            "squash" => {
                place.git(&person, &["merge", "-q", "--squash", &branch]);
                place.git(&person, &["commit", "-q", "-m", "by hand"])
            }
            _ => place.git(&person, &["cherry-pick", &format!("HEAD..{branch}")]),
        };
        place.git(&person, &["push", "-q", "origin", "HEAD:main"]);
        let value = place.complete_cleanly(task);
        assert_eq!(
            (&value["status"], &place.receipt(task)["merge"]["recognisedBy"]),
            (&"COMPLETE".into(), &by.into()),
            "{value}"
        );
        assert!(!place.tree(task).exists());
        assert_eq!(place.there(&format!("refs/heads/devlyn/{}", task.replace('.', "/"))), None);
    }
    let value = place.allocate("n.again");
    assert_eq!((&value["status"], &value["reconciled"]), (&"ALLOCATED".into(), &Value::Array(Vec::new())));
}

#[test]
fn a_host_that_there_is_no_way_to_is_named() {
    let mut place = Place::new();
    place.git(&place.repo(), &["config", "devlyn.forge", "gitlab"]);
    let value = place.allocate("x.t1");
    assert_eq!(value["status"], "BLOCKED");
    assert!(value["reason"].as_str().unwrap().contains("gitlab"));
}
