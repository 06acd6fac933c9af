//! Bound results against what keeps them: the recovery ref, the terminal commit, the evidence in custody, the note.

use std::collections::BTreeSet;
use std::path::Path;

use super::ground::{Ground, children};
use super::{Findings, Result};
use crate::git::{NOTES_REF, Oid};
use crate::json;
use crate::notes::{self, Noted};
use crate::package::Identity;
use crate::shell;
use crate::store::{Delivery, Receipt, ReceiptDir, verify};
use crate::task::{TaskError, terminal_fault};

/// The tasks whose results are not noted, or noted otherwise.
#[derive(Debug, Default)]
pub(super) struct Notes {
    missing: Vec<String>,
    other: Vec<String>,
    unreadable: Option<String>,
}

impl Notes {
    pub(super) fn tell(self, findings: &mut Findings) {
        const REMEDY: &str = "`git devlyn fsck --rebuild-notes` writes it from the receipts";
        for (tasks, what) in [(self.missing, "has no note on"), (self.other, "has another note than its receipt for")] {
            if !tasks.is_empty() {
                let shown = tasks.iter().take(3).map(String::as_str).collect::<Vec<_>>().join(", ");
                let more = tasks.len().saturating_sub(3);
                let more = if more == 0 { String::new() } else { format!(" and {more} more tasks") };
                findings.warning(NOTES_REF, format!("{what} {shown}{more}"), REMEDY);
            }
        }
        if let Some(why) = self.unreadable {
            findings.error(
                NOTES_REF,
                format!("cannot be read: {why}"),
                format!("move it away with `git update-ref -d {NOTES_REF}`, then `git devlyn fsck --rebuild-notes`"),
            );
        }
    }
}

pub(super) fn check(
    ground: &Ground<'_>,
    dir: &ReceiptDir,
    receipt: &Receipt,
    notes: &mut Notes,
    findings: &mut Findings,
) -> Result<()> {
    let place = dir.receipt();
    let (Some(source), Some(publish)) = (receipt.source_sha, receipt.publish_sha) else {
        let remedy = format!("put it back as it was; {} keeps the result", receipt.recovery_ref);
        findings.error(place.display(), "has an acceptance and no source", remedy);
        return Ok(());
    };
    if let Some(why) = custody(dir, receipt) {
        findings.error(
            dir.custody().display(),
            why,
            "put the evidence back from a backup; without it the result is proven by nothing, and its work is planned anew",
        );
    }
    for id in BTreeSet::from([source, publish]) {
        if ground.repo.commit(id)?.is_none() {
            findings.error(
                &receipt.recovery_ref,
                format!("the commit {id} of {} is not in this repository", receipt.task),
                format!("fetch it from a clone that has it, with `git fetch <remote> {id}`"),
            );
            return Ok(());
        }
    }
    let branch = format!("refs/heads/{}", receipt.branch);
    let head = ground.repo.resolve(&branch)?;
    let (ends, terminal) = match &receipt.queue {
        Some(queue) => (vec![publish], Some(queue.commit)),
        // On its way: the terminal commit may be there, and the recovery ref may have moved to it.
        None => match head {
            Some(head) if head != source && fault(ground, receipt, source, head)?.is_none() => {
                (vec![source, head], None)
            }
            _ => (vec![source], None),
        },
    };
    recovery(ground, receipt, publish, &ends, findings);
    if let Some(terminal) = terminal {
        if terminal != publish {
            findings.error(
                place.display(),
                format!("its terminal commit is {terminal}, and it would publish {publish}"),
                "put it back as it was; both are the same commit once it is attached",
            );
        } else if let Some(why) = fault(ground, receipt, source, terminal)? {
            findings.error(
                &receipt.recovery_ref,
                format!("its terminal commit {terminal} {why}"),
                format!("see `git show {terminal}`; the source {source} is what was proven"),
            );
        } else {
            noted(ground, receipt, terminal, notes);
        }
    }
    own_branch(ground, receipt, &branch, head, &ends, findings);
    Ok(())
}

/// The recovery ref is at one of `ends`.
fn recovery(ground: &Ground<'_>, receipt: &Receipt, publish: Oid, ends: &[Oid], findings: &mut Findings) {
    let (name, wanted) = (&receipt.recovery_ref, publish.to_string());
    if ground.loose.is_broken(name) {
        return;
    }
    match ground.refs.get(name) {
        Some(at) if ends.contains(at) => {}
        Some(at) => findings.error(
            name,
            format!("is at {at}, the receipt of {} says {wanted}", receipt.task),
            format!(
                "see `git log {at}`, and put it back with `{}`",
                shell::line(["git", "update-ref", name, &wanted, &at.to_string()])
            ),
        ),
        None => findings.error(
            name,
            format!("is not there; nothing keeps the result of {} from being collected as garbage", receipt.task),
            format!("put it back with `{}`", shell::line(["git", "update-ref", name, &wanted, ""])),
        ),
    }
}

