//! Receipts, what they bind, and what keeps it.

use std::os::unix::fs::PermissionsExt;

use serde_json::json;

use super::{Sandbox, Spoils, clean, finds, mended, worked};

#[test]
fn receipts_are_held_against_their_places() {
    let sandbox = worked();
    let receipt = |task: &str| sandbox.receipt_dir(task).join("receipt.json");
    let spoils = &mut Spoils::new(&sandbox);
    spoils.file(&receipt("b.t1"), "{\"id\": 1, \"id\": 2}");
    finds(&sandbox, "error", "receipt.json", "cannot be relied on: line 1, column 14: the key");
    spoils.restore();
    spoils.json(&receipt("b.t1"), |receipt| drop(receipt.insert("id".into(), json!("0".repeat(24)))));
    finds(&sandbox, "error", "receipt.json", "do not belong together");
    spoils.restore();
    spoils.json(&receipt("b.t1"), |receipt| drop(receipt.insert("common_gitdir".into(), json!("/elsewhere/.git"))));
    finds(&sandbox, "error", "receipt.json", "belongs to the repository /elsewhere/.git");
    spoils.restore();
    spoils.json(&receipt("b.t1"), |receipt| drop(receipt.insert("task".into(), json!("b.t2"))));
    finds(&sandbox, "error", "receipt.json", "its branch belongs to b.t1");
    spoils.restore();
    spoils.json(&receipt("b.t1"), |receipt| drop(receipt.remove("source_sha")));
    finds(&sandbox, "error", "receipt.json", "has an acceptance and no source");
    spoils.restore();
    let packet = sandbox.receipt_dir("c.t1").join("packet.json");
    spoils.json(&packet, |packet| drop(packet.insert("branch".into(), json!("devlyn/b/t1"))));
    finds(&sandbox, "error", "receipt.json", "contradicts its receipt");
    spoils.restore();

    spoils.json(&receipt("c.t1"), |receipt| drop(receipt.insert("allocation".into(), json!("allocating"))));
    let remedy = finds(&sandbox, "warning", "receipt.json", "c.t1 was never finished");
    assert!(remedy.contains("git devlyn recover c.t1"), "{remedy}");
    spoils.restore();
    let blocked = sandbox.receipt_dir("a.t3");
    std::fs::create_dir_all(blocked.join("scratch")).unwrap();
    mended(&sandbox, "warning", blocked.to_str().unwrap(), "the allocation of a.t3 ended before it had a receipt");
    spoils.dir(&blocked).file(&blocked.join("custody/log"), "mine");
    finds(&sandbox, "error", blocked.to_str().unwrap(), "there is no receipt in it");
    spoils.restore();
    let unknown = sandbox.common().join("devlyn-completion/0123456789abcdef01234567");
    std::fs::create_dir(&unknown).unwrap();
    mended(&sandbox, "warning", unknown.to_str().unwrap(), "nothing here tells of which task");
    spoils.file(&sandbox.common().join("devlyn-completion/note"), "mine");
    finds(&sandbox, "warning", "devlyn-completion/note", "is no directory");
    spoils.restore();

    spoils.gone(&sandbox.receipt_dir("b.t1").join("scratch"));
    finds(&sandbox, "warning", "scratch", "is not there");
    spoils.dir(&sandbox.receipt_dir("b.t1").join("scratch"));
    finds(&sandbox, "warning", "scratch", "is not the directory that was allocated");
    spoils.restore();
}

