//! `git devlyn fsck` and `git devlyn recover`, driven as a person drives them.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a suite that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a suite starts programs and spoils files as a person would")]

mod common;

use common::{Does, Sandbox, Task};

#[test]
fn a_loop_is_drained_on_a_machine_of_its_own() {
    let sandbox = Sandbox::new();
    sandbox.add("a", &[Task::new("t1").reviewed(), Task::new("t2"), Task::new("t3").after("t1").after("t2")]);
    sandbox.executor_does("a.t2", Does::Badly);
    let object = sandbox.drained();
    let counts = &object["counts"];
    assert_eq!(
        (&counts["accepted"], &counts["failed"], &counts["blocked"]),
        (&1.into(), &1.into(), &1.into()),
        "{object:#}"
    );
    assert_eq!(sandbox.calls(), ["a.t1", "a.t2"]);
}
