//! What a commit may not do, tried with real Git on throw-away repositories: every way to make a commit, every rule.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "what was skipped")]

mod commit;
mod environment;
mod init;
mod lab;
mod merge;
mod push;
mod refs;
mod replay;
mod task;
mod verify;
