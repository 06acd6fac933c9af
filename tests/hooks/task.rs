//! The branch of a task: what an honest executor and the drain do passes, what a dishonest one tries does not.

use crate::lab::{Lab, accept, put, row};

const QUEUE: &str = "docs/specs/inv/queue.md";

#[test]
fn an_honest_executor_commits_the_product() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    let tree = lab.task_worktree("inv", "t1");
    put(&tree.join("src/new.txt"), "new\n");
    lab.git_in(&tree, &["add", "."]).fine();
    lab.git_in(&tree, &["commit", "-qm", "do it"]).fine();
    put(&tree.join("src/new.txt"), "newer\n");
    lab.git_in(&tree, &["commit", "-qa", "--amend", "-m", "do it"]).fine();
    put(&tree.join("docs/specs/other.md"), "documents of another kind\n");
    put(&tree.join("docs/specs/else/notes.md"), "notes\n");
    lab.git_in(&tree, &["add", "."]).fine();
    lab.git_in(&tree, &["commit", "-qm", "more"]).fine();
}

#[test]
fn a_dishonest_executor_is_stopped() {
    let lab = Lab::new();
    lab.write("docs/specs/queue.md", "- [ ] an intent\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "plan"]).fine();
    lab.with_loop("inv", 2);
    let tree = lab.task_worktree("inv", "t1");
    let attempts = [
        ("docs/specs/inv/t1/spec.md", "# Easier\n", "H8"),
        ("docs/specs/inv/t1/spec.expected.json", "{\"a\": 1}\n", "H7"),
        (QUEUE, &accept(&lab.queue("inv"), "inv", 1), "H8"),
        (QUEUE, &accept(&lab.queue("inv"), "inv", 1), "H5"),
        ("docs/specs/queue.md", "- [x] an intent\n", "H8"),
        ("docs/specs/inv/notes.md", "done!\n", "H8"),
        (".devlyn/loop/acceptance.json", "{}", "H1"),
    ];
    for (path, text, rule) in attempts {
        put(&tree.join(path), text);
        lab.git_in(&tree, &["add", "-f", path]).fine();
        let said = lab.git_in(&tree, &["commit", "-qm", "x"]).refused(rule);
        assert!(said.contains(path), "{said}");
        lab.git_in(&tree, &["reset", "-q", "--hard"]).fine();
    }
    // With --no-verify it is the acceptance that stops it, and `verify` that shows it.
    put(&tree.join(QUEUE), &accept(&lab.queue("inv"), "inv", 1));
    lab.git_in(&tree, &["commit", "-qa", "--no-verify", "-m", "x"]).fine();
    let said = lab.devlyn(&["verify", "main..devlyn/inv/t1"]);
    assert!(said.out.contains("H5") && said.out.contains("H8"), "{}", said.out);
}

#[test]
fn a_branch_of_that_name_without_a_receipt_is_any_branch() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.git(&["checkout", "-q", "-b", "devlyn/inv/t1"]).fine();
    lab.commit("docs/specs/inv/notes.md", "notes\n").fine();
    let receipt = lab.receipt("inv", "t1", None);
    lab.commit("docs/specs/inv/more.md", "notes\n").refused("H8");
    let text = std::fs::read_to_string(&receipt).unwrap().replacen('{', "{\"status\": \"COMPLETE\",", 1);
    put(&receipt, &text);
    lab.git(&["commit", "-qm", "x"]).fine();
}

#[test]
fn a_task_branch_that_is_rebased_is_still_the_tasks() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    let tree = lab.task_worktree("inv", "t1");
    put(&tree.join("docs/specs/inv/notes.md"), "x\n");
    lab.git_in(&tree, &["add", "."]).fine();
    lab.git_in(&tree, &["commit", "-qm", "x", "--no-verify"]).fine();
    lab.commit("src/main.txt", "main\n").fine();
    lab.git_in(&tree, &["rebase", "-q", "main"]).refused("H8");
}

#[test]
fn a_task_may_merge_what_happened_meanwhile() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    let tree = lab.task_worktree("inv", "t2");
    put(&tree.join("src/new.txt"), "new\n");
    lab.git_in(&tree, &["add", "."]).fine();
    lab.git_in(&tree, &["commit", "-qm", "do it"]).fine();
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 1)).fine();
    lab.commit("docs/specs/queue.md", "- [ ] an intent\n").fine();
    lab.git_in(&tree, &["merge", "-q", "main"]).fine();
    assert!(!std::fs::read_to_string(tree.join(QUEUE)).unwrap().contains(&row("inv", 1)));
}

#[test]
fn what_the_drain_commits_passes_everywhere() {
    let lab = Lab::new();
    let server = lab.beside("server.git");
    lab.git(&["clone", "-q", "--bare", ".", server.to_str().unwrap()]).fine();
    lab.run(&server, crate::lab::PROGRAM, &["init"], None).fine();
    lab.git(&["remote", "add", "origin", server.to_str().unwrap()]).fine();
    lab.git(&["push", "-q", "origin", "main"]).fine();
    // The inputs, the candidate and the terminal commit, on the task's branch.
    let files = lab.capture("inv", 1);
    let tree = lab.task_worktree("inv", "t1");
    lab.plumb(&tree, &files, "devlyn loop: inputs");
    put(&tree.join("src/new.txt"), "new\n");
    lab.git_in(&tree, &["add", "."]).fine();
    lab.git_in(&tree, &["commit", "-qm", "do it"]).fine();
    let receipt = lab.receipt("inv", "t1", Some("ACCEPTED"));
    let queue = accept(&crate::lab::rows("inv", 1), "inv", 1);
    lab.plumb(&tree, &[(QUEUE.to_owned(), queue)], "devlyn loop: accept inv.t1");
    lab.git_in(&tree, &["push", "-q", "origin", "devlyn/inv/t1"]).fine();
    assert_eq!(lab.devlyn(&["verify", "main..devlyn/inv/t1"]).fine(), "3 commits, no violation");
    lab.git(&["merge", "-q", "--ff", "devlyn/inv/t1"]).fine();
    lab.git(&["push", "-q", "origin", "main"]).fine();
    lab.git(&["push", "-q", "origin", "refs/devlyn/captures/inv"]).fine();
    // What the receipt does not say is found in the history too.
    let text = std::fs::read_to_string(&receipt).unwrap().replace("ACCEPTED", "FAILED");
    put(&receipt, &text);
    let said = lab.devlyn(&["verify", "main~3..main"]);
    assert!(said.out.contains("H5") && said.code == Some(1), "{}", said.out);
}
