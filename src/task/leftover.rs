//! What an allocation alone puts into a receipt's directory, told from everything else that may stand there.

use std::path::PathBuf;

use super::Result;
use crate::store::{ReceiptDir, StoreError, is_temporary, remove_file, sync_dir};

/// What the directory holds, in words, and the first thing in it that no unfinished allocation makes.
///
/// # Errors
/// Where it cannot be read.
pub fn allocation(dir: &ReceiptDir) -> Result<(Vec<String>, Option<PathBuf>)> {
    let (mut told, mut surplus) = (Vec::new(), None);
    for (name, path) in entries(dir)? {
        let meta = std::fs::symlink_metadata(&path).map_err(StoreError::io(&path))?;
        let made = match name.as_str() {
            "scratch" => meta.is_dir() && std::fs::read_dir(&path).map_err(StoreError::io(&path))?.next().is_none(),
            "lock" => meta.is_file() && meta.len() == 0,
            "receipt.json" => meta.is_file(),
            name => meta.is_file() && is_temporary(name, "receipt.json"),
        };
        if made {
            told.push(if meta.is_dir() { format!("{name}/ (empty)") } else { name });
        } else if surplus.is_none() {
            surplus = Some(path);
        }
    }
    Ok((told, surplus))
}

/// Removes the directory with what [`allocation`] names, the receipt before what makes its directory recognisable.
///
/// # Errors
/// Where something of it cannot be removed, or something else has come into it.
pub(super) fn remove_allocation(dir: &ReceiptDir) -> Result<()> {
    for (name, path) in entries(dir)? {
        if is_temporary(&name, "receipt.json") {
            remove_file(&path)?;
        }
    }
    remove_file(&dir.receipt())?;
    let scratch = dir.scratch();
    if scratch.is_dir() {
        std::fs::remove_dir(&scratch).map_err(StoreError::io(&scratch))?;
    }
    remove_file(&dir.lock())?;
    std::fs::remove_dir(dir.path()).map_err(StoreError::io(dir.path()))?;
    Ok(sync_dir(dir.path().parent().unwrap_or(dir.path()))?)
}

/// The names in the directory, sorted.
fn entries(dir: &ReceiptDir) -> Result<Vec<(String, PathBuf)>> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir.path()).map_err(StoreError::io(dir.path()))? {
        let entry = entry.map_err(StoreError::io(dir.path()))?;
        found.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
    }
    found.sort();
    Ok(found)
}
