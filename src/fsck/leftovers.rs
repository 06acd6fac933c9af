//! What interruptions left beside the state, what was kept on purpose, and reports that nobody can read.

use std::path::Path;

use super::ground::{Ground, children};
use super::{Findings, Result, typed};
use crate::package::LoopId;
use crate::store::{Lock, StoreError, is_temporary};

/// The files that are written beside their place first.
const RECEIPT_FILES: [&str; 3] = ["receipt.json", "packet.json", "manifest.json"];
const LOOP_FILES: [&str; 2] = ["added.json", "drain-report.md"];

pub(super) fn check(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    for folder in children(&ground.layout.loops())? {
        let name = folder.file_name().and_then(|name| name.to_str());
        let Some(loop_id) = name.and_then(|name| LoopId::new(name).ok()).filter(|_| folder.is_dir()) else { continue };
        for path in children(&folder)? {
            temporary(&path, &LOOP_FILES, findings);
        }
        report(&loop_id, &ground.layout.report(&loop_id), findings);
    }
    for owned in &ground.receipts {
        let busy = Lock::is_held(&owned.dir.lock())?;
        let bound = matches!(&owned.receipt, Ok(Some(receipt)) if receipt.is_bound());
        // What an unfinished allocation left is told, and taken away, with it.
        let whole =
            matches!(&owned.receipt, Ok(Some(receipt)) if receipt.allocation == crate::store::Allocation::Owned);
        for path in children(owned.dir.path())? {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            if whole {
                temporary(&path, &RECEIPT_FILES, findings);
            }
            let kept = if name.starts_with(".custody-copying-") && !busy {
                "evidence whose copying was interrupted"
            } else if name.starts_with(".custody-") && !name.starts_with(".custody-copying-") {
                "evidence that was copied and never bound"
            } else if name.starts_with(".records-copying-") && !busy {
                "records whose copying was interrupted"
            } else if name.starts_with(".records-") && !name.starts_with(".records-copying-") {
                "records of an earlier cleanup that was interrupted"
            } else if name.starts_with(".submission-") {
                "a submission that was cut off while it was written"
            } else if name == "custody" && whole && !bound && !busy {
                "evidence that is not bound yet; the next drain sets it aside"
            } else {
                continue;
            };
            findings.info(path.display(), kept, "nothing reads it; see what it holds, and delete it if you like");
        }
    }
    Ok(())
}

fn temporary(path: &Path, targets: &[&str], findings: &mut Findings) {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    if targets.iter().any(|target| is_temporary(&name, target)) {
        findings.warning(
            path.display(),
            "was being written when its writer ended; nothing reads it",
            format!("`{}`", typed(&["rm"], path)),
        );
    }
}

/// A report that was written is a page of text about its loop.
fn report(loop_id: &LoopId, path: &Path, findings: &mut Findings) {
    let why = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return,
        Err(error) => error.to_string(),
        Ok(meta) if !meta.is_file() => "is no regular file".to_owned(),
        Ok(_) => match std::fs::read_to_string(path) {
            Ok(text) if text.starts_with(&format!("# Drain report — {loop_id}\n")) => return,
            Ok(_) => "is no report of its loop".to_owned(),
            Err(error) => StoreError::io(path)(error).to_string(),
        },
    };
    findings.warning(
        path.display(),
        format!("cannot be read as a report: {why}"),
        "move it away; the next drain writes it anew",
    );
}
