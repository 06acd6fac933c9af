//! `git devlyn init`.

use super::args::Init;
use super::reply::Reply;
use super::{any_repository, here};
use crate::git::git_version;
use crate::hook::{self, HookError, InitReport};
use crate::json::json;

pub(super) fn run(asked: &Init) -> Reply {
    let options = hook::Init {
        uninstall: asked.uninstall,
        protect_refs: asked.protect_refs,
        notes: asked.notes,
        dry_run: asked.dry_run,
    };
    let done = any_repository(asked.repository.repo.as_deref())
        .map_err(HookError::from)
        .and_then(|repo| hook::init(&repo, options, git_version(&here())?));
    match done {
        Ok(report) => {
            let status = match (asked.uninstall, report.managed) {
                (true, _) => "UNINSTALLED",
                (false, true) => "MANAGED",
                (false, false) => "INSTALLED",
            };
            let object = json!({
                "status": status, "hooks": report.hooks.to_string_lossy(), "dry_run": report.dry_run,
                "steps": report.steps, "left": report.left,
            });
            Reply::new(&object, told(&report, asked.uninstall))
        }
        Err(error) => Reply::blocked(error),
    }
}

fn told(report: &InitReport, uninstall: bool) -> String {
    let would = if report.dry_run { "would " } else { "" };
    let mut lines: Vec<String> = report.steps.iter().map(|step| format!("{would}{step}")).collect();
    if report.steps.is_empty() && !report.managed {
        let state = if uninstall { "nothing of git devlyn is installed" } else { "everything is in place" };
        lines.push(format!("{state}: {}", report.hooks.display()));
    }
    lines.extend(report.left.iter().cloned());
    super::text::visible(&(lines.join("\n") + "\n"))
}
