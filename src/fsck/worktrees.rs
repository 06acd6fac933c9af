//! Worktrees against receipts: where each should stand, which it is, and what it has checked out.

use super::ground::Ground;
use super::{Findings, Result, typed};
use crate::exchange::Attempt;
use crate::git::MAKING;
use crate::os::tree::identity;
use crate::store::{Allocation, Delivery, Receipt, ReceiptDir};
use crate::view::attempt;

pub(super) fn check(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    let owned = ground.readable().filter(|(dir, receipt)| {
        receipt.allocation == Allocation::Owned && receipt.check_place(ground.layout, dir).is_ok()
    });
    for (dir, receipt) in owned {
        // A worktree that was cleaned away is no longer the task's.
        if receipt.status.as_deref() != Some("COMPLETE") {
            one(ground, dir, receipt, findings);
        }
    }
    half_made(ground, findings);
    Ok(())
}

fn one(ground: &Ground<'_>, dir: &ReceiptDir, receipt: &Receipt, findings: &mut Findings) {
    let place = &receipt.worktree;
    // Once it is delivered nothing depends on it any more: its owner may remove it.
    let needed = !receipt.delivery.is_some_and(Delivery::is_final);
    let found = identity(place).ok();
    let same = receipt.worktree_identity.is_none_or(|[recorded, _]| found == Some(recorded));
    let mut tell = |what: String, remedy: String| {
        if needed {
            findings.error(place.display(), what, remedy);
        } else {
            findings.warning(place.display(), what, remedy);
        }
    };
    let lost = || {
        format!(
            "bring it back from where it was moved to; {} goes on in no other, and is planned anew where it is lost",
            receipt.task
        )
    };
    match (found, ground.worktree(place)) {
        (None, None) if needed => tell(format!("the worktree of {} is gone", receipt.task), lost()),
        (None, None) => {}
        (None, Some(_)) if needed => {
            tell(format!("the worktree of {} is gone, and Git still has it on record", receipt.task), lost());
        }
        (None, Some(_)) => tell(
            format!("the worktree of {} is gone, and Git still has it on record", receipt.task),
            format!("`{}` takes it from the record", typed(&["git", "worktree", "remove", "--force"], place)),
        ),
        (Some(_), None) if needed || same => tell(
            format!("the worktree of {} is there, and Git does not know it", receipt.task),
            format!("try `{}`; else see what it holds and move it away", typed(&["git", "worktree", "repair"], place)),
        ),
        (Some(_), None) => {}
        (Some(_), Some(_)) if !same => {
            tell(format!("is not the worktree that was allocated for {}", receipt.task), lost());
        }
        (Some(_), Some(known)) => {
            let own = format!("refs/heads/{}", receipt.branch);
            if needed && known.branch.as_deref() != Some(&own) && !executing(dir) && !ground.loose.is_broken(&own) {
                let other = known.branch.as_deref().map_or("no branch", |name| name.trim_start_matches("refs/heads/"));
                tell(
                    format!("has {other} checked out, and not {}", receipt.branch),
                    format!("`git -C {} switch {}`", typed(&[], place), receipt.branch),
                );
            }
            if known.locked.as_deref() == Some(MAKING) {
                findings.warning(
                    place.display(),
                    format!("is locked as if it were being made, and {} owns it", receipt.task),
                    format!("`{}`", typed(&["git", "worktree", "unlock"], place)),
                );
            }
        }
    }
}

/// Whether somebody may be in the middle of something there.
fn executing(dir: &ReceiptDir) -> bool {
    attempt(dir) == Attempt::Open
}

/// Worktrees that an interrupted allocation left and that no receipt tells of.
fn half_made(ground: &Ground<'_>, findings: &mut Findings) {
    // Such a receipt is a finding of its own, and its recovery takes these away.
    let told = ground.readable().any(|(_, receipt)| receipt.allocation == Allocation::Allocating);
    if ground.allocating || told {
        return;
    }
    for found in ground.registrations.iter().filter(|found| found.locked.as_deref() == Some(MAKING)) {
        match &found.worktree {
            None => findings.warning(
                found.git_dir.display(),
                "is what Git has of a worktree that was never made",
                format!("`{}`", typed(&["rm", "-r"], &found.git_dir)),
            ),
            Some(place) if ground.readable().all(|(_, receipt)| receipt.worktree != *place) => findings.warning(
                place.display(),
                "is a worktree whose making was interrupted, and no receipt tells of it",
                format!(
                    "see what it holds; `{}`, then `{}`",
                    typed(&["git", "worktree", "unlock"], place),
                    typed(&["git", "worktree", "remove"], place)
                ),
            ),
            Some(_) => {}
        }
    }
}
