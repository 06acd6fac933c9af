//! Which package is meant, and in which checkout it stands.

use std::ffi::OsStr;
use std::path::{Component, Path, PathBuf};

use super::AddError;
use crate::git::{GitError, Repo};
use crate::package::{LoopId, Package};

/// A package's place.
#[derive(Debug)]
pub struct Place {
    /// The checkout.
    pub repo: Repo,
    /// The loop.
    pub loop_id: LoopId,
}

impl Place {
    /// The place that `target` names, seen from `dir`: the path of a `meta.md`, which decides the repository, or a
    /// loop id of the repository at `repo`, else around `dir`.
    ///
    /// # Errors
    /// Where it names none.
    pub fn find(target: &Path, dir: &Path, repo: Option<&Path>) -> Result<Self, AddError> {
        if let Some(loop_id) = bare_id(target) {
            let repo = match repo {
                Some(repo) => Repo::at(&dir.join(repo))?,
                None => Repo::from_current_dir(dir)?,
            };
            return Ok(Self { repo, loop_id });
        }
        let path = normal(&dir.join(target));
        // The directory may be gone, after an add: the nearest one that is there decides the repository.
        let nearest = path.ancestors().skip(1).find(|above| above.is_dir()).unwrap_or(dir);
        let repo = Repo::at(nearest).map_err(|error| match error {
            GitError::NotARepository(_) => AddError::Refused(format!("{} is in no Git repository", target.display())),
            error => error.into(),
        })?;
        let nearest_real =
            std::fs::canonicalize(nearest).map_err(|source| GitError::Io { path: nearest.to_owned(), source })?;
        let real = nearest_real.join(path.strip_prefix(nearest).unwrap_or(&path));
        let inside = real.strip_prefix(repo.work_dir()).map(Path::to_owned).unwrap_or(real);
        let parts: Vec<&OsStr> = inside.components().map(Component::as_os_str).collect();
        let wrong = |why: String| Err(AddError::Refused(format!("{}: {why}", target.display())));
        match parts.as_slice() {
            [docs, specs, folder, file] if *docs == "docs" && *specs == "specs" && *file == "meta.md" => {
                match folder.to_str().map(LoopId::new) {
                    Some(Ok(loop_id)) => Ok(Self { repo, loop_id }),
                    _ => wrong(format!(
                        "{folder:?} is no loop id: name the directory with 1 to 63 of a-z, 0-9 and -, the first no dash"
                    )),
                }
            }
            _ => wrong("a package is docs/specs/<loop-id>/meta.md directly below the top of its checkout".to_owned()),
        }
    }

    /// The package, with every fault where it has some.
    ///
    /// # Errors
    /// [`AddError::Faults`].
    pub fn parse(&self) -> Result<Package, AddError> {
        super::parse(&self.repo, &self.loop_id)
    }
}

/// The loop id that `target` is, where it is one word and no path.
fn bare_id(target: &Path) -> Option<LoopId> {
    let text = target.to_str()?;
    LoopId::new(text).ok()
}

/// The path without `.` and `..`, which need not be there.
fn normal(path: &Path) -> PathBuf {
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                out.pop();
            }
            part => out.push(part),
        }
    }
    out
}
