//! The verdict on a submission, and the document that says so.

use std::collections::BTreeSet;
use std::path::PathBuf;

use super::candidate::{Candidate, open_worktree};
use super::evidence::{self, loop_dir, new_run};
use super::judge::{Commands, failed, judge};
use super::reuse::{self, Wanted};
use super::terms::{Terms, committed_digests};
use super::{AcceptanceError, Result, reviews};
use crate::exchange::{
    AcceptanceDocument, Binding, Checked, Digests, IgnoredReview, Kind, Packet, ReviewRecord, Submission,
};
use crate::git::{Oid, Repo};
use crate::package::Identity;
use crate::store::{Receipt, Verdict, write_state};
use crate::view::Held;

/// The largest submission that is read, in bytes.
const LARGEST: u64 = 4 << 20;

/// A verdict that stands in `acceptance.json`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Derived {
    /// The document, durable.
    pub path: PathBuf,
    /// The verdict.
    pub verdict: Verdict,
    /// The commit that the result is of: the candidate, or the head of the owned branch where it failed.
    pub source: Oid,
    /// Why it failed; empty where it did not.
    pub reasons: Vec<String>,
}

/// Derives the verdict on what was submitted for the task of `packet`, and writes it down.
///
/// Deriving again starts afresh: evidence of an earlier attempt stays where it is and counts for nothing.
///
/// # Errors
/// Where something that must be known cannot be, or evidence cannot be kept: there is no verdict then.
pub fn derive(repo: &Repo, held: &Held, packet: &Packet) -> Result<Derived> {
    let work = own_worktree(repo, &held.receipt)?;
    let terms = Terms::read(&work, packet)?;
    let candidate = Candidate::new(&work, &held.receipt.branch, packet.inputs_sha, &packet.task.loop_id);
    let mut draft = Draft::new(&candidate, &held.receipt, &packet.task, packet.inputs_sha, Digests::of(packet))?;
    match submission(held, &packet.task)? {
        Err(reasons) => draft.checked.reasons = reasons,
        Ok(submission) => draft.weigh(&work, &candidate, &terms, submission)?,
    }
    draft.write(&work, &candidate)
}

/// Writes down that the task failed for `reason`, without looking at anything that was made for it. Without a packet
/// the contract is the one that `inputs` holds.
///
/// # Errors
/// Where the worktree or the branch is gone, or the document cannot be written.
pub fn fail(repo: &Repo, held: &Held, packet: Option<&Packet>, inputs: Oid, reason: String) -> Result<Derived> {
    let work = own_worktree(repo, &held.receipt)?;
    let task = Identity::parse(&held.receipt.task)
        .map_err(|error| AcceptanceError::Worktree { path: held.receipt.worktree.clone(), why: error.to_string() })?;
    let digests = match packet {
        Some(packet) => Digests::of(packet),
        None => committed_digests(&work, &task, inputs)?,
    };
    let candidate = Candidate::new(&work, &held.receipt.branch, inputs, &task.loop_id);
    let mut draft = Draft::new(&candidate, &held.receipt, &task, inputs, digests)?;
    draft.checked.reasons.push(reason);
    draft.write(&work, &candidate)
}

fn own_worktree(repo: &Repo, receipt: &Receipt) -> Result<Repo> {
    let work = open_worktree(&receipt.worktree)?;
    if work.common_dir() != repo.common_dir() {
        let why = format!("belongs to the repository {}", work.common_dir().display());
        return Err(AcceptanceError::Worktree { path: receipt.worktree.clone(), why });
    }
    Ok(work)
}

/// What was submitted, or the reasons that it gives by being no submission.
fn submission(held: &Held, task: &Identity) -> Result<std::result::Result<Submission, Vec<String>>> {
    let path = held.dir.submission();
    let bytes = evidence::read(&path, LARGEST).map_err(AcceptanceError::io(&path))?;
    Ok(match bytes.ok_or(AcceptanceError::NoSubmission(path))? {
        Ok(bytes) => Submission::parse(task, &bytes),
        Err(why) => Err(vec![format!("failed: submission {why}")]),
    })
}

