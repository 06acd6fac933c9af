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
    let bench = counting(
        "git -c user.name=x -c user.email=x@x -c commit.gpgsign=false -c core.hooksPath=/nonexistent commit -q --allow-empty -m more",
    );
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
