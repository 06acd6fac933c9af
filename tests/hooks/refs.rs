//! The guard of captures and recovery refs, where it was asked for.

use std::ffi::OsStr;

use crate::lab::{Lab, accept, put};

fn lab() -> Lab {
    let lab = Lab::plain();
    lab.devlyn(&["init", "--protect-refs"]).fine();
    lab.with_loop("inv", 2);
    lab
}

#[test]
fn a_capture_is_neither_deleted_nor_moved() {
    let lab = lab();
    let capture = "refs/devlyn/captures/inv";
    lab.git(&["update-ref", "-d", capture]).refused("Ref");
    lab.git(&["update-ref", capture, "HEAD"]).refused("Ref");
    lab.git(&["push", "-q", ".", &format!("+HEAD:{capture}")]).refused("Ref");
    if lab.git_is((2, 46)) {
        lab.git(&["symbolic-ref", capture, "refs/heads/main"]);
        assert_ne!(lab.git(&["rev-parse", capture]).fine(), lab.head());
    }
    // Nothing else is guarded.
    lab.git(&["update-ref", "refs/devlyn/else", "HEAD"]).fine();
    lab.git(&["update-ref", "-d", "refs/devlyn/else"]).fine();
    lab.commit("src/c.txt", "c\n").fine();
    lab.git(&["branch", "x"]).fine();
    lab.git(&["branch", "-q", "-D", "x"]).fine();
}

#[test]
fn maintenance_passes_and_packed_references_stay_guarded() {
    let lab = lab();
    let capture = "refs/devlyn/captures/inv";
    lab.git(&["pack-refs", "--all"]).fine();
    assert!(!lab.root.join(".git").join(capture).exists());
    lab.git(&["update-ref", "-d", capture]).refused("Ref");
    lab.git(&["gc", "-q"]).fine();
    lab.git(&["rev-parse", "--verify", capture]).fine();
    lab.git(&["update-ref", "-d", capture]).refused("Ref");
    lab.git(&["update-ref", capture, "HEAD"]).refused("Ref");
    if lab.git_is((2, 46)) {
        lab.git(&["symbolic-ref", capture, "refs/heads/main"]);
        assert_ne!(lab.git(&["rev-parse", capture]).fine(), lab.head());
    }
    lab.git(&["-c", "core.hooksPath=/dev/null", "update-ref", "-d", capture]).fine();
}

#[test]
fn a_recovery_ref_moves_where_its_receipt_says() {
    let lab = lab();
    let path = lab.receipt("inv", "t1", Some("ACCEPTED"));
    let source = lab.head();
    let name = format!("refs/devlyn/completed/{}", lab.key("inv", "t1"));
    lab.git(&["update-ref", &name, "HEAD~1"]).fine();
    lab.git(&["update-ref", &name, "HEAD"]).fine();
    lab.git(&["update-ref", &name, "HEAD~1"]).refused("Ref");
    // The terminal commit is attached before it is recorded; anything else on top of the source is none.
    lab.commit("src/c.txt", "c\n").fine();
    lab.git(&["update-ref", &name, "HEAD"]).refused("Ref");
    lab.git(&["reset", "-q", "--hard", &source]).fine();
    lab.commit("docs/specs/inv/queue.md", &accept(&lab.queue("inv"), "inv", 1)).fine();
    lab.git(&["update-ref", &name, "HEAD", &source]).fine();
    lab.git(&["update-ref", "-d", &name]).refused("Ref");
    put(&path, "{");
    assert!(!lab.git(&["update-ref", &name, "HEAD~1"]).ok);
}

#[test]
fn the_guard_is_there_only_where_it_was_asked_for() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    lab.git(&["update-ref", "-d", "refs/devlyn/captures/inv"]).fine();
    // Asked for, it looks at nothing but what is guarded.
    let lab = self::lab();
    let env: &[(&str, &OsStr)] = &[("GIT_TRACE", OsStr::new("1"))];
    let said = lab.run_with(&lab.root, "git", &["update-ref", "refs/heads/x", "HEAD"], None, env);
    assert!(!said.err.contains("rev-parse"), "{}", said.err);
}

#[test]
fn a_repository_can_be_made_with_the_hooks_in_its_template() {
    let lab = Lab::plain();
    lab.devlyn(&["init", "--protect-refs"]).fine();
    let template = lab.beside("template");
    std::fs::create_dir(&template).unwrap();
    std::fs::rename(lab.root.join(".git/hooks"), template.join("hooks")).unwrap();
    lab.git(&["init", "-q", &format!("--template={}", template.display()), "../made"]).fine();
    assert!(lab.beside("made/.git/HEAD").exists() && lab.beside("made/.git/hooks/reference-transaction").exists());
}
