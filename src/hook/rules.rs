//! The rules H1 to H8 as a judgement over plain values. Never reads anything.

use super::facts::{FileChange, LoopChange, Proof, QueueChange, QueueVersion, Subject, When};
use super::merge::{judge_merged, row_of};
use super::violation::{Rule, Violation};
use crate::git::EntryKind;
use crate::package::{Identity, LoopId};
use crate::queue::{Illegal, LEGACY_QUEUE, Mark, QueueFile, Transition, transition, with_mark};
use crate::store::Verdict;

/// Everything that `subject` does and may not.
pub(super) fn judge(subject: &Subject) -> Vec<Violation> {
    let mut found = Vec::new();
    if let Some(path) = &subject.inside {
        found.push(Violation::new(
            Rule::H1,
            path,
            "`.devlyn/` holds the evidence of tasks; it is never part of a commit",
            "run `git rm -r -q --cached .devlyn`, and see that `.devlyn/` is ignored",
        ));
    }
    if subject.exposed {
        found.push(Violation::new(
            Rule::H2,
            ".gitignore",
            "`.devlyn/` is not ignored after it, and this repository has a loop",
            "keep the line `.devlyn/` in .gitignore, or put it into info/exclude (`git devlyn init` does)",
        ));
    }
    for change in &subject.loops {
        if let Some(queue) = &change.queue {
            judge_queue(subject, change, queue, &mut found);
        }
        found.extend(change.files.iter().filter_map(package_fault));
        if subject.owner.as_ref().is_some_and(|owner| owner.loop_id == change.loop_id) {
            judge_owned(subject, change, &mut found);
        }
    }
    if let Some(owner) = &subject.owner
        && subject.legacy
    {
        found.push(owned_fault(owner, LEGACY_QUEUE.to_owned()));
    }
    found
}

/// The rules on a queue file: H3 to H6, and the deletion of H7.
fn judge_queue(subject: &Subject, change: &LoopChange, queue: &QueueChange, found: &mut Vec<Violation>) {
    let (loop_id, path) = (&change.loop_id, change.loop_id.queue_file());
    let known: Vec<&QueueVersion> =
        queue.parents.iter().flatten().filter(|parent| is_queue(loop_id, &parent.data)).collect();
    let deleted = queue.new.is_none() && queue.parents.iter().all(Option::is_some);
    if deleted && !known.is_empty() {
        let rule = if queue.captured.is_some() { Rule::H7 } else { Rule::H3 };
        found.push(Violation::new(
            rule,
            path,
            "the queue file of a loop is deleted; it is the record of what was done",
            "restore it (`git restore --source=HEAD --staged --worktree -- <file>`)",
        ));
        return;
    }
    match (known.as_slice(), &queue.new) {
        ([], Some(new)) => {
            found.extend(captured_fault(loop_id, new, queue.captured.as_deref()));
            let steps = settled(loop_id, new);
            found.extend(steps.iter().filter_map(|step| proof_fault(subject.proofs.get(&step.identity), &path, step)));
        }
        ([], None) => {}
        (_, new) if subject.merge => found.extend(judge_merged(loop_id, &known, new.as_ref())),
        ([old, ..], Some(new)) => match legal(old, new) {
            Ok(step) => {
                found.extend(alone_fault(subject, loop_id, &step.identity));
                found.extend(proof_fault(subject.proofs.get(&step.identity), &path, &step));
            }
            Err(illegal) => found.extend(illegal.map(|illegal| illegal_fault(&path, &new.data, &illegal))),
        },
        ([_, ..], None) => {}
    }
}

/// Whether these are the bytes of a loop's queue file, whole or broken: one that holds a row of that loop.
fn is_queue(loop_id: &LoopId, data: &[u8]) -> bool {
    data.split(|byte| *byte == b'\n').filter_map(row_of).any(|row| row.identity.loop_id == *loop_id)
}

/// The transition between two versions; otherwise why it is none, where anything changed at all.
pub(super) fn legal(old: &QueueVersion, new: &QueueVersion) -> Result<Transition, Option<Illegal>> {
    if old == new {
        return Err(None);
    }
    let step = transition(&old.data, &new.data);
    if old.kind == new.kind { step.map_err(Some) } else { Err(Some(step.err().unwrap_or(Illegal::Nothing))) }
}

/// The rows that a queue file has settled, each as the step that settled it.
pub(super) fn settled(loop_id: &LoopId, version: &QueueVersion) -> Vec<Transition> {
    let rows = QueueFile::parse(loop_id, &version.data).ok().flatten().map(|file| file.rows).unwrap_or_default();
    let settled = rows.into_iter().filter(|row| row.mark != Mark::Pending);
    settled.map(|row| Transition { identity: row.identity, failure: row.failure }).collect()
}

fn illegal_fault(path: &str, new: &[u8], illegal: &Illegal) -> Violation {
    let fault = |what: String, remedy: &str| Violation::new(Rule::H3, path, what, remedy);
    match illegal {
        Illegal::Nothing => fault(
            "the queue file became another kind of file".to_owned(),
            "keep it a plain file: `git update-index --chmod=-x <file>`, or restore it",
        ),
        Illegal::Line(line) => fault(
            illegal.to_string(),
            "restore the file; its rows come from `git devlyn add` and stay as they are, new work is a new loop",
        )
        .row(format!("line {line}")),
        Illegal::Settled(identity) if has_pending(new, identity) => fault(
            format!("the settled row of {identity} was turned back to pending; a result is not taken back"),
            "keep the terminal commit; revert the commits of the product instead, and plan the task anew as a new loop",
        )
        .row(identity),
        Illegal::Settled(identity) => {
            fault(illegal.to_string(), "restore the row; what was found out stays as it was written").row(identity)
        }
        Illegal::Several(first, second) => {
            fault(illegal.to_string(), "settle one row a commit, as `git devlyn drain` does")
                .row(format!("{first}, {second}"))
        }
        Illegal::Form(identity) => fault(
            illegal.to_string(),
            "change only the mark; `[F]` also needs ` — <reason> (receipt <id>)` at the end of its row",
        )
        .row(identity),
    }
}

