//! What checking a candidate leaves in writing: a runner's result, and the acceptance that a receipt binds.

use serde::{Deserialize, Serialize};

use super::Packet;
use super::shape::quoted;
use crate::json;
use crate::oid::Oid;
use crate::package::{CommandWords, Identity};

/// A command as it was declared.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    /// A line for the shell.
    Cmd(String),
    /// A program and its arguments.
    Argv(Vec<String>),
}

impl From<&CommandWords> for Command {
    fn from(words: &CommandWords) -> Self {
        match words {
            CommandWords::Argv(words) => Self::Argv(words.clone()),
            CommandWords::Shell(line) => Self::Cmd(line.clone()),
        }
    }
}

/// How a command ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Outcome {
    /// By itself.
    Exit {
        /// With this status.
        exit_code: i32,
    },
    /// By a signal.
    Signal {
        /// This one.
        signal: i32,
    },
    /// At its limit.
    Timeout {
        /// Of this many seconds.
        timeout_sec: u64,
    },
    /// It never began.
    SpawnError {
        /// Why.
        error: String,
    },
}

/// An evidence file of a command.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stream {
    /// Where it is, relative to the worktree.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// How many there are.
    pub bytes: u64,
}

/// A declared command that was run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandRecord {
    /// Its place among the declared ones, from 0.
    pub index: usize,
    /// What was run.
    pub command: Command,
    /// The requirements that it is evidence for.
    pub contract_refs: Vec<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its standard output.
    pub stdout: Stream,
    /// Its standard error.
    pub stderr: Stream,
    /// Command lines of descendants that outlived it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub left_behind: Vec<String>,
    /// Whether it is as it was expected.
    pub passed: bool,
    /// What is not; null where it passed.
    pub reason: Option<String>,
    /// The runner result that it was taken over from, relative to the worktree.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reused_from: Option<String>,
}

/// A guard that was judged.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GuardRecord {
    /// Which rule.
    pub rule: String,
    /// What was judged by it: a path or a pattern.
    pub subject: String,
    /// Whether it holds.
    pub passed: bool,
    /// Whether it blocks acceptance where it does not.
    pub blocking: bool,
}

/// What a candidate was judged by.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Digests {
    /// The SHA-256 of the contract.
    pub contract: String,
    /// That of the expected acceptance.
    pub expected: String,
    /// That of the meta-prompt.
    pub meta: String,
}

impl Digests {
    /// Those that `packet` names.
    #[must_use]
    pub fn of(packet: &Packet) -> Self {
        Self {
            contract: packet.contract.sha256.clone(),
            expected: packet.expected.sha256.clone(),
            meta: packet.meta.sha256.clone(),
        }
    }
}

/// Which document this is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// The acceptance of a task.
    Loop,
    /// A runner's result.
    LoopChecks,
}

/// What was checked of a candidate: all of a runner's result, and the greater part of an acceptance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Always 1.
    pub schema_version: u64,
    /// Which document this is.
    pub kind: Kind,
    /// The task.
    pub task: Identity,
    /// The commit that was checked.
    pub source_sha: Oid,
    /// The commit that it was compared with.
    pub inputs_sha: Oid,
    /// The commit that the branch was created at.
    pub allocation_base: Oid,
    /// What it was judged by.
    pub contract: Digests,
    /// The commands in their order.
    pub commands: Vec<CommandRecord>,
    /// The guards.
    pub guards: Vec<GuardRecord>,
    /// Why it is not accepted; empty where nothing speaks against it.
    pub reasons: Vec<String>,
}

impl Checked {
    /// The runner result in `bytes`.
    ///
    /// # Errors
    /// What is wrong with its shape, in one line.
    pub fn parse_result(bytes: &[u8]) -> Result<Self, String> {
        let value = json::parse(bytes).map_err(|error| format!("is no strict JSON: {error}"))?;
        if !value.is_object() {
            return Err("is no JSON object".to_owned());
        }
        if let Some(kind) = value["kind"].as_str().filter(|kind| *kind != "loop-checks") {
            return Err(format!("is of the kind {}, not \"loop-checks\"", quoted(kind)));
        }
        let result: Self = serde_json::from_value(value).map_err(|error| {
            // It repeats words of the file as they are.
            let text: String = error.to_string().chars().take(200).collect();
            format!("is no runner result: {}", text.replace(|c: char| c.is_control(), " "))
        })?;
        if result.schema_version != 1 {
            return Err(format!("schema_version is {}, not 1", result.schema_version));
        }
        Ok(result)
    }
}

/// A review that counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReviewRecord {
    /// Where it is, relative to the worktree.
    pub path: String,
    /// The SHA-256 of its bytes.
    pub sha256: String,
    /// Who reviewed.
    pub engine: String,
    /// With which model.
    pub model: String,
    /// What it covers.
    pub requirements: Vec<String>,
    /// The findings in it that block acceptance.
    pub open_binding_findings: Vec<String>,
}

/// A review that did not count.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct IgnoredReview {
    /// Where it is, relative to the worktree.
    pub path: String,
    /// Why.
    pub reason: String,
}

