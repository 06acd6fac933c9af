//! `git devlyn`: hand a package of tasks to coding agents, and believe nothing but the evidence.
//!
//! The modules stand in the order in which data flows. Arrows run downwards only: the words know nothing
//! but each other, the doors know nothing of tasks, the work applies the words through the doors, and the
//! face alone reads arguments and prints.
//!
//! The words, pure and without a clock, a disk or Git:
//! - [`json`]: strict JSON, the form that every state file has
//! - [`oid`]: the id of an object
//! - [`shell`]: command lines as a person would type them
//! - [`package`]: what was asked, and every fault in it
//! - [`queue`]: where it stands: rows, claims, the one legal transition, the order of the view
//! - [`exchange`]: what drain and executor say to each other
//!
//! The doors:
//! - [`git`]: the repository
//! - [`store`]: the durable state in the common Git directory
//! - [`os`]: the machine: processes, groups, writers, mounts
//!
//! The work:
//! - [`view`]: everything that is known, held against each other
//! - [`add`]: a package becomes a capture
//! - [`acceptance`]: evidence becomes a verdict
//! - [`task`]: one task's life, from allocation to cleanup
//! - [`notes`]: a result as a note that travels
//! - [`forge`]: the host that merges pull requests
//! - [`drain`]: the controller: reconcile, select, advance, report
//! - [`fsck`]: everything that is kept, held against everything else
//! - [`hook`]: what a commit may not do
//!
//! The face:
//! - [`cli`]: arguments, text, JSON, progress, exit status

pub mod acceptance;
pub mod add;
pub mod cli;
pub mod drain;
pub mod exchange;
pub mod forge;
pub mod fsck;
pub mod git;
pub mod hook;
pub mod json;
pub mod notes;
pub mod oid;
pub mod os;
pub mod package;
pub mod queue;
pub mod shell;
pub mod store;
pub mod task;
pub mod view;
