//! Rows against receipts, as a drain reads them: whatever would stop it and no other check has told of.

use std::collections::HashSet;

use super::ground::Ground;
use super::{Findings, Result, Severity};
use crate::git::Oid;
use crate::queue::{Mark, QueueFile, Row};
use crate::store::Verdict;
use crate::view::{Captures, Outcome, Start, Starts, State, TaskView, View, ViewError};

pub(super) fn check(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    committed(ground, findings)?;
    let view = match View::read(ground.repo, ground.layout, &Captures::default()) {
        Ok(view) => view,
        Err(ViewError::Git(error)) => return Err(error.into()),
        Err(error) => {
            // Where a record or capture was found to be wrong this says it again.
            if findings.errors() == 0 {
                let remedy = "put it right; nothing is drained until then";
                match error {
                    ViewError::Queue { place, why } => findings.error(place, why, remedy),
                    ViewError::Store(error) => findings.error("the queue", error.to_string(), remedy),
                    ViewError::Git(_) => {}
                }
            }
            return Ok(());
        }
    };
    let told: HashSet<String> = findings
        .0
        .iter()
        .filter(|finding| finding.severity != Severity::Info)
        .map(|finding| finding.place.clone())
        .collect();
    for task in &view.tasks {
        if let State::Invalid { reason, .. } = &task.state
            && !is_told(ground, task, &told)
        {
            let place = ground.layout.receipt_dir(&task.identity.key()).receipt();
            findings.error(
                place.display(),
                format!("{}: {reason}", task.identity),
                "put back what was changed; until then it proves nothing, and the task waits",
            );
        }
    }
    ignored(ground, &view, findings)
}

/// Whether a finding on the task's receipt, custody, packet, branch or recovery ref was told already.
fn is_told(ground: &Ground<'_>, task: &TaskView, told: &HashSet<String>) -> bool {
    let (key, branch) = (task.identity.key(), format!("refs/heads/{}", task.identity.branch()));
    let folder = ground.layout.receipt_dir(&key).path().display().to_string();
    let refs = [key.recovery_ref(), branch];
    let broken = refs.iter().any(|name| ground.loose.is_broken(name));
    broken || told.iter().any(|place| place.starts_with(&folder) || refs.contains(place))
}

/// What the checked out commit says of recorded loops, against their receipts.
fn committed(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    let Some(head) = ground.repo.head()?.commit() else { return Ok(()) };
    for found in &ground.loops {
        let loop_id = &found.record.loop_id;
        let Ok(Some(blob)) = ground.repo.file(head, &loop_id.queue_file()) else { continue };
        let Ok(Some(queue)) = QueueFile::parse(loop_id, &blob.data) else { continue };
        for row in &queue.rows {
            if let Some(why) = contradiction(ground, row) {
                findings.error(
                    format!("{}:{}", head, loop_id.queue_file()),
                    format!("marks {} as [{}], and {why}", row.identity, row.mark.as_char()),
                    format!("see `git log -p -- {}`; the receipt counts, not the mark", loop_id.queue_file()),
                );
            }
        }
    }
    Ok(())
}

fn contradiction(ground: &Ground<'_>, row: &Row) -> Option<String> {
    if row.mark == Mark::Pending {
        return None;
    }
    let Some(owned) = ground.owned(row.identity.key().as_str()) else {
        // A blocked task has no receipt of its own: that of its prerequisite proves it.
        let blocked = row.failure.as_ref().is_some_and(|why| why.reason.starts_with("blocked-prerequisite:"));
        return (!blocked).then(|| "no receipt here proves that".to_owned());
    };
    let Ok(Some(receipt)) = &owned.receipt else { return None };
    match (receipt.verdict(), row.mark) {
        (Some(Verdict::Accepted), Mark::Accepted) | (Some(Verdict::Failed), Mark::Failed) => None,
        (None, _) => Some("its receipt has no result yet".to_owned()),
        (Some(Verdict::Accepted), _) => Some("its receipt says that it was accepted".to_owned()),
        (Some(Verdict::Failed), _) => Some("its receipt says that it failed".to_owned()),
    }
}

/// Commits that open work starts from must ignore `.devlyn/`.
fn ignored(ground: &Ground<'_>, view: &View, findings: &mut Findings) -> Result<()> {
    let starts = Starts::new(ground.repo);
    let mut seen: HashSet<Oid> = HashSet::new();
    for task in &view.tasks {
        let start = match (&task.state, task.outcome()) {
            (State::Owned(held, _), Outcome::Active) => held.receipt.baseline,
            (State::Absent, Outcome::Pending) => match starts.local(view, task) {
                Ok(Ok(Start::Base(id) | Start::Accepted(_, id))) => id,
                // What keeps it from starting at all is told by `status`.
                Ok(Err(_)) | Err(_) => continue,
            },
            _ => continue,
        };
        if !seen.insert(start) || ground.repo.commit(start)?.is_none() {
            continue;
        }
        if !ground.repo.ignores_folder(start, ".devlyn")? {
            findings.error(
                start,
                format!("{} works on this commit, and it does not ignore .devlyn/", task.identity),
                format!(
                    "write `.devlyn/` into {}, or commit it to .gitignore where the work starts",
                    ground.layout.common().join("info/exclude").display()
                ),
            );
        }
    }
    Ok(())
}