/// An acceptance that is being made.
struct Draft {
    checked: Checked,
    reviews: Vec<ReviewRecord>,
    ignored: Vec<IgnoredReview>,
    assumptions: Vec<String>,
    evidence: BTreeSet<String>,
}

impl Draft {
    fn new(
        candidate: &Candidate<'_>,
        receipt: &Receipt,
        task: &Identity,
        inputs: Oid,
        contract: Digests,
    ) -> Result<Self> {
        let checked = Checked {
            schema_version: 1,
            kind: Kind::Loop,
            task: task.clone(),
            source_sha: candidate.head()?,
            inputs_sha: inputs,
            allocation_base: receipt.baseline,
            contract,
            commands: Vec::new(),
            guards: Vec::new(),
            reasons: Vec::new(),
        };
        let (reviews, ignored, assumptions) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { checked, reviews, ignored, assumptions, evidence: BTreeSet::new() })
    }

    /// Judges what was submitted.
    fn weigh(&mut self, work: &Repo, candidate: &Candidate<'_>, terms: &Terms, submission: Submission) -> Result<()> {
        self.assumptions = submission.assumptions;
        if !submission.blockers.is_empty() {
            self.checked.reasons.extend(submission.blockers.iter().map(crate::exchange::Blocker::reason));
            return Ok(());
        }
        let source = match candidate.examine(&submission.source_sha)? {
            Ok(source) => source,
            // What is checked out is not the candidate, so that no check of it would mean anything.
            Err(problems) => {
                self.checked.reasons.extend(failed(problems));
                return Ok(());
            }
        };
        let worktree = work.work_dir();
        let checked = &mut self.checked;
        let wanted = Wanted {
            task: &checked.task,
            source,
            inputs: checked.inputs_sha,
            contract: &checked.contract,
            commands: &terms.expected.commands,
        };
        let reuse = reuse::find(worktree, &submission.runner_results, &wanted);
        let commands = match reuse.serving {
            Some((path, records)) => {
                self.evidence.insert(path);
                Commands::Taken(records)
            }
            None if terms.expected.commands.is_empty() => Commands::Taken(Vec::new()),
            None => Commands::Run(new_run(worktree)?),
        };
        let judgement = judge(work, candidate, terms, (checked.inputs_sha, source), commands)?;
        let streams = judgement.commands.iter().flat_map(|record| [&record.stdout, &record.stderr]);
        self.evidence.extend(streams.map(|stream| stream.path.clone()));
        let source = source.to_string();
        let binding = Binding {
            task: &checked.task,
            source_sha: &source,
            contract_sha256: &checked.contract.contract,
            expected_sha256: &checked.contract.expected,
            requirements: &terms.contract.requirements,
        };
        let reviews = reviews::judge(worktree, &submission.reviews, &binding, &terms.contract.review_requirements);
        self.evidence.extend(reviews.paths().cloned());
        checked.commands = judgement.commands;
        checked.guards = judgement.guards;
        checked.reasons = judgement.reasons;
        checked.reasons.extend(reuse.reasons);
        checked.reasons.extend(reviews.reasons);
        (self.reviews, self.ignored) = (reviews.counted, reviews.ignored);
        Ok(())
    }

    /// Writes it down.
    fn write(mut self, work: &Repo, candidate: &Candidate<'_>) -> Result<Derived> {
        // An accepted candidate was the head when its checks had ended; a failed one may have moved the branch since.
        if !self.checked.reasons.is_empty() {
            self.checked.source_sha = candidate.head()?;
        }
        let document = AcceptanceDocument::new(
            self.checked,
            (self.reviews, self.ignored),
            self.assumptions,
            self.evidence.into_iter().collect(),
        );
        let path = loop_dir(work.work_dir())?.join("acceptance.json");
        write_state(&path, &document)?;
        let Checked { source_sha, reasons, .. } = document.checked().clone();
        let verdict = if reasons.is_empty() { Verdict::Accepted } else { Verdict::Failed };
        Ok(Derived { path, verdict, source: source_sha, reasons })
    }
}

