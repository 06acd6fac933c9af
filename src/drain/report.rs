//! The report of a loop, rewritten after every drain (formats, "Report").

use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

use super::{Item, LoopMode, remote};
use crate::git::{Oid, Repo};
use crate::package::{FileState, Identity, Meta, Source};
use crate::store::{make_dir, write_bytes};
use crate::view::{CheckoutSource, Loop, Outcome, Starts, View};

/// What the drain has to say.
pub(super) struct Told<'a> {
    /// How it ended.
    pub(super) status: &'a str,
    /// Why it does not go on.
    pub(super) reason: Option<&'a str>,
    /// Every task of the view, in its order.
    pub(super) items: &'a [Item],
}

/// Writes the report of `found` to `path`; the branch and the command that bring its accepted work in, where there is
/// some.
///
/// # Errors
/// Why it could not be written, in words.
pub(super) fn write(
    repo: &Repo,
    path: &Path,
    view: &View,
    starts: &Starts<'_>,
    found: &Loop,
    told: &Told<'_>,
) -> Result<Option<(String, String)>, String> {
    let (text, way) = render(repo, view, starts, found, told).map_err(|error| error.to_string())?;
    let folder = path.parent().unwrap_or(path);
    make_dir(folder).and_then(|()| write_bytes(path, text.as_bytes())).map_err(|error| error.to_string())?;
    Ok(way)
}

fn render(
    repo: &Repo,
    view: &View,
    starts: &Starts<'_>,
    found: &Loop,
    told: &Told<'_>,
) -> crate::view::Result<(String, Option<(String, String)>)> {
    let mut text = format!("# Drain report — {}\n", found.id);
    let mut line = |label: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {label}: {}", visible(value));
    };
    line("Generated", &jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%S+00:00").to_string());
    let place = found.record.as_ref().map_or_else(
        || repo.work_dir().join(found.id.queue_file()).display().to_string(),
        |record| format!("{} (capture {})", record.capture, record.commit),
    );
    line("Queue", &place);
    line("Drain", &told.reason.map_or_else(|| told.status.to_owned(), |reason| format!("{} — {reason}", told.status)));
    let loop_index = view.queue.loops.iter().position(|other| other.id == found.id).unwrap_or_default();
    line("Whole-loop acceptance", &whole_loop(view, found));
    let way = bring_into(repo, view, starts, loop_index, found)?;
    if let Some((branch, command)) = &way {
        line(&format!("Bring into {branch}"), command);
    }
    text.push_str("\n## Package decisions and assumptions\n\n");
    text.push_str(&decisions(repo, found));
    text.push('\n');
    for (identity, item) in entries(view, found, told) {
        let _ = writeln!(text, "\n## {identity}\n");
        match item {
            None => text.push_str("- Product: not yet run\n"),
            Some(item) => {
                for (label, value) in lines(item) {
                    let _ = writeln!(text, "- {label}: {}", visible(&value));
                }
            }
        }
    }
    Ok((text, way))
}

/// Every task of the loop in manifest order, those that no row has without an item.
fn entries<'a>(view: &View, found: &Loop, told: &Told<'a>) -> Vec<(String, Option<&'a Item>)> {
    let item = |identity: &str| told.items.iter().find(|item| item.identity == identity);
    match &found.manifest {
        Ok(manifest) => manifest
            .tasks
            .iter()
            .map(|task| found.id.task(&task.id).to_string())
            .map(|identity| (identity.clone(), item(&identity)))
            .collect(),
        Err(_) => found
            .queue
            .rows
            .iter()
            .filter(|row| view.task(&row.identity).is_some())
            .map(|row| (row.identity.to_string(), item(&row.identity.to_string())))
            .collect(),
    }
}

fn whole_loop(view: &View, found: &Loop) -> String {
    let Ok(manifest) = &found.manifest else { return "INCOMPLETE — its package cannot be read".to_owned() };
    let gaps: Vec<String> = manifest
        .tasks
        .iter()
        .map(|task| found.id.task(&task.id))
        .filter_map(|identity| match view.task(&identity) {
            None => Some(format!("{identity} not yet run")),
            Some(task) => match (task.outcome(), task.accepted_source()) {
                (Outcome::Accepted, Some(_)) => None,
                (Outcome::Accepted, None) => Some(format!("{identity} marked without a receipt")),
                (outcome, _) => Some(format!("{identity} {}", outcome.as_str())),
            },
        })
        .collect();
    if gaps.is_empty() { "ACCEPTED".to_owned() } else { format!("INCOMPLETE — {}", gaps.join(", ")) }
}

