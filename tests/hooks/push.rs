//! A push: judged before it leaves, and again where it arrives, while its objects are in quarantine.

use std::path::PathBuf;

use crate::lab::{Lab, PROGRAM, accept, put};

const QUEUE: &str = "docs/specs/inv/queue.md";

/// A server that has `main`, without hooks.
fn server(lab: &Lab) -> PathBuf {
    let server = lab.beside("ser ver.git");
    lab.git(&["clone", "-q", "--bare", ".", server.to_str().unwrap()]).fine();
    lab.git(&["remote", "add", "origin", server.to_str().unwrap()]).fine();
    lab.git(&["fetch", "-q", "origin"]).fine();
    server
}

/// A commit that a hook would have refused.
fn smuggle(lab: &Lab, path: &str, text: &str) -> String {
    lab.write(path, text);
    lab.git(&["add", "-f", path]).fine();
    lab.git(&["commit", "-q", "--no-verify", "-m", "bad"]).fine();
    lab.head()
}

#[test]
fn what_is_new_to_the_other_side_is_judged_before_it_leaves() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    server(&lab);
    lab.commit("src/c.txt", "c\n").fine();
    lab.git(&["push", "-q", "origin", "main"]).fine();
    let bad = smuggle(&lab, "docs/specs/inv/meta.md", "# Changed\n");
    lab.commit("src/d.txt", "d\n").fine();
    let said = lab.git(&["push", "-q", "origin", "main"]).refused("H7");
    assert!(said.contains(&format!("commit: {bad}")), "{said}");
    lab.git(&["push", "-q", "origin", "HEAD:refs/heads/other"]).refused("H7");
    lab.git(&["tag", "-a", "-m", "t", "v1"]).fine();
    lab.git(&["push", "-q", "origin", "v1"]).refused("H7");
    lab.git(&["push", "-q", "--all", "origin"]).refused("H7");
    lab.git(&["push", "-q", "origin", "main~2:refs/heads/other"]).fine();
    lab.git(&["push", "-q", "--no-verify", "origin", "main"]).fine();
    // What the other side has is not judged again, nor is a deletion.
    lab.commit("src/e.txt", "e\n").fine();
    lab.git(&["push", "-q", "origin", "main", "HEAD:refs/heads/more"]).fine();
    lab.git(&["push", "-q", "origin", ":more"]).fine();
}

#[test]
fn a_remote_without_a_name_is_told_everything() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    let url = format!("file://{}", server(&lab).display());
    lab.git(&["push", "-q", &url, "main"]).fine();
    smuggle(&lab, ".devlyn/x", "x");
    lab.git(&["push", "-q", &url, "main"]).refused("H1");
    lab.git(&["push", "-q", &url, "main:new"]).refused("H1");
}

#[test]
fn a_server_judges_what_arrives() {
    let lab = Lab::plain();
    let files = lab.package("inv", 2);
    lab.plumb(&lab.root, &files, "inputs");
    let server = server(&lab);
    lab.run(&server, PROGRAM, &["init"], None).fine();
    lab.write("src/c.txt", "c\n");
    lab.git(&["add", "."]).fine();
    lab.git(&["commit", "-qm", "c"]).fine();
    lab.git(&["push", "-q", "origin", "main"]).fine();
    let queue = lab.queue("inv");
    smuggle(&lab, QUEUE, &accept(&queue, "inv", 1));
    lab.git(&["push", "-q", "origin", "main"]).fine();
    let bad = smuggle(&lab, QUEUE, &queue);
    let said = lab.git(&["push", "-q", "origin", "main"]).refused("H3");
    assert!(said.contains(&bad) && said.contains("turned back to pending"), "{said}");
    lab.git(&["reset", "-q", "--hard", "HEAD~1"]).fine();
    smuggle(&lab, ".devlyn/x", "x");
    lab.git(&["rm", "-q", "-f", ".devlyn/x"]).fine();
    lab.git(&["commit", "-qm", "nothing happened"]).fine();
    lab.git(&["push", "-q", "origin", "main"]).refused("H1");
    lab.git(&["push", "-q", "origin", "HEAD:refs/heads/new"]).refused("H1");
    assert_eq!(lab.git_in(&server, &["for-each-ref", "--format=%(refname)", "refs/heads"]).fine(), "refs/heads/main");
    // A push that is refused leaves no object behind.
    assert!(!lab.git_in(&server, &["cat-file", "-e", &lab.head()]).ok);
    lab.git(&["push", "-q", "origin", "HEAD~2:refs/heads/new"]).fine();
    lab.git(&["push", "-q", "origin", ":refs/heads/new"]).fine();
}