#[cfg(test)]
mod tests {
    use super::super::run::run;
    use super::super::testing::Bench;
    use super::*;
    use crate::json::{Map, Value, json};
    use crate::store::{collect, sync_dir};

    fn derived(bench: &Bench) -> (Derived, Map<String, Value>) {
        let derived = derive(&bench.repo(), &bench.held(), bench.packet()).unwrap();
        let document = bench.object(".devlyn/loop/acceptance.json");
        assert_eq!(derived.path, bench.tree().join(".devlyn/loop/acceptance.json"));
        assert_eq!(document["source_sha"], derived.source.to_string());
        assert_eq!(document["reasons"], json!(derived.reasons));
        assert_eq!(document["verdict"], if derived.reasons.is_empty() { "ACCEPTED" } else { "FAILED" });
        assert_eq!(derived.verdict == Verdict::Accepted, derived.reasons.is_empty());
        let evidence: Vec<String> = serde_json::from_value(document["evidence"].clone()).unwrap();
        assert!(evidence.is_sorted());
        assert_eq!(collect(&bench.tree(), &evidence).unwrap().len(), evidence.len());
        (derived, document)
    }

    /// A command that leaves a trace each time it runs.
    fn counted(bench_file: &str, more: &str) -> Value {
        json!([{"cmd": format!("printf x >> {bench_file}; {more}"), "contract_refs": ["R1", "R2"]}])
    }

    fn runs(bench: &Bench) -> usize {
        std::fs::read(bench.tree().join("ignored/ran")).map_or(0, |bytes| bytes.len())
    }

    fn counting(more: &str) -> Bench {
        let commands = counted("ignored/ran", more);
        let bench = Bench::new(&json!({"verification_commands": commands}));
        bench.write(&[("ignored/here", "")]);
        bench.commit(&[("t1.txt", "done")]);
        bench
    }

    fn review(bench: &Bench, name: &str, more: &Value) -> String {
        let mut record = json!({
            "schema_version": 1, "kind": "devlyn-review", "task": "inv.t1", "engine": "e", "model": "m",
            "source_sha": bench.head(), "contract_sha256": bench.packet().contract.sha256,
            "expected_sha256": bench.packet().expected.sha256, "requirements": ["R2"], "findings": []
        });
        record.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let path = format!(".devlyn/reviews/{name}.json");
        bench.write(&[(path.as_str(), record.to_string().as_str())]);
        path
    }

    #[test]
    fn evidence_alone_makes_an_acceptance() {
        let bench = Bench::reviewed("R2", &json!({}));
        bench.commit(&[("t1.txt", "done")]);
        let old = review(&bench, "old", &json!({"source_sha": bench.inputs()}));
        let new = review(&bench, "new", &json!({}));
        bench.submit(&json!({"reviews": [old, new], "assumptions": ["UTC"], "summary": "all failed"}));
        let (derived, document) = derived(&bench);
        assert_eq!((derived.reasons.len(), derived.source), (0, bench.head()));
        let keys: Vec<&str> = document.keys().map(String::as_str).collect();
        assert_eq!(keys.len(), 15, "{keys:?}");
        assert_eq!(
            document["evidence"],
            json!([
                ".devlyn/loop/runs/1/cmd-0.stderr",
                ".devlyn/loop/runs/1/cmd-0.stdout",
                ".devlyn/reviews/new.json",
                ".devlyn/reviews/old.json"
            ])
        );
        assert_eq!((&document["kind"], &document["assumptions"]), (&json!("loop"), &json!(["UTC"])));
        assert_eq!(document["reviews"][0]["path"], ".devlyn/reviews/new.json");
        assert_eq!(document["ignored_reviews"][0]["path"], ".devlyn/reviews/old.json");
        assert_eq!(document["allocation_base"], bench.packet().allocation_base.to_string());
    }

