//! `git devlyn status`.

use std::fmt::Write;

use super::args::Status;
use super::reply::Reply;
use super::repository;
use super::text::{self, Colour};
use crate::drain::{self, Counts, Item};

pub(super) fn run(asked: &Status, json: bool) -> Reply {
    let repo = match repository(asked.repository.repo.as_deref()) {
        Ok(repo) => repo,
        Err(error) => return Reply::blocked(error),
    };
    match drain::status(&repo, asked.locality.local_only) {
        Ok(status) => {
            let text = if json { String::new() } else { told(&status) };
            Reply::new(&status, text)
        }
        Err(error) => Reply::blocked(error),
    }
}

fn told(status: &drain::Status) -> String {
    let colours = text::colours();
    let mut text = format!("{}\n", counts(&status.counts));
    if !status.tasks.is_empty() {
        text.push('\n');
        text.push_str(&table(&status.tasks, colours));
    }
    if !status.others.is_empty() {
        text.push('\n');
        for blocker in &status.others {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "  {}", text::visible(blocker));
        }
    }
    for kept in &status.cleanup {
        let _ = writeln!(text, "\nkept: {}", text::visible(kept));
    }
    for item in &status.delivery {
        if let Some(resume) = item.owned.as_ref().and_then(|owned| owned.resume.as_ref()) {
            let _ = writeln!(text, "\n{} is not delivered yet: {}", item.identity, text::visible(resume));
        }
    }
    if let Some(next) = &status.next {
        let _ = writeln!(
            text,
            "\nNext is {}: git devlyn drain -- <executor> '{{packet}}'",
            text::painted(next, Colour::Bold, colours)
        );
    }
    text
}

/// The counts in words, without what there is none of.
pub(super) fn counts(counts: &Counts) -> String {
    let told: Vec<String> = [
        (counts.accepted, "accepted"),
        (counts.failed, "failed"),
        (counts.blocked, "blocked"),
        (counts.active, "active"),
        (counts.pending, "pending"),
    ]
    .iter()
    .filter(|(number, _)| *number > 0)
    .map(|(number, word)| format!("{number} {word}"))
    .collect();
    let total = counts.accepted + counts.failed + counts.blocked + counts.active + counts.pending;
    let mut text = text::counted(total, "task");
    if !told.is_empty() {
        let _ = write!(text, ": {}", told.join(", "));
    }
    if counts.legacy_pending > 0 {
        let _ = write!(text, "; {} to plan", text::counted(counts.legacy_pending, "legacy row"));
    }
    text
}

/// The tasks, a line each.
pub(super) fn table(tasks: &[Item], colours: bool) -> String {
    let width = tasks.iter().map(|task| task.identity.chars().count()).max().unwrap_or_default();
    let mut text = String::new();
    for task in tasks {
        let result = text::painted(&format!("{:<8}", task.result), text::of_result(task.result), colours);
        let delivery = task
            .owned
            .as_ref()
            .and_then(|owned| owned.delivery)
            .map(crate::store::Delivery::as_str)
            .unwrap_or_default();
        let about = task.reason.as_deref().unwrap_or(delivery);
        let line = format!("  {:<width$}  {result}  {}", task.identity, text::visible(about).replace('\n', " "));
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", line.trim_end());
    }
    text
}