/// The acceptance of a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptanceDocument {
    /// What was checked.
    #[serde(flatten)]
    checked: Checked,
    reviews: Vec<ReviewRecord>,
    ignored_reviews: Vec<IgnoredReview>,
    assumptions: Vec<String>,
    verdict: &'static str,
    evidence: Vec<String>,
}

impl AcceptanceDocument {
    /// The document of what was checked, with the reviews and what the executor assumed. A task is failed when it has
    /// any reason, so the verdict follows and cannot be given. `evidence` is sorted.
    #[must_use]
    pub fn new(
        checked: Checked,
        (reviews, ignored_reviews): (Vec<ReviewRecord>, Vec<IgnoredReview>),
        assumptions: Vec<String>,
        evidence: Vec<String>,
    ) -> Self {
        let verdict = if checked.reasons.is_empty() { "ACCEPTED" } else { "FAILED" };
        Self { checked, reviews, ignored_reviews, assumptions, verdict, evidence }
    }

    /// What was checked.
    #[must_use]
    pub fn checked(&self) -> &Checked {
        &self.checked
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::json::{Value, json};

    fn stream(name: &str) -> Stream {
        Stream { path: format!(".devlyn/loop/runs/1/cmd-0.{name}"), sha256: "0".repeat(64), bytes: 0 }
    }

    fn sample(outcome: Outcome) -> Checked {
        let id: Oid = "a".repeat(40).parse().unwrap();
        Checked {
            schema_version: 1,
            kind: Kind::LoopChecks,
            task: Identity::parse("inv.t1").unwrap(),
            source_sha: id,
            inputs_sha: id,
            allocation_base: id,
            contract: Digests { contract: "c".into(), expected: "e".into(), meta: "m".into() },
            commands: vec![CommandRecord {
                index: 0,
                command: Command::Cmd("true".into()),
                contract_refs: vec!["R1".into()],
                outcome,
                stdout: stream("stdout"),
                stderr: stream("stderr"),
                left_behind: Vec::new(),
                passed: true,
                reason: None,
                reused_from: None,
            }],
            guards: Vec::new(),
            reasons: Vec::new(),
        }
    }

    #[test]
    fn every_outcome_has_its_own_words_and_is_read_back() {
        for (outcome, wanted) in [
            (Outcome::Exit { exit_code: 3 }, json!({"kind": "exit", "exit_code": 3})),
            (Outcome::Signal { signal: 9 }, json!({"kind": "signal", "signal": 9})),
            (Outcome::Timeout { timeout_sec: 60 }, json!({"kind": "timeout", "timeout_sec": 60})),
            (Outcome::SpawnError { error: "no".into() }, json!({"kind": "spawn_error", "error": "no"})),
        ] {
            let checked = sample(outcome);
            let bytes = json::to_state(&checked).unwrap();
            let value = json::parse(&bytes).unwrap();
            assert_eq!(value["commands"][0]["outcome"], wanted);
            assert_eq!(value["commands"][0]["command"], json!({"cmd": "true"}));
            assert_eq!(value["commands"][0]["reason"], Value::Null);
            assert_eq!(value["commands"][0].as_object().unwrap().len(), 8);
            assert_eq!(value["kind"], "loop-checks");
            assert_eq!(Checked::parse_result(&bytes).unwrap(), checked);
        }
        assert_eq!(
            serde_json::to_value(Command::from(&CommandWords::Argv(vec!["a".into()]))).unwrap(),
            json!({"argv": ["a"]})
        );
    }

    #[test]
    fn the_verdict_follows_from_the_reasons() {
        let mut checked = sample(Outcome::Exit { exit_code: 0 });
        let document = |checked: &Checked| {
            let document = AcceptanceDocument::new(checked.clone(), (vec![], vec![]), vec!["UTC".into()], vec![]);
            serde_json::to_value(document).unwrap()
        };
        assert_eq!(document(&checked)["verdict"], "ACCEPTED");
        checked.reasons.push("failed: no".into());
        assert_eq!(document(&checked)["verdict"], "FAILED");
        assert_eq!(document(&checked).as_object().unwrap().len(), 15);
    }

    #[test]
    fn a_result_of_another_shape_is_refused_in_words() {
        let whole = serde_json::to_value(sample(Outcome::Exit { exit_code: 0 })).unwrap();
        let broken = |change: fn(&mut Value)| {
            let mut value = whole.clone();
            change(&mut value);
            Checked::parse_result(value.to_string().as_bytes()).unwrap_err()
        };
        assert!(broken(|value| value["kind"] = json!("loop")).contains("\"loop\""));
        assert!(broken(|value| value["schema_version"] = json!(2)).contains("schema_version"));
        assert!(broken(|value| value["commands"] = json!({})).contains("no runner result"));
        assert!(
            broken(|value| {
                value["commands"][0].as_object_mut().unwrap().remove("index");
            })
            .contains("index")
        );
        for bytes in [&b"{"[..], b"[]", b"{}", b"\xff"] {
            assert!(Checked::parse_result(bytes).is_err());
        }
        let why = broken(|value| value["commands"][0]["command"] = json!({"two\nlines": 1}));
        assert!(why.contains("two lines") && !why.contains('\n'), "{why}");
    }

    proptest! {
        #[test]
        fn no_bytes_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Checked::parse_result(&bytes);
        }
    }
}