    #[test]
    fn every_reason_is_given_in_its_order() {
        let bench = Bench::reviewed(
            "R2",
            &json!({
                "verification_commands": [{"cmd": "exit 1", "contract_refs": ["R1"]}, {"cmd": "echo x > new", "contract_refs": ["R1"]}],
                "required_files": ["missing.txt"]
            }),
        );
        bench.submit(&json!({"runner_results": [".devlyn/loop/runs/7/result.json"]}));
        let (derived, document) = derived(&bench);
        let facts =
            ["command 0 (R1)", "guard required_files \"missing.txt\"", "checks ran: new", "runs/7/result.json", "R2"];
        assert_eq!(derived.reasons.len(), facts.len(), "{:?}", derived.reasons);
        for (reason, fact) in derived.reasons.iter().zip(facts) {
            assert!(reason.starts_with("failed: ") && reason.contains(fact), "{reason}");
        }
        assert_eq!(document["commands"][1]["passed"], true);
    }

    #[test]
    fn a_blocker_decides_and_runs_nothing() {
        let bench = counting("");
        bench.submit(&json!({"source_sha": "HEAD", "assumptions": ["UTC"], "blockers": [
            {"kind": "needs-review", "detail": "EUR or 원?"}, {"kind": "failed", "detail": "two"}]}));
        let (derived, document) = derived(&bench);
        assert_eq!(derived.reasons, ["needs-review: EUR or 원?", "failed: two"]);
        assert_eq!((derived.source, runs(&bench), &document["commands"]), (bench.head(), 0, &json!([])));
        assert_eq!(document["assumptions"], json!(["UTC"]));
    }

    #[test]
    fn what_is_no_submission_fails_and_runs_nothing() {
        let bench = counting("");
        for bytes in [&b"{}"[..], b"{", b"[]", b"\xff", "[".repeat(100_000).as_bytes(), &vec![b' '; 5 << 20]] {
            bench.submit_bytes(bytes);
            let (derived, _) = derived(&bench);
            assert!(
                derived.reasons.iter().all(|reason| reason.starts_with("failed: submission ")),
                "{:?}",
                derived.reasons
            );
            assert_eq!((derived.source, runs(&bench)), (bench.head(), 0));
        }
        std::fs::remove_file(&bench.packet().submission).unwrap();
        std::os::unix::fs::symlink("/etc/passwd", &bench.packet().submission).unwrap();
        assert!(derived(&bench).0.reasons[0].contains("symbolic link"));
        std::fs::remove_file(&bench.packet().submission).unwrap();
        let error = derive(&bench.repo(), &bench.held(), bench.packet()).unwrap_err();
        assert!(matches!(error, AcceptanceError::NoSubmission(_)), "{error}");
    }

    #[test]
    fn a_candidate_that_cannot_be_checked_is_not_checked() {
        let bench = counting("");
        bench.write(&[("left over.txt", "x")]);
        bench.submit(&json!({"source_sha": bench.inputs()}));
        let (derived, document) = derived(&bench);
        assert_eq!(derived.reasons.len(), 2);
        assert!(derived.reasons[1].contains("left over.txt"), "{:?}", derived.reasons);
        assert_eq!((derived.source, runs(&bench), &document["evidence"]), (bench.head(), 0, &json!([])));
    }

    #[test]
    fn a_candidate_that_moves_fails_and_the_result_is_of_its_new_head() {
        let bench = counting("git -c user.name=x -c user.email=x@x commit -q --allow-empty -m more");
        bench.submit(&json!({}));
        let before = bench.head();
        let (derived, _) = derived(&bench);
        assert_eq!(derived.reasons.len(), 1, "{:?}", derived.reasons);
        assert!(derived.reasons[0].contains("moved while its checks ran"), "{:?}", derived.reasons);
        assert!(derived.source == bench.head() && derived.source != before);
    }

