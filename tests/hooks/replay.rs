//! Commits that are made again: rebase, cherry-pick, revert, am, and what stash makes.

use crate::lab::{Lab, accept};

const QUEUE: &str = "docs/specs/inv/queue.md";

/// A branch `side` with a product commit and a settled row, from before the last commit of `main`.
fn lab() -> Lab {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    lab.git(&["checkout", "-q", "-b", "side"]).fine();
    lab.commit("src/side.txt", "side\n").fine();
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 1)).fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.commit("src/main.txt", "main\n").fine();
    lab
}

/// A commit on `bad` that a hook would have refused.
fn smuggle(lab: &Lab) {
    lab.git(&["checkout", "-q", "-b", "bad"]).fine();
    lab.write("docs/specs/inv/t1/spec.md", "# Changed\n");
    lab.git(&["commit", "-qam", "bad", "--no-verify"]).fine();
    lab.git(&["checkout", "-q", "main"]).fine();
}

#[test]
fn legal_commits_are_rebased_and_picked() {
    let lab = lab();
    lab.git(&["rebase", "-q", "main", "side"]).fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.git(&["cherry-pick", "side~1", "side"]).fine();
    assert!(lab.queue("inv").contains("[x] inv.t1"));
    lab.git(&["revert", "--no-edit", "HEAD~1"]).fine();
}

