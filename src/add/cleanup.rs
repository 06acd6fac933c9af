//! The end of every add: package copies that equal their capture leave the checkout that they were added in. A copy
//! that is tracked is left alone, one that differs is kept and named.

use std::fs;
use std::path::Path;

use super::AddError;
use crate::git::Repo;
use crate::package::Package;
use crate::store::{Layout, Record};
use crate::view::unix_lines;

/// Removes every untracked package copy that equals its loop's capture; what was kept or could not be removed, each
/// with its path and why. The caller holds the queue lock.
///
/// # Errors
/// Where the add records or a capture cannot be read.
pub fn finish_cleanup(repo: &Repo, layout: &Layout) -> Result<Vec<String>, AddError> {
    let mut told = Vec::new();
    for record in Record::read_all(layout)? {
        let folder = record.origin.join(record.loop_id.directory());
        if is_folder(&folder) && is_folder(&record.origin.join("docs")) && is_folder(&record.origin.join("docs/specs"))
        {
            clean(repo, &record, &mut told)?;
        }
    }
    Ok(told)
}

fn clean(repo: &Repo, record: &Record, told: &mut Vec<String>) -> Result<(), AddError> {
    // The origin may be a worktree that was removed, with something else in its place by now.
    let Some(origin) = Repo::at(&record.origin).ok().filter(|origin| origin.common_dir() == repo.common_dir()) else {
        return Ok(());
    };
    let manifest = super::capture::manifest(repo, record)?;
    let paths: Vec<String> = Package::paths(&manifest)
        .into_iter()
        .filter(|path| {
            let place = record.origin.join(path);
            place.parent().is_some_and(is_folder) && fs::symlink_metadata(&place).is_ok()
        })
        .collect();
    if !paths.is_empty() {
        let tracked = origin.git().args(["ls-files", "-z", "--"]).args(&paths).run()?;
        let tracked: Vec<&[u8]> = tracked.stdout.split(|byte| *byte == 0).collect();
        for path in paths.iter().filter(|path| !tracked.contains(&path.as_bytes())) {
            let place = record.origin.join(path);
            if let Err(why) = remove_copy(repo, record, path, &place)? {
                told.push(format!("{}: {why}", place.display()));
            }
        }
    }
    // Only what is empty goes, and only what the package itself brought.
    for task in &manifest.tasks {
        let _ = fs::remove_dir(record.origin.join(record.loop_id.directory()).join(task.id.as_str()));
    }
    let _ = fs::remove_dir(record.origin.join(record.loop_id.directory()));
    Ok(())
}

fn remove_copy(repo: &Repo, record: &Record, path: &str, place: &Path) -> Result<Result<(), String>, AddError> {
    let regular = fs::symlink_metadata(place).is_ok_and(|meta| meta.is_file());
    let Some(bytes) = regular.then(|| fs::read(place).ok()).flatten() else {
        return Ok(Err("is no regular file that can be read; it was kept".to_owned()));
    };
    let captured = repo.file(record.commit, path)?;
    if captured.is_none_or(|blob| unix_lines(&blob.data) != unix_lines(&bytes)) {
        return Ok(Err(format!("differs from the captured package ({}) and was kept", record.capture)));
    }
    Ok(fs::remove_file(place).map_err(|error| format!("equals the captured package and cannot be removed: {error}")))
}

fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir())
}