    #[test]
    fn a_clean_result_is_reused_and_no_other() {
        let bench = counting("echo ok");
        let ran = run(&bench.held().dir.packet()).unwrap();
        assert!(ran.passed);
        bench.submit(&json!({"runner_results": [ran.result]}));
        let (_, document) = derived(&bench);
        assert_eq!((runs(&bench), &document["verdict"]), (1, &json!("ACCEPTED")));
        assert_eq!(document["commands"][0]["reused_from"], ".devlyn/loop/runs/1/result.json");
        assert_eq!(document["evidence"].as_array().unwrap().len(), 3);
        let whole = bench.object(".devlyn/loop/runs/1/result.json");
        let changes: [fn(&mut Value); 9] = [
            |result| result["task"] = json!("inv.t2"),
            |result| result["contract"]["expected"] = json!("0"),
            |result| result["reasons"] = json!(["failed: x"]),
            |result| result["commands"] = json!([]),
            |result| result["commands"][0]["passed"] = json!(false),
            |result| result["commands"][0]["command"] = json!({"cmd": "true"}),
            |result| result["commands"][0]["outcome"]["exit_code"] = json!(1),
            |result| result["commands"][0]["stdout"]["sha256"] = json!("0"),
            |result| result["commands"][0]["stdout"]["path"] = json!("t1.txt"),
        ];
        for (number, change) in changes.into_iter().enumerate() {
            let mut altered = Value::from(whole.clone());
            change(&mut altered);
            bench.write(&[(".devlyn/loop/runs/1/result.json", altered.to_string().as_str())]);
            let (derived, document) = derived(&bench);
            assert_eq!((derived.reasons.len(), runs(&bench)), (0, number + 2), "{altered}");
            assert!(document["commands"][0].get("reused_from").is_none());
        }
        let elsewhere = bench.tree().join(".devlyn/result.json");
        std::fs::copy(bench.tree().join(".devlyn/loop/runs/1/result.json"), &elsewhere).unwrap();
        for bad in [elsewhere.to_str().unwrap(), ".devlyn/loop/acceptance.json", ".devlyn/loop/runs"] {
            bench.submit(&json!({"runner_results": [bad]}));
            let (derived, _) = derived(&bench);
            assert!(derived.reasons.len() == 1 && derived.reasons[0].contains(bad), "{:?}", derived.reasons);
        }
    }

    #[test]
    fn a_pure_design_needs_reviews_and_leaves_no_run() {
        let bench = Bench::reviewed("R1, R2", &json!({"verification_commands": [], "pure_design": true}));
        let record = review(&bench, "one", &json!({"requirements": ["R1", "R2"]}));
        bench.submit(&json!({"reviews": [record]}));
        assert!(derived(&bench).0.reasons.is_empty());
        assert!(!bench.tree().join(".devlyn/loop/runs").exists());
    }

    #[test]
    fn a_contract_that_is_not_the_packet_s_gives_no_verdict() {
        let bench = Bench::new(&json!({}));
        bench.submit(&json!({}));
        let mut packet = bench.packet().clone();
        packet.expected.sha256 = "0".repeat(64);
        let error = derive(&bench.repo(), &bench.held(), &packet).unwrap_err();
        assert!(error.to_string().contains("docs/specs/inv/t1/spec.expected.json"), "{error}");
        assert!(!bench.tree().join(".devlyn/loop/acceptance.json").exists());
    }

    #[test]
    fn a_failure_without_a_look_names_its_contract_with_and_without_a_packet() {
        let bench = counting("");
        bench.git(&["checkout", "-q", "--detach"]);
        let reason = "inputs-changed: docs/specs/inv/t1/spec.md".to_owned();
        let mut documents = Vec::new();
        for packet in [Some(bench.packet()), None] {
            let failed = fail(&bench.repo(), &bench.held(), packet, bench.inputs(), reason.clone()).unwrap();
            assert_eq!((failed.verdict, failed.source), (Verdict::Failed, bench.head()));
            documents.push(bench.object(".devlyn/loop/acceptance.json"));
        }
        assert_eq!(documents[0], documents[1]);
        assert_eq!((&documents[0]["reasons"], runs(&bench)), (&json!([reason]), 0));
    }

    #[test]
    fn evidence_behind_a_link_gives_no_verdict() {
        let bench = Bench::new(&json!({}));
        bench.submit(&json!({}));
        std::os::unix::fs::symlink("/tmp", bench.tree().join(".devlyn")).unwrap();
        // A link is not the folder that is ignored.
        let error = derive(&bench.repo(), &bench.held(), bench.packet()).unwrap_err();
        assert!(error.to_string().contains("symbolic link"), "{error}");
        sync_dir(&bench.tree()).unwrap();
    }
}