#[test]
fn a_terminal_commit_is_not_reverted() {
    let lab = lab();
    lab.git(&["merge", "-q", "side"]).fine();
    let said = lab.git(&["revert", "--no-edit", "side"]).refused("H3");
    assert!(said.contains("inv.t1") && said.contains("a result is not taken back"), "{said}");
    assert!(said.contains("revert the commits of the product instead"), "{said}");
    lab.git(&["revert", "--abort"]);
    lab.git(&["reset", "-q", "--hard"]).fine();
    lab.git(&["revert", "--no-commit", "side"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H3");
    lab.git(&["revert", "--continue"]).refused("H3");
    lab.git(&["commit", "-q", "--no-verify", "-m", "x"]).fine();
    assert_eq!(lab.devlyn(&["verify", "HEAD^..HEAD"]).code, Some(1));
}

#[test]
fn an_illegal_commit_is_neither_picked_nor_rebased() {
    let lab = lab();
    smuggle(&lab);
    lab.git(&["cherry-pick", "bad"]).refused("H7");
    lab.git(&["cherry-pick", "--abort"]);
    lab.git(&["reset", "-q", "--hard"]).fine();
    lab.git(&["checkout", "-q", "side"]).fine();
    lab.git(&["cherry-pick", "-n", "bad"]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    lab.git(&["reset", "-q", "--hard"]).fine();
    lab.git(&["rebase", "-q", "side", "bad"]).refused("H7");
    lab.git(&["rebase", "--abort"]).fine();
    lab.git(&["rebase", "-q", "--apply", "side", "bad"]).refused("H7");
    lab.git(&["rebase", "--abort"]).fine();
    // Whoever wants it nevertheless can say so.
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.git(&["-c", "core.hooksPath=/dev/null", "cherry-pick", "bad"]).fine();
}

#[test]
fn a_rebase_that_puts_commits_together_is_judged() {
    let lab = lab();
    lab.git(&["checkout", "-q", "side"]).fine();
    lab.write("src/side.txt", "more\n");
    lab.git(&["commit", "-qa", "--fixup=HEAD"]).fine();
    lab.git(&["-c", "sequence.editor=true", "rebase", "-q", "-i", "--autosquash", "HEAD~2"]).refused("H4");
    lab.git(&["rebase", "--abort"]).fine();
    // A squash asks for its message, and so Git makes it with a `git commit --no-verify` of its own.
    lab.git(&["-c", "sequence.editor=sed -i -e s/^fixup/squash/", "rebase", "-q", "-i", "--autosquash", "HEAD~2"])
        .refused("H4");
}

#[test]
fn a_message_that_is_asked_for_takes_no_judgement_away() {
    let lab = lab();
    smuggle(&lab);
    let asking =
        |args: &[&str]| lab.git(&[&["-c", "core.editor=true", "-c", "merge.conflictStyle=merge"], args].concat());
    asking(&["cherry-pick", "-e", "bad"]).refused("H7");
    lab.git(&["cherry-pick", "--abort"]);
    lab.git(&["reset", "-q", "--hard"]).fine();
    // A conflict that is concluded.
    lab.git(&["checkout", "-q", "bad"]).fine();
    lab.write("src/main.txt", "bad\n");
    lab.git(&["commit", "-qa", "--amend", "--no-verify", "--no-edit"]).fine();
    lab.git(&["checkout", "-q", "-b", "other", "main"]).fine();
    lab.commit("src/main.txt", "other\n").fine();
    assert!(!lab.git(&["rebase", "-q", "other", "bad"]).ok);
    lab.write("src/main.txt", "both\n");
    lab.git(&["add", "src/main.txt"]).fine();
    asking(&["rebase", "--continue"]).refused("H7");
    lab.git(&["rebase", "--abort"]).fine();
    lab.git(&["checkout", "-q", "main"]).fine();
    lab.git(&["merge", "-q", "side"]).fine();
    asking(&["revert", "--edit", "side"]).refused("H3");
    lab.git(&["revert", "--abort"]);
    lab.git(&["reset", "-q", "--hard"]).fine();
    asking(&["revert", "--edit", "side~1"]).fine();
    asking(&["merge", "-q", "--edit", "--no-verify", "bad~1"]).fine();
}

#[test]
fn a_date_in_seconds_takes_no_judgement_away() {
    let lab = lab();
    smuggle(&lab);
    let date: &[(&str, &std::ffi::OsStr)] = &[("GIT_AUTHOR_DATE", "@1700000000 +0000".as_ref())];
    lab.run_with(&lab.root, "git", &["cherry-pick", "bad"], None, date).refused("H7");
    lab.git(&["cherry-pick", "--abort"]).fine();
    lab.run_with(&lab.root, "git", &["merge", "-q", "--no-edit", "side"], None, date).fine();
}

#[test]
fn a_mailed_patch_is_judged() {
    let lab = lab();
    smuggle(&lab);
    let patch = |of: &str| {
        let path = lab.beside(of);
        let text = lab.git(&["format-patch", "-1", "--stdout", of]).out;
        crate::lab::put(&path, &text);
        path.to_str().unwrap().to_owned()
    };
    lab.git(&["am", "-q", &patch("bad")]).refused("H7");
    lab.git(&["am", "--abort"]).fine();
    lab.git(&["am", "-q", &patch("side")]).fine();
    assert!(lab.queue("inv").contains("[x] inv.t1"));
    if lab.git_is((2, 46)) {
        lab.git(&["am", "-q", "--no-verify", &patch("bad")]).fine();
    }
}

#[test]
fn a_stash_is_nobodys_commit() {
    let lab = lab();
    lab.write(QUEUE, "# broken\n");
    lab.write("src/a.txt", "changed\n");
    lab.write(".devlyn/x", "x");
    lab.git(&["stash", "-q", "--include-untracked"]).fine();
    lab.git(&["stash", "pop", "-q"]).fine();
    assert_eq!(lab.read(QUEUE), "# broken\n");
    lab.git(&["commit", "-qam", "x"]).refused("H3");
}

#[test]
fn no_verify_goes_on_while_something_is_picked() {
    let lab = lab();
    smuggle(&lab);
    lab.git(&["cherry-pick", "-n", "bad"]).fine();
    lab.git(&["commit", "-q", "--no-verify", "-m", "x"]).fine();
    lab.git(&["reset", "-q", "--hard", "HEAD~1"]).fine();
    lab.git(&["checkout", "-q", "-b", "conflict"]).fine();
    lab.write("docs/specs/inv/t1/spec.md", "# Changed otherwise\n");
    lab.git(&["commit", "-qa", "--no-verify", "-m", "x"]).fine();
    assert!(!lab.git(&["cherry-pick", "bad"]).ok);
    lab.write("docs/specs/inv/t1/spec.md", "# Both\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "x"]).refused("H7");
    lab.git(&["commit", "-q", "--no-verify", "-m", "x"]).fine();
}
