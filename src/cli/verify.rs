//! `git devlyn verify`.

use super::any_repository;
use super::args::Verify;
use super::reply::Reply;
use super::text::{counted, visible};
use crate::hook::{HookError, Verified, verify};

pub(super) fn run(asked: &Verify) -> Reply {
    let verified = any_repository(asked.repository.repo.as_deref())
        .map_err(HookError::from)
        .and_then(|repo| verify(&repo, &asked.range.to_string_lossy()));
    match verified {
        Ok(verified) => {
            let code = u8::from(!verified.violations.is_empty());
            Reply::new(&verified, told(&verified)).exiting(code)
        }
        Err(error) => Reply::blocked(error),
    }
}

fn told(verified: &Verified) -> String {
    let mut lines: Vec<String> = verified.violations.iter().map(|violation| visible(&violation.line())).collect();
    let found = match verified.violations.len() {
        0 => "no violation".to_owned(),
        number => counted(number, "violation"),
    };
    lines.push(format!("{}, {found}\n", counted(verified.commits, "commit")));
    lines.join("\n")
}
