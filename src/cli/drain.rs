//! `git devlyn drain`.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::io::{IsTerminal, Write as _};

use super::args::Drain;
use super::reply::Reply;
use super::{repository, status, text};
use crate::drain::{self, Drained, Event, Options};
use crate::os::process::{Grace, Interrupts};

pub(super) fn run(asked: Drain, json: bool) -> Reply {
    let repo = match repository(asked.repository.repo.as_deref()) {
        Ok(repo) => repo,
        Err(error) => return Reply::blocked(error),
    };
    if let Err(error) = Interrupts::install(Grace::default()) {
        return Reply::blocked(format!("signals cannot be watched: {error}"));
    }
    let options = Options {
        local_only: asked.locality.local_only,
        worktree_root: asked.worktree_root,
        executor: from_here(asked.executor),
    };
    let terminal = std::io::stderr().is_terminal();
    let mut tell = |event: Event| {
        let line = if terminal {
            format!("{}  {}", event.task, text::visible(&event.text))
        } else {
            format!("devlyn-loop: {}: {}", event.task, text::visible(&event.text).replace('\n', " "))
        };
        // A drain goes on where nobody reads its progress any more.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
    };
    let result = drain::drain(&repo, &options, &mut tell);
    match result {
        Ok(drained) => {
            let code = drained.interrupted.map_or(0, |signal| 128 + u8::try_from(signal).unwrap_or_default());
            let text = if json { String::new() } else { told(&drained) };
            Reply::new(&drained, text).exiting(code)
        }
        Err(error) => Reply::blocked(error),
    }
}

/// The executor's argv, its program by its whole path where it was typed as a path from here. It runs in the worktree of
/// its task, where the same path is a copy that the executor before it could change, or nothing.
fn from_here(mut argv: Vec<OsString>) -> Vec<OsString> {
    if let Some(program) = argv.first_mut()
        && program.as_encoded_bytes().contains(&b'/')
        && let Ok(place) = std::path::absolute(&*program)
        && place.is_file()
    {
        *program = place.into();
    }
    argv
}

fn told(drained: &Drained) -> String {
    let colours = text::colours();
    let mut text = format!("{}: {}\n", drained.status, status::counts(&drained.counts));
    if !drained.tasks.is_empty() {
        text.push('\n');
        text.push_str(&status::table(&drained.tasks, colours));
    }
    for kept in &drained.cleanup {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "\nnote: {}", text::visible(kept));
    }
    if !drained.bring.is_empty() {
        text.push('\n');
    }
    for (loop_id, branch, command) in &drained.bring {
        let _ = writeln!(text, "Bring {loop_id} into {branch}: {command}");
    }
    if !drained.reports.is_empty() {
        text.push_str("\nSee it whole with `git devlyn report`.\n");
    }
    text
}
