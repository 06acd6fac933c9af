//! Receipts against their places, their branches and what an allocation leaves.

use super::ground::{Ground, Owned};
use super::{Findings, Result, results, typed};
use crate::os::tree::identity;
use crate::shell;
use crate::store::{Allocation, Receipt, ReceiptDir, read_bytes};
use crate::task::leftover;

pub(super) fn check(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    let mut notes = results::Notes::default();
    for owned in &ground.receipts {
        let dir = &owned.dir;
        match &owned.receipt {
            Ok(Some(receipt)) => {
                if let Err(why) = receipt.check_place(ground.layout, dir) {
                    findings.error(
                        dir.receipt().display(),
                        why,
                        "put the receipt back to where it was made and as it was; until then it proves nothing",
                    );
                } else if let Some(task) = ground.tasks.get(&dir.key()).filter(|task| task.to_string() != receipt.task)
                {
                    findings.error(
                        dir.receipt().display(),
                        format!("claims the task {:?}, and its branch belongs to {task}", receipt.task),
                        "put it back as it was; until then it proves nothing, and the task waits",
                    );
                } else if receipt.allocation == Allocation::Allocating {
                    unfinished(ground, receipt, dir, findings);
                } else {
                    scratch(receipt, dir, findings);
                    if receipt.is_bound() {
                        results::check(ground, dir, receipt, &mut notes, findings)?;
                    } else {
                        active(ground, dir, receipt, findings)?;
                    }
                }
            }
            Ok(None) => occupied(ground, owned, findings),
            Err(why) => findings.error(
                dir.receipt().display(),
                why,
                format!(
                    "put it right from a backup; until then its task waits, and refs/devlyn/completed/{} and custody/ \
                     beside it keep what was bound",
                    dir.key()
                ),
            ),
        }
    }
    notes.tell(findings);
    Ok(())
}

fn unfinished(ground: &Ground<'_>, receipt: &Receipt, dir: &ReceiptDir, findings: &mut Findings) {
    if ground.allocating {
        return;
    }
    findings.warning(
        dir.receipt().display(),
        format!("the allocation of {} was never finished; the task waits", receipt.task),
        format!("`{}` shows what it left and removes it", shell::line(["git", "devlyn", "recover", &receipt.task])),
    );
}

/// A directory without a receipt.
fn occupied(ground: &Ground<'_>, owned: &Owned, findings: &mut Findings) {
    let dir = &owned.dir;
    if ground.allocating {
        return;
    }
    let task = ground.tasks.get(&dir.key());
    let surplus = match leftover::allocation(dir) {
        Ok((_, surplus)) => surplus.map(|path| format!("it holds {}", path.display())),
        Err(error) => Some(format!("it cannot be read ({error})")),
    };
    let place = dir.path().display();
    match (surplus, task) {
        (None, Some(task)) => findings.warning(
            place,
            format!("the allocation of {task} ended before it had a receipt; the task waits"),
            format!("`git devlyn recover {task}` removes it"),
        ),
        (None, None) => findings.warning(
            place,
            "an allocation ended before it had a receipt, and nothing here tells of which task",
            format!("it holds nothing; `{}`", typed(&["rm", "-r"], dir.path())),
        ),
        (Some(surplus), task) => findings.error(
            place,
            format!(
                "there is no receipt in it, and {surplus}{}",
                task.map_or_else(String::new, |task| format!("; {task} waits because of it"))
            ),
            "put its receipt.json back from a backup, or see what it holds and move it away",
        ),
    }
}

fn scratch(receipt: &Receipt, dir: &ReceiptDir, findings: &mut Findings) {
    let Some([scratch, own]) = receipt.scratch_identity else { return };
    let (place, path) = (dir.scratch(), dir.path());
    let remedy = "bring the one back that was allocated; another one is never emptied and harms nothing else";
    match (identity(&place), identity(path)) {
        (Ok(found), Ok(above)) if found == scratch && above == own => {}
        (Err(error), _) => findings.warning(place.display(), format!("is not there: {error}"), remedy),
        _ => findings.warning(place.display(), "is not the directory that was allocated", remedy),
    }
}

/// What is kept of a task that has no result yet.
fn active(ground: &Ground<'_>, dir: &ReceiptDir, receipt: &Receipt, findings: &mut Findings) -> Result<()> {
    if let Err(error) = read_bytes(&dir.executions()) {
        findings.error(
            dir.executions().display(),
            error.to_string(),
            "move it away; whether an execution ended is not known without it, and the task waits until it is",
        );
    }
    let name = format!("refs/heads/{}", receipt.branch);
    let baseline = receipt.baseline;
    let head = ground.repo.resolve(&name)?;
    if ground.loose.is_broken(&name) {
        return Ok(());
    }
    match head {
        None => findings.error(
            &name,
            format!("is gone, and {} has no result yet", receipt.task),
            format!(
                "make it again where its work was (`git -C {} reflog`), with `git branch {} <commit>`",
                typed(&[], &receipt.worktree),
                receipt.branch
            ),
        ),
        Some(head) if !descends(ground, receipt, head)? => findings.error(
            &name,
            format!("is at {head}, which does not descend from {baseline}, where {} began", receipt.task),
            format!("see `git reflog {}`, and put the branch back onto the task's own work", receipt.branch),
        ),
        Some(_) => {}
    }
    let recovery = &receipt.recovery_ref;
    if let Some(at) = ground.refs.get(recovery)
        && head != Some(*at)
        && !ground.loose.is_broken(recovery)
    {
        findings.error(
            recovery,
            format!("keeps {at}, and no result of {} is bound; it stands in the way of one", receipt.task),
            format!(
                "see `git log {at}`; where nobody needs it, give it up with `{}`",
                shell::line(["git", "update-ref", "-d", recovery, &at.to_string()])
            ),
        );
    }
    Ok(())
}

fn descends(ground: &Ground<'_>, receipt: &Receipt, head: crate::git::Oid) -> Result<bool> {
    Ok(ground.repo.commit(receipt.baseline)?.is_some() && ground.repo.is_ancestor(receipt.baseline, head)?)
}
