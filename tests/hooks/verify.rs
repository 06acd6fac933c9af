//! `git devlyn verify`: the rules over a range, in text and JSON.

use serde_json::Value;

use crate::lab::{Lab, PROGRAM, accept};

const QUEUE: &str = "docs/specs/inv/queue.md";

#[test]
fn every_commit_of_a_range_is_judged() {
    let lab = Lab::plain();
    lab.with_loop("inv", 2);
    let base = lab.head();
    lab.commit("src/c.txt", "c\n").fine();
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 1)).fine();
    let range = format!("{base}..HEAD");
    assert_eq!(lab.devlyn(&["verify", &range]).fine(), "2 commits, no violation");
    lab.write("src/c.txt", "cc\n");
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 2)).fine();
    lab.git(&["commit", "-qam", "rest"]).fine();
    lab.commit("docs/specs/inv/t1/spec.md", "# Changed\n").fine();
    let h7 = lab.head();
    lab.commit(QUEUE, &crate::lab::rows("inv", 2)).fine();
    let h3 = lab.head();
    let said = lab.devlyn(&["verify", &range]);
    assert_eq!(said.code, Some(1));
    let lines: Vec<&str> = said.out.lines().collect();
    assert_eq!(lines.len(), 3, "{}", said.out);
    assert!(lines[0].starts_with(&format!("{h7} H7 docs/specs/inv/t1/spec.md: ")), "{}", lines[0]);
    assert!(lines[1].starts_with(&format!("{h3} H3 docs/specs/inv/queue.md (inv.t1): ")), "{}", lines[1]);
    assert_eq!(lines[2], "6 commits, 2 violations");

    let said = lab.devlyn(&["verify", &range, "--json"]);
    assert_eq!((said.code, said.out.lines().count()), (Some(1), 1));
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((object["status"].as_str(), object["commits"].as_u64()), (Some("BLOCKED"), Some(6)));
    assert_eq!(object["violations"][1]["rule"], "H3");
    assert_eq!(object["violations"][1]["commit"], h3.as_str());
    assert_eq!(object["violations"][1]["file"], QUEUE);
    assert_eq!(object["violations"][1]["row"], "inv.t1");
    assert!(object["reason"].as_str().unwrap().contains("H7"));
    assert!(object["violations"][1]["what"].is_string() && object["violations"][1]["remedy"].is_string());
}

#[test]
fn a_clone_without_captures_finds_what_needs_none() {
    let lab = Lab::plain();
    lab.with_loop("inv", 2);
    lab.commit("src/c.txt", "c\n").fine();
    lab.write("src/c.txt", "cc\n");
    lab.git(&["add", "."]).fine();
    lab.commit(QUEUE, &accept(&lab.queue("inv"), "inv", 1)).fine();
    let clone = lab.beside("ci");
    lab.git(&["clone", "-q", ".", clone.to_str().unwrap()]).fine();
    let said = lab.run(&clone, PROGRAM, &["verify", "HEAD~2..HEAD"], None);
    assert!(said.code == Some(1) && said.out.contains(" H4 "), "{}", said.out);
    // In a bare one as well, and from a detached head.
    let bare = lab.beside("ci.git");
    lab.git(&["clone", "-q", "--bare", ".", bare.to_str().unwrap()]).fine();
    assert_eq!(lab.run(&bare, PROGRAM, &["verify", "main~2..main"], None).code, Some(1));
    lab.git_in(&clone, &["checkout", "-q", "--detach", "HEAD~1"]).fine();
    lab.run(&clone, PROGRAM, &["verify", "HEAD"], None).fine();
}

#[test]
fn what_is_no_range_is_said() {
    let lab = Lab::plain();
    for range in ["nothing..HEAD", "", "HEAD:src", "src/a.txt"] {
        let said = lab.devlyn(&["verify", range]);
        assert!(said.code == Some(1) && said.err.contains("no revision range"), "{range}: {}{}", said.out, said.err);
    }
    assert_eq!(lab.devlyn(&["verify", "--all"]).code, Some(2));
    assert_eq!(lab.devlyn(&["verify", "--", "--all"]).code, Some(1));
    let said = lab.devlyn(&["verify", "--json", "nothing"]);
    let object: Value = serde_json::from_str(&said.out).unwrap();
    assert_eq!((said.code, object["status"].as_str()), (Some(1), Some("BLOCKED")));
    assert_eq!(lab.devlyn(&["verify", "HEAD..HEAD"]).fine(), "0 commits, no violation");
    assert_eq!(lab.devlyn(&["verify", "HEAD"]).fine(), "1 commit, no violation");
}
