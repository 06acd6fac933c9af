//! The door to the machine: other people's programs, who still writes, what is mounted, emptying what is ours.
//!
//! It knows processes, directories and signals, and never what a task is for. Nothing here speaks to Git, and
//! nothing here prints.
//!
//! - [`disk`]: flush what must survive a power cut
//! - [`process`]: run a declared check or an executor, and leave none of its descendants behind
//! - [`writers`]: who may still write into a tree
//! - [`locks`]: lock files that nobody holds any more
//! - [`mounts`]: what is mounted below a tree, and under which other paths a tree can be reached
//! - [`tree`]: empty a directory that is ours by identity, never through a link

pub mod disk;
pub mod locks;
pub mod mounts;
pub mod process;
mod table;
pub mod tree;
pub mod writers;
