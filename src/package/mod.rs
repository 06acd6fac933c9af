//! What was asked: the files of a package, read into values, with every fault and its place.
//!
//! Pure: it never reads a file or a repository; what it needs to know of them comes in as values.

mod branch;
mod contract;
mod diagnostics;
mod expected;
mod fields;
mod graph;
mod id;
mod manifest;
mod markdown;
mod meta;
mod pattern;
mod places;

pub use branch::is_branch_name;
pub use contract::Contract;
pub use diagnostics::Fault;
pub use expected::{CommandSpec, CommandWords, Expected, ForbiddenPattern, Severity};
pub use id::{Identity, InvalidId, Key, LoopId, TaskId, hex, sha256_hex};
pub use manifest::{Delivery, Manifest, ManifestTask};
pub use meta::Meta;
pub use pattern::{Pattern, PatternError};

use diagnostics::Faults;

/// What stands at a path of the repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileState {
    /// Nothing.
    Missing,
    /// A file with these bytes.
    Bytes(Vec<u8>),
    /// Something that is not read: the text says what it is ("a directory", "a FIFO", "larger than 16 MiB").
    Unreadable(String),
}

/// Where a package's files come from: a checkout, a commit, an index.
pub trait Source {
    /// What stands at `path`, relative to the repository's root.
    fn file(&self, path: &str) -> FileState;

    /// Whether `id`, 40 or 64 hex digits, is a commit of this repository.
    fn is_commit(&self, id: &str) -> bool;
}

/// A package without a fault.
#[derive(Debug, Clone)]
pub struct Package {
    /// The loop.
    pub loop_id: LoopId,
    /// `meta.md`.
    pub meta: Meta,
    /// The tasks in manifest order.
    pub tasks: Vec<TaskPackage>,
    /// Every file of the package, as [`Package::paths`] lists them.
    pub files: Vec<String>,
}

/// One task of a package.
#[derive(Debug, Clone)]
pub struct TaskPackage {
    /// The task.
    pub id: TaskId,
    /// `spec.md`.
    pub contract: Contract,
    /// `spec.expected.json`.
    pub expected: Expected,
}

impl Package {
    /// The package of `loop_id` in `source`.
    ///
    /// # Errors
    /// Every fault of every file: `meta.md`, then the tasks in manifest order, `spec.md` before
    /// `spec.expected.json`, in each file topmost first. Where the manifest is broken, the tasks whose ids can be
    /// read are judged all the same.
    pub fn parse(loop_id: &LoopId, source: &dyn Source) -> Result<Self, Vec<Fault>> {
        let is_commit = |id: &str| source.is_commit(id);
        let bytes = read(source, &loop_id.meta_file()).map_err(|fault| vec![fault])?;
        let (meta, reading, mut faults) = meta::read(loop_id, &bytes, Some(&is_commit));
        let mut tasks = Vec::new();
        for id in reading.tasks {
            tasks.extend(task(&loop_id.task(&id), source, &mut faults));
        }
        match meta {
            Some(meta) if faults.is_empty() => {
                let files = Self::paths(&meta.manifest);
                Ok(Self { loop_id: loop_id.clone(), meta, tasks, files })
            }
            _ => Err(faults),
        }
    }

    /// The files of a package, relative to the repository's root: `meta.md`, then for each task in manifest order
    /// `spec.md` and `spec.expected.json`.
    #[must_use]
    pub fn paths(manifest: &Manifest) -> Vec<String> {
        let of_task = |task: &ManifestTask| {
            let identity = manifest.loop_id.task(&task.id);
            [identity.spec_file(), identity.expected_file()]
        };
        std::iter::once(manifest.loop_id.meta_file()).chain(manifest.tasks.iter().flat_map(of_task)).collect()
    }
}

fn task(identity: &Identity, source: &dyn Source, faults: &mut Vec<Fault>) -> Option<TaskPackage> {
    let spec = read(source, &identity.spec_file());
    let (contract, obligations, mut of_contract) = match &spec {
        Ok(bytes) => contract::read(identity, bytes),
        Err(fault) => (None, contract::Obligations::default(), vec![fault.clone()]),
    };
    let (expected, uncovered, of_expected) = match read(source, &identity.expected_file()) {
        Ok(bytes) => expected::read(identity, &bytes, &obligations),
        Err(fault) => (None, Vec::new(), vec![fault]),
    };
    of_contract.extend(uncovered);
    of_contract.sort_by_key(|fault| (fault.line, fault.column));
    faults.extend(of_contract);
    faults.extend(of_expected);
    Some(TaskPackage { id: identity.task.clone(), contract: contract?, expected: expected? })
}

/// The bytes of a file of the package; the fault that it is where there are none.
fn read(source: &dyn Source, path: &str) -> Result<Vec<u8>, Fault> {
    let (message, help) = match source.file(path) {
        FileState::Bytes(bytes) => return Ok(bytes),
        FileState::Missing => ("the file is missing".to_owned(), "write it; the package is not whole without it"),
        FileState::Unreadable(what) => (format!("this {what}"), "put a regular file here"),
    };
    let mut faults = Faults::new(path.to_owned());
    faults.push(0, message, help);
    Err(faults.into_sorted(b"").remove(0))
}

#[cfg(test)]
mod tests;
