//! `git devlyn fsck`.

use std::fmt::Write;

use super::args::Fsck;
use super::reply::Reply;
use super::repository;
use super::text::{self, Colour};
use crate::fsck::{self, Finding, Severity};
use crate::json::json;
use crate::notes::{self, Rebuilt};
use crate::store::Layout;

pub(super) fn run(asked: &Fsck) -> Reply {
    let repo = match repository(asked.repository.repo.as_deref()) {
        Ok(repo) => repo,
        Err(error) => return Reply::blocked(error),
    };
    let rebuilt = if asked.rebuild_notes {
        match notes::rebuild(&repo, &Layout::new(repo.common_dir())) {
            Ok(rebuilt) => Some(rebuilt),
            Err(error) => return Reply::blocked(error),
        }
    } else {
        None
    };
    match fsck::fsck(&repo) {
        Ok(findings) => told(&findings, rebuilt.as_ref()),
        Err(error) => Reply::blocked(error),
    }
}

fn told(findings: &[Finding], rebuilt: Option<&Rebuilt>) -> Reply {
    // What was kept on purpose is shown and is no fault.
    let clean = findings.iter().all(|finding| finding.severity == Severity::Info);
    let (colours, mut text) = (text::colours(), String::new());
    if let Some(rebuilt) = rebuilt {
        let results = text::counted(rebuilt.results, "result");
        let verb = if rebuilt.changed { "noted anew" } else { "noted, as before" };
        // Writing to a string cannot fail.
        let _ = writeln!(text, "{results} {verb}.");
    }
    for finding in findings {
        let (word, colour) = match finding.severity {
            Severity::Error => ("error", Colour::Red),
            Severity::Warning => ("warning", Colour::Yellow),
            Severity::Info => ("info", Colour::Bold),
        };
        let line = format!("{}: {}; {}", finding.place, finding.what, finding.remedy);
        let line = text::visible(&line).replace('\n', "\\n");
        let _ = writeln!(text, "{}: {line}", text::painted(word, colour, colours));
    }
    let _ = if clean {
        writeln!(text, "Everything that is kept agrees.")
    } else {
        writeln!(text, "{}.", text::counted(findings.len(), "finding"))
    };
    let mut object = json!({"status": if clean { "CLEAN" } else { "FINDINGS" }, "findings": findings});
    if let Some(rebuilt) = rebuilt {
        object["notes"] = json!({"results": rebuilt.results, "changed": rebuilt.changed, "left": rebuilt.left});
    }
    Reply::new(&object, text).exiting(u8::from(!clean))
}
