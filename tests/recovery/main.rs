//! Nothing is lost: the program is interrupted, starved and crowded from outside, at the level of its system calls and
//! signals, and must end where it would have ended undisturbed.
//!
//! `cargo test` takes a spread; `DEVLYN_SOAK=1 cargo test -- --include-ignored` takes everything.
#![expect(clippy::disallowed_methods, reason = "tests start programs, write files and read their environment")]
#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]
#![expect(clippy::print_stderr, reason = "how much was covered, and what was skipped")]

mod conflict;
mod crash;
mod crowd;
mod fault;
mod git;
mod order;
mod sandbox;
mod state;
mod trace;
mod walk;
