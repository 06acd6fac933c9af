//! Merges: judged against all parents, before they are made and when they are concluded by hand.

use crate::lab::{Lab, accept, fail};

const QUEUE: &str = "docs/specs/inv/queue.md";
const NOBODY: &str = "0123456789abcdef01234567";

/// Two branches from one loop: on `main` the row of task 1 is settled, on `side` the row of task `n`.
fn parted(n: usize) -> Lab {
    let lab = Lab::new();
    lab.with_loop("inv", 3);
    lab.git(&["checkout", "-q", "-b", "side"]).fine();
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", n)).fine();
    lab.commit("src/side.txt", "side\n").fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 1)).fine();
    lab.commit("src/main.txt", "main\n").fine();
    lab
}

/// Begins a merge that is not concluded, and puts `text` into the queue file.
fn half(lab: &Lab, text: &str) {
    lab.git(&["merge", "-q", "--no-commit", "--no-ff", "side"]);
    lab.write(QUEUE, text);
    lab.git(&["add", "."]).fine();
}

#[test]
fn rows_settled_on_both_sides_come_together() {
    let lab = parted(2);
    lab.git(&["merge", "-q", "side"]).fine();
    assert!(lab.queue("inv").contains("[x] inv.t1") && lab.queue("inv").contains("[x] inv.t2"));
    // Neither a fast-forward nor a merge of what is merged makes a commit.
    lab.git(&["checkout", "-q", "side"]).fine();
    lab.git(&["merge", "-q", "main"]).fine();
}

#[test]
fn a_loop_comes_in_by_a_merge() {
    let lab = Lab::new();
    lab.git(&["checkout", "-q", "-b", "side"]).fine();
    lab.with_loop("inv", 2);
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 1)).fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.commit("src/c.txt", "c\n").fine();
    lab.git(&["merge", "-q", "--no-ff", "side"]).fine();
}

#[test]
fn a_merge_neither_settles_nor_unsettles() {
    let lab = parted(2);
    let base = crate::lab::rows("inv", 3);
    let (one, two) = (accept(&base, "inv", 1), accept(&base, "inv", 2));
    let both = accept(&one, "inv", 2);
    let texts = [
        (one.clone(), "inv.t2"),
        (two, "inv.t1"),
        (accept(&both, "inv", 3), "inv.t3"),
        (both.replace("Task 3", "Task three"), "inv.t3"),
        (fail(&one, "inv", 2, NOBODY), "inv.t2"),
        (format!("{both}\n"), "lines"),
        (both.replacen("- [x] inv.t1 [Task 1](docs/specs/inv/t1/spec.md)\n\n", "", 1), "lines"),
    ];
    for (text, named) in texts {
        half(&lab, &text);
        let said = lab.git(&["commit", "-qm", "x"]).refused("H3");
        assert!(said.contains(named), "{named}:\n{said}");
        lab.git(&["merge", "--abort"]).fine();
    }
    half(&lab, &both);
    lab.git(&["commit", "-qm", "x"]).fine();
}

#[test]
fn a_side_that_was_dropped_is_noticed_before_the_merge_is_made() {
    let lab = parted(2);
    lab.git(&["merge", "-q", "-s", "ours", "side"]).refused("H3");
    lab.git(&["merge", "--abort"]);
    lab.git(&["reset", "-q", "--hard"]).fine();
    lab.git(&["merge", "-q", "--no-verify", "-s", "ours", "side"]).fine();
    let said = lab.devlyn(&["verify", "HEAD^..HEAD"]);
    assert!(said.out.contains(&format!("{} H3", lab.head())), "{}", said.out);
}

#[test]
fn a_row_that_two_sides_settled_in_two_ways_is_either() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    let base = lab.queue("inv");
    lab.git(&["checkout", "-q", "-b", "side"]).fine();
    lab.commit(QUEUE, &fail(&base, "inv", 1, NOBODY)).fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.commit(QUEUE, &accept(&base, "inv", 1)).fine();
    half(&lab, &base);
    lab.git(&["commit", "-qm", "x"]).refused("H3");
    lab.write(QUEUE, &accept(&base, "inv", 1));
    lab.git(&["commit", "-qam", "x"]).fine();
}

#[test]
fn a_package_after_a_merge_is_that_of_a_parent() {
    let lab = parted(2);
    let both = accept(&accept(&crate::lab::rows("inv", 3), "inv", 1), "inv", 2);
    half(&lab, &both);
    lab.write("docs/specs/inv/meta.md", "# Changed\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    lab.git(&["rm", "-q", "-f", "docs/specs/inv/meta.md"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    lab.git(&["merge", "--abort"]).fine();
    // A side that does not know the loop may prevail while nothing was done in it.
    lab.git(&["checkout", "-q", "-b", "old", "main~3"]).fine();
    lab.commit("src/old.txt", "old\n").fine();
    lab.with_loop("fresh", 1);
    lab.git(&["checkout", "-q", "-b", "older", "main~3"]).fine();
    lab.commit("src/older.txt", "older\n").fine();
    lab.git(&["merge", "-q", "-s", "ours", "old"]).fine();
}

#[test]
fn a_conflict_is_judged_when_it_is_concluded() {
    let lab = parted(1);
    lab.git(&["checkout", "-q", "side"]).fine();
    lab.commit("src/main.txt", "other\n").fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    assert!(!lab.git(&["merge", "side"]).ok);
    lab.write("src/main.txt", "both\n");
    lab.write("docs/specs/inv/t1/spec.md", "# Changed\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["merge", "--continue"]).refused("H7");
    lab.git(&["checkout", "HEAD", "docs"]).fine();
    lab.git(&["merge", "--continue"]).fine();
}

#[test]
fn an_octopus_and_a_squash_are_judged() {
    let lab = parted(2);
    lab.git(&["checkout", "-q", "-b", "third", "main"]).fine();
    lab.commit("src/third.txt", "third\n").fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.git(&["merge", "-q", "side", "third"]).fine();
    // A squash is one commit that does many things.
    let lab = parted(2);
    lab.git(&["merge", "-q", "--squash", "side"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H4");
}

#[test]
fn a_pull_is_a_merge() {
    let lab = parted(2);
    let clone = lab.beside("clone");
    lab.git(&["clone", "-q", ".", clone.to_str().unwrap()]).fine();
    lab.identify(&clone);
    lab.run(&clone, crate::lab::PROGRAM, &["init"], None).fine();
    lab.git_in(&clone, &["pull", "-q", "--no-rebase", "origin", "side"]).fine();
    lab.git_in(&clone, &["reset", "-q", "--hard", "HEAD^"]).fine();
    lab.git_in(&clone, &["pull", "-q", "--no-rebase", "-s", "ours", "origin", "side"]).refused("H3");
}
