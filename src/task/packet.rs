//! The packet: everything that a fresh executor needs, written once before it is first run.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::Path;

use super::{Result, refuse};
use crate::exchange::{Dependency, LOOP_EVIDENCE, Named, Packet};
use crate::git::{Oid, Repo};
use crate::package::{Contract, Delivery, Meta, sha256_hex};
use crate::store::{StoreError, write_state};
use crate::view::{Held, INSTRUCTIONS, TaskView, View};

/// What every executor owes, in the order in which it comes to it.
const OBLIGATIONS: [&str; 7] = [
    "Work in `worktree` only, on `branch`, under the instruction files that `methodology` names.",
    "Do what `contract` asks within its scope. Leave the package (docs/specs/<loop>/), its queue file and docs/specs/queue.md as they are.",
    "Commit the result on `branch` and leave the worktree clean; caches and build output go under `scratch` or stay ignored.",
    "Run `runner` on the committed candidate and list its result in the submission.",
    "For every id in `review_requirements`, put a review record of the final commit below the worktree's .devlyn/ and list it.",
    "Write `submission` last: schema_version 1, task, source_sha (the commit), and what else there is to say.",
    "What you cannot decide is a blocker of kind needs-review with its question; never weaken what is asked.",
];

/// Writes the packet of the task, whose inputs are committed at `inputs`, and returns it.
///
/// # Errors
/// Where the committed package cannot be read or the packet cannot be written.
pub fn write_packet(
    repo: &Repo,
    view: &View,
    task: &TaskView,
    held: &Held,
    inputs: Oid,
    delivery: Delivery,
) -> Result<Packet> {
    let packet = build(repo, view, task, held, inputs, delivery)?;
    write_state(&held.dir.packet(), &packet)?;
    Ok(packet)
}

fn build(repo: &Repo, view: &View, task: &TaskView, held: &Held, inputs: Oid, delivery: Delivery) -> Result<Packet> {
    let (identity, receipt, dir) = (&task.identity, &held.receipt, &held.dir);
    let Some(found) = view.loop_of(task) else { return refuse("its loop is gone") };
    let committed = |path: &str| -> Result<(Named, Vec<u8>)> {
        let Some(blob) = repo.file(inputs, path)? else { return refuse(format!("its inputs {inputs} hold no {path}")) };
        Ok((Named { path: receipt.worktree.join(path), sha256: sha256_hex(&blob.data) }, blob.data))
    };
    let (contract, spec) = committed(&identity.spec_file())?;
    let (expected, _) = committed(&identity.expected_file())?;
    let (meta, meta_text) = committed(&found.id.meta_file())?;
    let fault = |faults: Vec<crate::package::Fault>| {
        super::TaskError::Refused(
            faults.first().map_or_else(|| "its package has faults".to_owned(), ToString::to_string),
        )
    };
    let spec = Contract::parse(identity, &spec).map_err(fault)?;
    let meta_text = Meta::parse(&found.id, &meta_text).map_err(fault)?;
    let mut dependencies = Vec::new();
    for prerequisite in found.prerequisites(identity) {
        if let Some(task) = view.task(&prerequisite)
            && let (Some(held), Some(source_sha)) = (task.held(), task.accepted_source())
        {
            dependencies.push(Dependency { task: prerequisite, receipt: held.dir.receipt(), source_sha });
        }
    }
    let mut methodology = Vec::new();
    for name in INSTRUCTIONS {
        if repo.file(inputs, name)?.is_some() {
            methodology.push(committed(name)?.0);
        }
    }
    Ok(Packet {
        schema_version: 1,
        task: identity.clone(),
        title: spec.title,
        kind: spec.kind,
        worktree: receipt.worktree.clone(),
        branch: receipt.branch.clone(),
        receipt: dir.receipt(),
        scratch: dir.scratch(),
        allocation_base: receipt.baseline,
        inputs_sha: inputs,
        contract,
        expected,
        meta,
        requirements: spec.requirements,
        review_requirements: spec.review_requirements,
        shared_constraints: meta_text.constraints().to_owned(),
        dependencies,
        methodology,
        delivery,
        evidence_dir: receipt.worktree.join(LOOP_EVIDENCE),
        runner: runner(&dir.packet())?,
        submission: dir.submission(),
        obligations: OBLIGATIONS.map(str::to_owned).to_vec(),
    })
}

/// The argv that starts this program's runner on the packet at `path`.
fn runner(path: &Path) -> Result<Vec<String>> {
    let program = std::env::current_exe().map_err(StoreError::io(Path::new("/proc/self/exe")))?;
    let text = |path: &Path| match path.to_str() {
        Some(text) => Ok(text.to_owned()),
        None => refuse(format!("{} is not UTF-8, and a packet can only name paths that are", path.display())),
    };
    Ok(vec![text(&program)?, "acceptance".into(), "run".into(), "--packet".into(), text(path)?, "--json".into()])
}

/// The executor's argv with its placeholders replaced, wherever they stand in a word. What a path holds is never a
/// placeholder itself.
#[must_use]
pub fn placed(argv: &[OsString], packet: &Path, worktree_git_dir: &Path) -> Vec<OsString> {
    let places = [("{packet}", packet), ("{worktree_git_dir}", worktree_git_dir)];
    argv.iter().map(|word| OsString::from_vec(replaced(word.as_bytes(), &places))).collect()
}

fn replaced(mut word: &[u8], places: &[(&str, &Path); 2]) -> Vec<u8> {
    let mut out = Vec::with_capacity(word.len());
    while let Some(first) = word.first() {
        match places.iter().find(|(name, _)| word.starts_with(name.as_bytes())) {
            Some((name, path)) => {
                out.extend_from_slice(path.as_os_str().as_bytes());
                word = &word[name.len()..];
            }
            None => {
                out.push(*first);
                word = &word[1..];
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn placeholders_are_replaced_once_wherever_they_stand() {
        let argv: Vec<OsString> =
            ["x", "{packet}:{packet}", "--d={worktree_git_dir}", "{other}"].map(Into::into).to_vec();
        let placed = placed(&argv, Path::new("/p {worktree_git_dir}"), Path::new("/g"));
        assert_eq!(placed, ["x", "/p {worktree_git_dir}:/p {worktree_git_dir}", "--d=/g", "{other}"]);
    }
}
