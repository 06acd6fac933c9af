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

/// Whether something failed because of this machine's state, which says nothing of what was asked for.
#[must_use]
pub fn of_the_machine(error: &std::io::Error) -> bool {
    use rustix::io::Errno;
    let errors =
        [Errno::AGAIN, Errno::NOMEM, Errno::MFILE, Errno::NFILE, Errno::IO, Errno::NOSPC, Errno::DQUOT, Errno::INTR];
    error.raw_os_error().is_some_and(|code| errors.contains(&Errno::from_raw_os_error(code)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_machine_lacks_is_no_outcome() {
        use rustix::io::Errno;
        for (error, machine) in [
            (Errno::AGAIN, true),
            (Errno::MFILE, true),
            (Errno::IO, true),
            (Errno::NOENT, false),
            (Errno::ACCESS, false),
        ] {
            assert_eq!(of_the_machine(&error.into()), machine, "{error}");
        }
    }
}