fn has_pending(data: &[u8], identity: &Identity) -> bool {
    with_mark(data, identity, None).is_some()
}

/// H4.
fn alone_fault(subject: &Subject, loop_id: &LoopId, identity: &Identity) -> Option<Violation> {
    let other = subject.besides.get(loop_id)?;
    let what = format!("the row is settled together with a change of {other}");
    let remedy = "commit the row alone: take everything else out of this commit (`git restore --staged -- <file>`)";
    Some(Violation::new(Rule::H4, loop_id.queue_file(), what, remedy).row(identity))
}

/// H5.
fn proof_fault(proof: Option<&Proof>, path: &str, step: &Transition) -> Option<Violation> {
    let (what, remedy) = match proof? {
        Proof::Unreadable(why) => (format!("the receipt of the task cannot be read: {why}"), "see `git devlyn fsck`"),
        Proof::Receipt(key, None) => (
            format!("the receipt {key} has no result yet, so no row can say one"),
            "leave the row pending; `git devlyn drain` settles it when the evidence is bound",
        ),
        Proof::Receipt(key, Some(verdict)) => {
            let failed = *verdict == Verdict::Failed;
            let (is, says) = if failed { ("failed", "accepted") } else { ("accepted", "failed") };
            if failed != step.failure.is_some() {
                (format!("the row says {says}, the receipt {key} says {is}"), "write what the receipt says")
            } else if step.failure.as_ref().is_some_and(|failure| failure.receipt.as_deref() != Some(key)) {
                let named = step.failure.as_ref().and_then(|failure| failure.receipt.as_deref()).unwrap_or("none");
                (format!("the row names the receipt {named}, the task's is {key}"), "name the task's own receipt")
            } else {
                return None;
            }
        }
    };
    Some(Violation::new(Rule::H5, path, what, remedy).row(&step.identity))
}

/// H6, for a queue file that no parent has.
fn captured_fault(loop_id: &LoopId, new: &QueueVersion, captured: Option<&[u8]>) -> Option<Violation> {
    let captured = captured?;
    if new.kind == EntryKind::File && is_marked(loop_id, captured, &new.data) {
        return None;
    }
    let remedy = format!(
        "take it from the capture: `git show {}:{path} > {path}`; a changed plan needs a new loop id",
        loop_id.capture_ref(),
        path = loop_id.queue_file()
    );
    let what = "it is not the captured queue file with rows settled";
    Some(Violation::new(Rule::H6, loop_id.queue_file(), what, remedy))
}

/// Whether `new` is `captured` with zero or more pending rows settled.
fn is_marked(loop_id: &LoopId, captured: &[u8], new: &[u8]) -> bool {
    let Ok(Some(file)) = QueueFile::parse(loop_id, new) else { return false };
    let settled = file.rows.iter().filter(|row| row.mark != Mark::Pending);
    let marked = settled.into_iter().try_fold(captured.to_vec(), |bytes, row| {
        // A row that the capture has settled already stands there as it is.
        with_mark(&bytes, &row.identity, row.failure.as_ref()).or(Some(bytes))
    });
    marked.is_some_and(|marked| marked == new)
}

/// H7, for a file of the captured package.
fn package_fault(file: &FileChange) -> Option<Violation> {
    let captured = file.captured.as_ref()?;
    if file.draft || file.new.as_ref() == Some(captured) {
        return None;
    }
    let what = match &file.new {
        Some(new) if new.id == captured.id => "became another kind of file than was captured",
        Some(_) => "differs from what was captured; a package never changes once it is added",
        None => "a file of a captured package is deleted",
    };
    let remedy = "restore it (`git restore --source=HEAD --staged --worktree -- <file>`); a changed plan is a new loop";
    Some(Violation::new(Rule::H7, &file.path, what, remedy))
}

/// H8, below the task's own loop.
fn judge_owned(subject: &Subject, change: &LoopChange, found: &mut Vec<Violation>) {
    let Some(owner) = &subject.owner else { return };
    // Once the commits are made, those of the drain itself are among them: the package as it was captured, and the row
    // that the bound receipt settles. They harm nothing, whoever made them.
    let later = subject.when == When::Later;
    for file in &change.files {
        if !(later && file.new.is_some() && file.new == file.captured) {
            found.push(owned_fault(owner, file.path.clone()));
        }
    }
    let Some(queue) = &change.queue else { return };
    let known = queue.parents.iter().flatten().next();
    let lawful = match (known, &queue.new) {
        _ if subject.merge => true,
        (None, Some(new)) => later && captured_fault(&change.loop_id, new, queue.captured.as_deref()).is_none(),
        (Some(old), Some(new)) => {
            later
                && legal(old, new)
                    .is_ok_and(|step| matches!(subject.proofs.get(&step.identity), Some(Proof::Receipt(_, Some(_)))))
        }
        (_, None) => false,
    };
    if !lawful {
        found.push(owned_fault(owner, change.loop_id.queue_file()).row(owner));
    }
}

fn owned_fault(owner: &Identity, path: String) -> Violation {
    let what = format!("the branch {} belongs to a task; its commits leave the plan alone", owner.branch());
    let remedy = "take the file out of the commit; what is wrong with the plan belongs into the submission";
    Violation::new(Rule::H8, path, what, remedy)
}
