//! What was asked: the files of a package, read into values, with every fault and its place.
//!
//! Pure: it never reads a file or a repository; what it needs to know of them comes in as values.

mod id;

pub use id::{Identity, InvalidId, Key, LoopId, TaskId, hex, sha256_hex};
