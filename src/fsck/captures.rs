//! Captures against add records: the reference, the commit, and what it holds.

use std::collections::{BTreeMap, BTreeSet};

use super::ground::{Ground, Kept};
use super::{Findings, Result};
use crate::git::{Commit, EntryKind, GitError, Oid, Repo};
use crate::package::{Manifest, Package};
use crate::queue::{Mark, QueueFile};
use crate::shell;

pub(super) fn check(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    for found in &ground.loops {
        reference(ground, found, findings);
        let record = &found.record;
        let Some(commit) = ground.repo.commit(record.commit)? else {
            findings.error(
                &record.capture,
                format!("its captured commit {} is not in this repository", record.commit),
                format!("fetch it from a clone that has it, with `git fetch <remote> {}`", record.commit),
            );
            continue;
        };
        let wrong = contents(ground.repo, found, &commit);
        for what in wrong.unwrap_or_else(|error| vec![format!("cannot be read: {error}")]) {
            findings.error(
                &record.capture,
                what,
                format!(
                    "see `git ls-tree -r {}`; a capture is never mended: plan the work as a new loop",
                    record.commit
                ),
            );
        }
    }
    sequences(ground, findings);
    Ok(())
}

fn reference(ground: &Ground<'_>, found: &Kept, findings: &mut Findings) {
    let (name, wanted) = (&found.record.capture, found.record.commit.to_string());
    if ground.loose.is_broken(name) {
        return;
    }
    match ground.refs.get(name) {
        Some(at) if *at == found.record.commit => {}
        Some(at) => findings.error(
            name,
            format!("is at {at}, its add record says {wanted}"),
            format!(
                "see `git log {at}`, and put it back with `{}`",
                shell::line(["git", "update-ref", name, &wanted, &at.to_string()])
            ),
        ),
        None => findings.error(
            name,
            "is not there; nothing keeps the captured package from being collected as garbage",
            format!("put it back with `{}`", shell::line(["git", "update-ref", name, &wanted, ""])),
        ),
    }
}

/// What the captured commit is not, or holds and must not.
fn contents(repo: &Repo, found: &Kept, commit: &Commit) -> Result<Vec<String>, GitError> {
    let Kept { record, .. } = found;
    let mut wrong = Vec::new();
    if !commit.parents.is_empty() {
        wrong.push(format!("its commit {} has a parent, and a capture has none", commit.id));
    }
    if commit.tree != record.tree {
        wrong.push(format!("its tree is {}, its add record says {}", commit.tree, record.tree));
    }
    let loop_id = &record.loop_id;
    let manifest = match repo.file(commit.id, &loop_id.meta_file())? {
        Some(blob) => Manifest::parse_meta(loop_id, &blob.data).map_err(|fault| fault.to_string()),
        None => Err(format!("holds no {}", loop_id.meta_file())),
    };
    let manifest = match manifest {
        Ok(manifest) => manifest,
        Err(why) => {
            wrong.push(why);
            return Ok(wrong);
        }
    };
    let (mut files, mut odd) = (BTreeSet::new(), BTreeMap::new());
    walk(repo, commit.tree, "", &mut files, &mut odd)?;
    let mut expected: BTreeSet<String> = Package::paths(&manifest).into_iter().collect();
    expected.insert(loop_id.queue_file());
    wrong.extend(expected.difference(&files).map(|path| format!("holds no {path}")));
    wrong.extend(files.difference(&expected).map(|path| format!("holds {path}, which is no file of the package")));
    wrong.extend(odd.into_iter().map(|(path, kind)| format!("holds {path} as {kind}")));
    if manifest.delivery != record.delivery {
        wrong.push(format!(
            "its manifest is delivered as {}, its add record says {}",
            manifest.delivery, record.delivery
        ));
    }
    wrong.extend(queue(repo, found, commit.id, &manifest)?);
    Ok(wrong)
}

/// What the captured queue file is not: a pending row for each task in order, behind the claim on record.
fn queue(repo: &Repo, found: &Kept, commit: Oid, manifest: &Manifest) -> Result<Option<String>, GitError> {
    let loop_id = &found.record.loop_id;
    let Some(blob) = repo.file(commit, &loop_id.queue_file())? else { return Ok(None) };
    let queue = match QueueFile::parse(loop_id, &blob.data) {
        Ok(Some(queue)) => queue,
        Ok(None) => return Ok(Some(format!("its {} has no row of the loop", loop_id.queue_file()))),
        Err(fault) => return Ok(Some(format!("its {}: {fault}", loop_id.queue_file()))),
    };
    let tasks: Vec<_> = manifest.tasks.iter().map(|task| loop_id.task(&task.id)).collect();
    let rows: Vec<_> = queue.rows.iter().map(|row| row.identity.clone()).collect();
    Ok(if tasks != rows {
        Some(format!("its {} has other rows than the manifest has tasks", loop_id.queue_file()))
    } else if queue.rows.iter().any(|row| row.mark != Mark::Pending) {
        Some(format!("its {} has a settled row, and a capture has none", loop_id.queue_file()))
    } else if queue.claim != found.record.materialize {
        Some(format!("its {} replaces another row than its add record says", loop_id.queue_file()))
    } else {
        None
    })
}

/// Every path below a tree, and those that are no plain files.
fn walk(
    repo: &Repo,
    tree: Oid,
    above: &str,
    files: &mut BTreeSet<String>,
    odd: &mut BTreeMap<String, &'static str>,
) -> Result<(), GitError> {
    for entry in repo.folder(tree, "")? {
        let path = format!("{above}{}", crate::git::shown(entry.name.as_ref()));
        match entry.kind {
            EntryKind::Tree => {
                walk(repo, entry.id, &format!("{path}/"), files, odd)?;
                continue;
            }
            EntryKind::File => {}
            EntryKind::Executable => {
                odd.insert(path.clone(), "an executable");
            }
            EntryKind::Link => {
                odd.insert(path.clone(), "a symbolic link");
            }
            EntryKind::Submodule => {
                odd.insert(path.clone(), "a submodule");
            }
        }
        files.insert(path);
    }
    Ok(())
}

/// Numbers that two loops have.
fn sequences(ground: &Ground<'_>, findings: &mut Findings) {
    let mut by_number: BTreeMap<u64, Vec<&Kept>> = BTreeMap::new();
    for found in &ground.loops {
        by_number.entry(found.record.sequence).or_default().push(found);
    }
    let highest = by_number.last_key_value().map_or(0, |(number, _)| *number);
    for (number, loops) in by_number.iter().filter(|(_, loops)| loops.len() > 1) {
        let names: Vec<&str> = loops.iter().map(|found| found.record.loop_id.as_str()).collect();
        let last = loops.last().map(|found| ground.layout.record(&found.record.loop_id));
        findings.error(
            last.unwrap_or_default().display(),
            format!("the loops {} have the same sequence {number}", names.join(" and ")),
            format!("give all but one of them a number of its own, from {} on", highest + 1),
        );
    }
}