#[test]
fn results_are_held_against_what_keeps_them() {
    let sandbox = worked();
    let head = sandbox.git(&["rev-parse", "HEAD"]);
    let (recovery, branch) = (Sandbox::recovery_ref("b.t1"), format!("refs/heads/{}", Sandbox::branch("b.t1")));
    let receipt = sandbox.receipt_dir("b.t1").join("receipt.json");
    let spoils = &mut Spoils::new(&sandbox);

    spoils.reference(&recovery, Some(&head));
    mended(&sandbox, "error", &recovery, "the receipt of b.t1 says");
    spoils.reference(&recovery, None);
    mended(&sandbox, "error", &recovery, "is not there");
    spoils.restore();
    spoils.reference(&branch, Some(&head));
    mended(&sandbox, "warning", &branch, "the receipt of b.t1 says");
    spoils.restore();
    spoils.json(&receipt, |receipt| {
        receipt["queue"]["commit"] = json!(head);
    });
    finds(&sandbox, "error", "receipt.json", "it would publish");
    spoils.restore();

    // A terminal commit that is none: it changes more than its row, lies elsewhere, or settles another way.
    let source = sandbox.receipt("b.t1")["source_sha"].as_str().unwrap().to_owned();
    let attached = sandbox.receipt("b.t1")["publish_sha"].as_str().unwrap().to_owned();
    for (base, parent, change, what) in [
        (&attached, &source, "more.txt", "changes more.txt"),
        (&attached, &head, "", "does not lie directly on its source"),
        (&source, &source, "", "no row changed"),
    ] {
        let blob = sandbox.git(&["hash-object", "-w", "README.md"]);
        let add = if change.is_empty() {
            ":".to_owned()
        } else {
            format!("git update-index --add --cacheinfo 100644,{blob},{change}")
        };
        let script = format!(
            "export GIT_INDEX_FILE=../index; rm -f ../index; git read-tree {base} && {add} && \
             git commit-tree -m x -p {parent} $(git write-tree)"
        );
        let commit = sandbox.run("sh", &sandbox.repo, &["-c", &script]).ok().line();
        spoils.json(&receipt, |receipt| {
            receipt.insert("publish_sha".into(), json!(commit));
            receipt["queue"]["commit"] = json!(commit);
        });
        spoils.reference(&recovery, Some(&commit)).reference(&branch, Some(&commit));
        finds(&sandbox, "error", &recovery, what);
        spoils.restore();
    }

    let active = format!("refs/heads/{}", Sandbox::branch("c.t1"));
    spoils.reference(&active, None);
    finds(&sandbox, "error", &active, "is gone, and c.t1 has no result yet");
    spoils.restore();
    let other = sandbox.git(&["commit-tree", "-m", "x", "HEAD^{tree}"]);
    spoils.reference(&active, Some(&other));
    finds(&sandbox, "error", &active, "does not descend");
    spoils.restore();
    let early = Sandbox::recovery_ref("c.t1");
    sandbox.git(&["update-ref", &early, &head]);
    mended(&sandbox, "error", &early, "no result of c.t1 is bound");
}

#[test]
fn evidence_and_notes_are_held_against_receipts() {
    let sandbox = worked();
    let dir = sandbox.receipt_dir("a.t1");
    let custody = dir.join("custody");
    let evidence = custody.join(".devlyn/loop/acceptance.json");
    let review = custody.join(".devlyn/reviews/one.json");
    let spoils = &mut Spoils::new(&sandbox);
    spoils.file(&review, "another");
    finds(&sandbox, "error", "custody", "is not what was bound");
    spoils.restore();
    spoils.gone(&review);
    finds(&sandbox, "error", "custody", "No such file");
    spoils.restore();
    spoils.gone(&custody);
    finds(&sandbox, "error", "custody", "No such file");
    spoils.restore();
    spoils.file(&custody.join("more"), "more");
    finds(&sandbox, "error", "custody", "\"more\", which was never bound");
    spoils.restore();
    let mode = std::fs::metadata(&evidence).unwrap().permissions();
    std::fs::set_permissions(&evidence, std::fs::Permissions::from_mode(0o755)).unwrap();
    finds(&sandbox, "error", "custody", "another mode");
    std::fs::set_permissions(&evidence, mode).unwrap();
    spoils.gone(&dir.join("manifest.json"));
    finds(&sandbox, "error", "custody", "is missing");
    spoils.restore();
    spoils.json(&dir.join("manifest.json"), |manifest| {
        let first = manifest.keys().next().unwrap().clone();
        manifest.remove(&first);
    });
    finds(&sandbox, "error", "custody", "lists other evidence");
    spoils.restore();
    spoils.json(&dir.join("receipt.json"), |receipt| drop(receipt.insert("acceptance_digest".into(), json!("0"))));
    finds(&sandbox, "error", "custody", "does not hold the acceptance that was bound");
    spoils.restore();
    spoils.json(&dir.join("receipt.json"), |receipt| receipt["acceptance"]["assumptions"] = json!(["other"]));
    finds(&sandbox, "error", "custody", "says something else than the acceptance");
    spoils.restore();

    spoils.reference("refs/notes/devlyn", None);
    let remedy = finds(&sandbox, "warning", "refs/notes/devlyn", "has no note on a.");
    assert!(remedy.contains("fsck --rebuild-notes"), "{remedy}");
    let object = sandbox.devlyn(&["fsck", "--rebuild-notes", "--json"]).ok().json();
    assert_eq!((&object["status"], &object["notes"]["results"]), (&json!("CLEAN"), &json!(3)), "{object:#}");
    clean(&sandbox);
    let source = sandbox.receipt("b.t1")["source_sha"].as_str().unwrap().to_owned();
    sandbox.git(&["notes", "--ref=devlyn", "add", "-f", "-m", "devlyn-task: b.t1\ndevlyn-result: failed", &source]);
    mended(&sandbox, "warning", "refs/notes/devlyn", "has another note than its receipt for b.t1");
}
