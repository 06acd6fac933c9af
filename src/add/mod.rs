//! A package becomes a capture: validated, committed without a parent under its own ref, put on record, and its copies
//! taken out of the checkout. Never touches the index, `HEAD`, a branch or a tracked file.

mod capture;
mod cleanup;
mod place;

use std::path::Path;

use serde::Serialize;

pub use cleanup::finish_cleanup;
pub use place::Place;

use crate::git::{GitError, Repo};
use crate::package::{Fault, Package};
use crate::store::{Layout, Lock, StoreError};
use crate::view::{CheckoutSource, ViewError};

/// Why a package was not checked or not added. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum AddError {
    /// The package has faults, in the order of its files.
    #[error("{}", .0.first().map_or_else(|| "the package has faults".to_owned(), ToString::to_string))]
    Faults(Vec<Fault>),
    /// Something else speaks against it.
    #[error("{0}")]
    Refused(String),
    /// The queue is not known.
    #[error(transparent)]
    View(#[from] ViewError),
    /// A state file failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What `check` found.
#[derive(Debug, Serialize)]
pub struct Checked {
    /// The loop.
    pub loop_id: String,
    /// Its tasks' identities in the order of the manifest.
    pub tasks: Vec<String>,
}

/// What `add` made.
#[derive(Debug, Serialize)]
pub struct Added {
    /// The identities of the tasks in the order of the manifest.
    pub tasks: Vec<String>,
    /// The full name of the capture's ref.
    pub capture: String,
    /// The captured commit.
    pub commit: String,
    /// Package copies that were kept or could not be removed.
    pub cleanup: Vec<String>,
    /// What to know about the capture.
    pub message: String,
}

/// Validates the package that `target` names, seen from the directory `dir`. Writes nothing.
///
/// # Errors
/// [`AddError::Faults`] with every fault; [`AddError::Refused`] where there is no package to look at.
pub fn check(target: &Path, dir: &Path, repo: Option<&Path>) -> Result<Checked, AddError> {
    let place = Place::find(target, dir, repo)?;
    let package = place.parse()?;
    Ok(Checked { loop_id: place.loop_id.to_string(), tasks: identities(&package) })
}

/// Adds the package that `target` names, as the plan of the legacy row on line `materialize` where given.
///
/// # Errors
/// As [`check`], and where the package is refused; then nothing was changed.
pub fn add(target: &Path, dir: &Path, repo: Option<&Path>, materialize: Option<usize>) -> Result<Added, AddError> {
    let place = Place::find(target, dir, repo)?;
    let layout = Layout::new(place.repo.common_dir());
    let _lock = Lock::wait(&layout.queue_lock())?;
    let record = capture::record(&place, &layout, materialize)?;
    let cleanup = finish_cleanup(&place.repo, &layout)?;
    let manifest = capture::manifest(&place.repo, &record)?;
    let id = &record.loop_id;
    Ok(Added {
        tasks: manifest.tasks.iter().map(|task| id.task(&task.id).to_string()).collect(),
        capture: record.capture.clone(),
        commit: record.commit.to_string(),
        cleanup,
        message: format!(
            "the package is kept at {}; look at it with `git show {}:{}`; revised work needs a new loop id",
            record.capture,
            record.capture,
            id.meta_file()
        ),
    })
}

fn identities(package: &Package) -> Vec<String> {
    package.tasks.iter().map(|task| package.loop_id.task(&task.id).to_string()).collect()
}

/// The package of the loop in the checkout of `repo`.
fn parse(repo: &Repo, loop_id: &crate::package::LoopId) -> Result<Package, AddError> {
    Package::parse(loop_id, &CheckoutSource::new(repo)).map_err(AddError::Faults)
}