/// The branch that the accepted frontier is brought into, and the command that does it; none where it is there already.
fn bring_into(
    repo: &Repo,
    view: &View,
    starts: &Starts<'_>,
    loop_index: usize,
    found: &Loop,
) -> crate::view::Result<Option<(String, String)>> {
    if let Some(base) = remote::delivered_base(view, loop_index) {
        let from = format!("{}/{base}", remote::REMOTE);
        let tip = repo.resolve(&format!("refs/remotes/{from}"))?;
        return way_into(repo, base, tip, &from);
    }
    if matches!(LoopMode::of(view, loop_index, false), LoopMode::Remote(_)) {
        return Ok(None);
    }
    let Some(record) = &found.record else { return Ok(None) };
    let Some(frontier) = starts.frontier(view, loop_index)? else { return Ok(None) };
    let Some(terminal) = &frontier.receipt.queue else { return Ok(None) };
    if !is_proven(view, found, &frontier.receipt.task) {
        return Ok(None);
    }
    // Whoever has its worktree may have committed on its branch since, or taken it away.
    let branch = frontier.receipt.branch.as_str();
    let whole = repo.resolve(&format!("refs/heads/{branch}"))? == Some(terminal.commit);
    let from = if whole { branch } else { frontier.receipt.recovery_ref.as_str() };
    way_into(repo, record.branch.clone(), Some(terminal.commit), from)
}

/// Whether the task and everything that it was begun on is accepted, as far as evidence goes.
fn is_proven(view: &View, found: &Loop, task: &str) -> bool {
    let (mut behind, mut seen) = (Identity::parse(task).into_iter().collect::<Vec<_>>(), BTreeSet::new());
    while let Some(identity) = behind.pop() {
        if !view.task(&identity).is_some_and(|task| task.outcome() == Outcome::Accepted) {
            return false;
        }
        let further = found.prerequisites(&identity);
        if seen.insert(identity) {
            behind.extend(further);
        }
    }
    true
}

/// The command that merges `from`, which is at `tip`, into `branch`, where that lacks it.
fn way_into(
    repo: &Repo,
    branch: String,
    tip: Option<Oid>,
    from: &str,
) -> crate::view::Result<Option<(String, String)>> {
    if let (Some(tip), Some(head)) = (tip, repo.resolve(&format!("refs/heads/{branch}"))?)
        && matches!(repo.is_ancestor(tip, head), Ok(true))
    {
        return Ok(None);
    }
    Ok(Some((branch, crate::shell::line(["git", "merge", "--ff", from]))))
}

/// The package's decisions, from the capture where there is one.
fn decisions(repo: &Repo, found: &Loop) -> String {
    let path = found.id.meta_file();
    let bytes = match &found.record {
        Some(record) => match repo.file(record.commit, &path) {
            Ok(Some(blob)) => Ok(blob.data),
            Ok(None) => Err(format!("{path} is not in the capture")),
            Err(error) => Err(format!("{path}: {error}")),
        },
        None => match CheckoutSource::new(repo).file(&path) {
            FileState::Bytes(bytes) => Ok(bytes),
            FileState::Missing => Err(format!("{path} is missing")),
            FileState::Unreadable(why) => Err(format!("{path} {why}")),
        },
    };
    let meta = bytes.and_then(|bytes| {
        Meta::parse(&found.id, &bytes).map_err(|faults| faults.first().map(ToString::to_string).unwrap_or_default())
    });
    match meta {
        Ok(meta) if meta.decisions().trim().is_empty() => "None recorded.".to_owned(),
        Ok(meta) => meta.decisions().trim().to_owned(),
        Err(why) => format!("Unavailable: {why}"),
    }
}

/// What is known of a task, each with its label.
fn lines(item: &Item) -> Vec<(&'static str, String)> {
    let mut lines = vec![("Product", item.result.to_owned())];
    let mut known = |label, value: Option<String>| lines.extend(value.map(|value| (label, value)));
    known("Reason", item.reason.clone());
    known("Receipt", item.receipt.as_ref().map(|path| path.display().to_string()));
    let Some(owned) = &item.owned else { return lines };
    known("Evidence custody", owned.custody.as_ref().map(|path| path.display().to_string()));
    known("Recovery ref", Some(owned.recovery_ref.clone()));
    known("Allocation base", Some(owned.allocation_base.to_string()));
    known("Accepted source", owned.source.map(|id| id.to_string()));
    known("Unaccepted source", owned.candidate.map(|id| id.to_string()));
    known("Terminal commit", owned.terminal.map(|id| id.to_string()));
    known("Delivery", owned.delivery.map(|delivery| delivery.as_str().to_owned()));
    known("PR", owned.pr.clone());
    known("Resume", owned.resume.clone());
    known("Assumptions", joined(&owned.assumptions));
    known("Unresolved questions", joined(&owned.questions));
    known("Retained worktree", owned.worktree.as_ref().map(|path| path.display().to_string()));
    known("Workspace cleanup", owned.cleanup.clone());
    known("Branch", Some(owned.branch.clone()));
    known("Scratch cleanup", owned.scratch.clone());
    lines
}

fn joined(texts: &[String]) -> Option<String> {
    (!texts.is_empty()).then(|| texts.join("; "))
}

/// The text on one line, control characters made visible.
fn visible(text: &str) -> String {
    let line = text.split(['\n', '\r']).filter(|part| !part.is_empty()).collect::<Vec<_>>().join(" ");
    line.chars().flat_map(|c| if c.is_control() { c.escape_default().collect::<Vec<_>>() } else { vec![c] }).collect()
}