#[test]
fn a_quarantined_pack_is_looked_into() {
    let lab = Lab::plain();
    let files = lab.package("inv", 2);
    lab.plumb(&lab.root, &files, "inputs");
    let server = server(&lab);
    lab.run(&server, PROGRAM, &["init"], None).fine();
    lab.git_in(&server, &["config", "receive.unpackLimit", "1"]).fine();
    lab.git_in(&server, &["repack", "-q", "-a", "-d"]).fine();
    for n in 0..30 {
        lab.write("src/c.txt", &format!("{n}\n"));
        lab.git(&["add", "."]).fine();
        lab.git(&["commit", "-qm", "c"]).fine();
    }
    lab.git(&["push", "-q", "origin", "main"]).fine();
    let queue = lab.queue("inv");
    smuggle(&lab, QUEUE, &accept(&accept(&queue, "inv", 1), "inv", 2));
    lab.git(&["push", "-q", "origin", "main"]).refused("H3");
}

#[test]
fn a_server_may_ask_for_each_reference() {
    let lab = Lab::plain();
    let server = server(&lab);
    let hook = "#!/bin/sh\nexec git-devlyn hook update \"$@\"\n";
    put(&server.join("hooks/update"), hook);
    lab.run(&server, "chmod", &["+x", "hooks/update"], None).fine();
    lab.git(&["branch", "good"]).fine();
    smuggle(&lab, ".devlyn/x", "x");
    let said = lab.git(&["push", "-q", "origin", "good", "main"]).refused("H1");
    assert!(said.contains("hook declined"), "{said}");
    lab.git_in(&server, &["rev-parse", "refs/heads/good"]).fine();
}

#[test]
fn a_server_that_borrows_its_objects_is_judged_alike() {
    let lab = Lab::plain();
    let files = lab.package("inv", 2);
    lab.plumb(&lab.root, &files, "inputs");
    let base = lab.beside("base.git");
    lab.git(&["clone", "-q", "--bare", ".", base.to_str().unwrap()]).fine();
    let server = lab.beside("server.git");
    let args = ["clone", "-q", "--bare", "--reference", base.to_str().unwrap(), base.to_str().unwrap()];
    lab.git(&[&args[..], &[server.to_str().unwrap()]].concat()).fine();
    lab.run(&server, PROGRAM, &["init"], None).fine();
    lab.git(&["remote", "add", "origin", server.to_str().unwrap()]).fine();
    let queue = lab.queue("inv");
    smuggle(&lab, QUEUE, &accept(&queue, "inv", 1));
    lab.git(&["push", "-q", "origin", "main"]).fine();
    smuggle(&lab, QUEUE, &queue);
    lab.git(&["push", "-q", "origin", "main"]).refused("H3");
}

