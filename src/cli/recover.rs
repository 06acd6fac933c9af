//! `git devlyn recover`.

use std::fmt::Write;

use super::args::Recover;
use super::reply::Reply;
use super::{repository, text};
use crate::store::Layout;
use crate::task::{self, Recovered, TaskError};

pub(super) fn run(asked: &Recover) -> Reply {
    let recovered = repository(asked.repository.repo.as_deref()).map_err(TaskError::from).and_then(|repo| {
        let layout = Layout::new(repo.common_dir());
        task::recover(&repo, &layout, &asked.task, asked.dry_run)
    });
    match recovered {
        Ok(recovered) => {
            let text = told(&recovered, asked.dry_run);
            Reply::new(&recovered, text)
        }
        Err(error) => Reply::blocked(error),
    }
}

fn told(recovered: &Recovered, dry_run: bool) -> String {
    let Recovered { task, worktree, branch, receipt, holds, .. } = recovered;
    let mut text = format!("The allocation of {} was never finished:\n", text::visible(task));
    let place = worktree.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
    for (what, name, held) in [
        ("worktree", place, &holds.worktree),
        ("branch", branch.clone(), &holds.branch),
        ("receipt", receipt.display().to_string(), &holds.receipt),
    ] {
        let line = format!("  {what:<8}  {name}{}{held}", if name.is_empty() { "" } else { ": " });
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{}", text::visible(&line));
    }
    text.push_str(if dry_run {
        "Nothing of it is anybody's work; without --dry-run it is removed.\n"
    } else {
        "Removed, for nothing of it was anybody's work. A drain allocates the task anew.\n"
    });
    text
}
