//! `git devlyn add`.

use std::fmt::Write;
use std::num::NonZeroUsize;
use std::path::Path;

use super::args::Add;
use super::reply::Reply;
use super::{check, here, text};
use crate::add;

pub(super) fn run(asked: &Add) -> Reply {
    let target = Path::new(&asked.package.package);
    let line = asked.materialize.map(NonZeroUsize::get);
    match add::add(target, &here(), asked.package.repository.repo.as_deref(), line) {
        Ok(added) => {
            let mut text = format!("Added {}:\n", text::counted(added.tasks.len(), "task"));
            for task in &added.tasks {
                // Writing to a string cannot fail.
                let _ = writeln!(text, "  {task}");
            }
            let _ = writeln!(text, "{}", added.message);
            for kept in &added.cleanup {
                let _ = writeln!(text, "kept: {}", text::visible(kept));
            }
            text.push_str("Next: git devlyn drain -- <executor> '{packet}'\n");
            Reply::new(&added, text).with([("status", "ADDED".into())])
        }
        Err(error) => check::refused(error, target, asked.package.repository.repo.as_deref()),
    }
}