/// The owned branch is at one of `ends`, or gone once everything is delivered.
fn own_branch(
    ground: &Ground<'_>,
    receipt: &Receipt,
    name: &str,
    head: Option<Oid>,
    ends: &[Oid],
    findings: &mut Findings,
) {
    let Some(wanted) = ends.last() else { return };
    match head {
        Some(head) if ends.contains(&head) => {}
        _ if ground.loose.is_broken(name) => {}
        Some(head) => findings.warning(
            name,
            format!("is at {head}, the receipt of {} says {wanted}", receipt.task),
            format!(
                "see `git log {wanted}..{head}`; take what is yours elsewhere, and put it back with `{}`",
                shell::line(["git", "update-ref", name, &wanted.to_string(), &head.to_string()])
            ),
        ),
        // A task without a loop has none, and its branch goes once it was merged.
        None if receipt.queue.is_none() && receipt.delivery != Some(Delivery::Complete) => findings.error(
            name,
            format!("is gone, and {} has no terminal commit yet", receipt.task),
            format!("make it again with `git branch {} {wanted}`", receipt.branch),
        ),
        None => {}
    }
}

/// Why `head` is not the terminal commit of the result.
fn fault(ground: &Ground<'_>, receipt: &Receipt, source: Oid, head: Oid) -> Result<Option<String>> {
    let repo = ground.repo;
    if let Ok(identity) = Identity::parse(&receipt.task)
        && receipt.queue.as_ref().is_none_or(|queue| queue.file == identity.loop_id.queue_file())
    {
        return match terminal_fault(repo, &identity, receipt, source, head) {
            Ok(fault) => Ok(fault),
            Err(TaskError::Git(error)) => Err(error.into()),
            Err(error) => Ok(Some(format!("cannot be judged: {error}"))),
        };
    }
    // Attached by hand to a file that belongs to no loop: its place alone can be judged.
    let below = repo.commit(head)?.is_some_and(|commit| commit.parents == [source]);
    let changes = if below { repo.changes(source, head)? } else { Vec::new() };
    let file = receipt.queue.as_ref().map(|queue| queue.file.as_str());
    Ok(match changes.as_slice() {
        _ if !below => Some(format!("does not lie directly on its source {source}")),
        [only] if file.is_none_or(|file| only.path == file) => None,
        _ => Some("changes more than its row".to_owned()),
    })
}

/// What is wrong with the evidence.
fn custody(dir: &ReceiptDir, receipt: &Receipt) -> Option<String> {
    let files = receipt.files.clone().unwrap_or_default();
    if let Err(error) = verify(dir, &files) {
        let why = error.to_string();
        return Some(why.strip_prefix("custody ").unwrap_or(&why).to_owned());
    }
    let mut kept = BTreeSet::new();
    if let Err(error) = below(&dir.custody(), &dir.custody(), &mut kept) {
        return Some(format!("cannot be read: {error}"));
    }
    if let Some(surplus) = kept.iter().find(|path| !files.contains_key(*path)) {
        return Some(format!("holds {surplus:?}, which was never bound"));
    }
    // The acceptance is evidence too: the file that was bound says what the receipt says.
    let digest = receipt.acceptance_digest.as_ref()?;
    let bound = files.iter().find(|(_, record)| record.sha256 == *digest);
    let Some((path, _)) = bound else { return Some("does not hold the acceptance that was bound".to_owned()) };
    let bytes = std::fs::read(dir.custody().join(path)).ok()?;
    let same = json::parse_object(&bytes).ok().as_ref() == receipt.acceptance.as_ref().map(|known| &known.0);
    (!same).then(|| format!("holds {path:?}, which says something else than the acceptance in the receipt"))
}

/// The files below a folder, relative to `root`.
fn below(root: &Path, folder: &Path, found: &mut BTreeSet<String>) -> Result<()> {
    for path in children(folder)? {
        if std::fs::symlink_metadata(&path).is_ok_and(|meta| meta.is_dir()) {
            below(root, &path, found)?;
        } else if let Ok(inside) = path.strip_prefix(root) {
            found.insert(inside.to_string_lossy().into_owned());
        }
    }
    Ok(())
}

fn noted(ground: &Ground<'_>, receipt: &Receipt, terminal: Oid, notes: &mut Notes) {
    if ground.loose.is_broken(NOTES_REF) || notes.unreadable.is_some() {
        return;
    }
    match notes::noted(ground.repo, receipt, terminal) {
        Ok(Noted::Yes) => {}
        Ok(Noted::No) => notes.missing.push(receipt.task.clone()),
        Ok(Noted::Otherwise) => notes.other.push(receipt.task.clone()),
        Err(error) => notes.unreadable = Some(error.to_string()),
    }
}