#[test]
fn history_from_before_the_loop_is_no_fault() {
    let lab = Lab::new();
    let server = lab.beside("empty.git");
    lab.git(&["init", "-q", "--bare", server.to_str().unwrap()]).fine();
    lab.git(&["remote", "add", "origin", server.to_str().unwrap()]).fine();
    // Nothing was ignored, and the package was drafted in commits, before the loop was added.
    lab.git(&["checkout", "-q", "--orphan", "new"]).fine();
    lab.git(&["rm", "-q", "-f", ".gitignore"]).fine();
    lab.git(&["commit", "-qm", "x"]).fine();
    lab.git(&["branch", "-q", "-M", "main"]).fine();
    lab.commit("docs/specs/inv/meta.md", "# A draft\n").fine();
    lab.commit("docs/specs/inv/meta.md", "# Loop inv\n").fine();
    lab.commit(".gitignore", ".devlyn/\n").fine();
    lab.capture("inv", 1);
    lab.git(&["push", "-q", "origin", "main"]).fine();
    // What leaves the capture is one, even where it comes back.
    smuggle(&lab, "docs/specs/inv/meta.md", "# Easier\n");
    lab.git(&["push", "-q", "origin", "main"]).refused("H7");
    lab.commit("docs/specs/inv/meta.md", "# Loop inv\n").fine();
    lab.git(&["push", "-q", "origin", "main"]).refused("H7");
    lab.git(&["reset", "-q", "--hard", "HEAD~2"]).fine();
    // So is taking away the rule, and an end without it.
    smuggle(&lab, ".gitignore", "target/\n");
    lab.git(&["push", "-q", "origin", "main"]).refused("H2");
}

#[test]
fn notes_are_pushed_unseen() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    server(&lab);
    lab.git(&["notes", "--ref=devlyn", "add", "-m", "devlyn-task: inv.t1"]).fine();
    lab.git(&["push", "-q", "origin", "refs/notes/devlyn"]).fine();
}

#[test]
fn a_shallow_clone_pushes() {
    let lab = Lab::new();
    lab.with_loop("inv", 2);
    lab.commit("src/c.txt", "c\n").fine();
    let server = server(&lab);
    let clone = lab.beside("shallow");
    let url = format!("file://{}", server.display());
    lab.git(&["clone", "-q", "--depth=1", &url, clone.to_str().unwrap()]).fine();
    lab.identify(&clone);
    lab.run(&clone, PROGRAM, &["init"], None).fine();
    put(&clone.join(QUEUE), &accept(&lab.queue("inv"), "inv", 1));
    lab.git_in(&clone, &["commit", "-qam", "x"]).fine();
    lab.git_in(&clone, &["push", "-q", "origin", "main"]).fine();
    let said = lab.run(&clone, PROGRAM, &["verify", "HEAD"], None);
    assert_eq!(said.fine(), "2 commits, no violation");
}

#[test]
fn what_a_server_took_without_a_look_is_judged_when_it_becomes_history() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    let server = server(&lab);
    lab.git(&["push", "-q", "origin", "refs/devlyn/captures/inv"]).fine();
    lab.run(&server, PROGRAM, &["init"], None).fine();
    smuggle(&lab, "docs/specs/inv/meta.md", "# Changed\n");
    for aside in ["refs/notes/x", "refs/devlyn/x"] {
        lab.git(&["push", "-q", "--no-verify", "origin", &format!("HEAD:{aside}")]).fine();
        lab.git(&["push", "-q", "--no-verify", "origin", "HEAD:refs/heads/bad"]).refused("H7");
    }
}

#[test]
fn what_one_place_has_another_may_not() {
    let lab = Lab::new();
    lab.with_loop("inv", 1);
    server(&lab);
    smuggle(&lab, "docs/specs/inv/meta.md", "# Changed\n");
    lab.git(&["push", "-q", "--no-verify", "origin", "main"]).fine();
    let other = lab.beside("other.git");
    lab.git(&["clone", "-q", "--bare", "--single-branch", ".", other.to_str().unwrap()]).fine();
    lab.git_in(&other, &["update-ref", "refs/heads/main", "main~1"]).fine();
    lab.git(&["config", "remote.origin.pushurl", other.to_str().unwrap()]).fine();
    lab.git(&["push", "-q", "origin", "main"]).refused("H7");
}
