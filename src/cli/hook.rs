//! `git devlyn hook`: what Git asks before it makes a commit, pushes, or takes a push.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::args::{Hook, HookName};
use super::reply::Reply;
use super::{here, text};
use crate::git::{Oid, Repo};
use crate::hook::{
    Chained, CommitCall, Event, HookError, Violation, concerns, judge_commit, judge_push, judge_received,
    judge_transaction, judge_update, run_local,
};

/// How many refusals are shown in full; the rest is counted.
const SHOWN: usize = 5;

impl From<HookName> for Event {
    fn from(name: HookName) -> Self {
        match name {
            HookName::PreCommit => Self::PreCommit,
            HookName::PreMergeCommit => Self::PreMergeCommit,
            HookName::PreApplypatch => Self::PreApplypatch,
            HookName::PrepareCommitMsg => Self::PrepareCommitMsg,
            HookName::PrePush => Self::PrePush,
            HookName::PreReceive => Self::PreReceive,
            HookName::Update => Self::Update,
            HookName::ReferenceTransaction => Self::ReferenceTransaction,
        }
    }
}

/// First the hook that was there before ours, then the judgement. Both say what they have to say on standard error,
/// because standard output may be the other side of a push.
pub(super) fn run(asked: &Hook) -> Reply {
    let event = Event::from(asked.name);
    let (complaint, code) = match called(event, &asked.args) {
        Ok(Outcome::Refused(code)) => (String::new(), code),
        Ok(Outcome::Judged(violations)) if violations.is_empty() => return Reply::silent(),
        Ok(Outcome::Judged(violations)) => (refusals(&violations), 1),
        Err(error) => (format!("git-devlyn: {} cannot judge: {error}\n", event.name()), 1),
    };
    let _ = std::io::stderr().lock().write_all(text::visible(&complaint).as_bytes());
    Reply::silent().exiting(code)
}

enum Outcome {
    /// The hook that was there before refused with this exit status.
    Refused(u8),
    /// What was found.
    Judged(Vec<Violation>),
}

fn called(event: Event, args: &[OsString]) -> Result<Outcome, HookError> {
    let dir = here();
    let mut input = Vec::new();
    if event.has_input() {
        let read = std::io::stdin().lock().read_to_end(&mut input);
        read.map_err(|error| HookError::Input(format!("standard input: {error}")))?;
    }
    let repo = match Repo::for_hook(&dir) {
        // `git init` changes references before there is a whole repository.
        Err(_) if event == Event::ReferenceTransaction && !concerns(&lossy(args, 0), &input) => {
            return Ok(Outcome::Judged(Vec::new()));
        }
        opened => opened?,
    };
    let handed = event.has_input().then_some(input.as_slice());
    match run_local(&repo.hooks_dir(), event, args, handed)? {
        Chained::None | Chained::Status(0) => {}
        Chained::Status(status) => return Ok(Outcome::Refused(u8::try_from(status).unwrap_or(1))),
    }
    let text = |index: usize| args.get(index).and_then(|arg| arg.to_str()).unwrap_or_default();
    let violations = match event {
        Event::PreCommit | Event::PreMergeCommit | Event::PreApplypatch | Event::PrepareCommitMsg => {
            judge_commit(&repo, event, &commit_call(&dir, args))?
        }
        Event::PrePush => judge_push(&repo, text(0), text(1), &input)?,
        Event::PreReceive => judge_received(&repo, &input)?,
        Event::Update => judge_update(&repo, text(0), text(1), text(2))?,
        Event::ReferenceTransaction => judge_transaction(&repo, text(0), &input)?,
    };
    Ok(Outcome::Judged(violations))
}

fn lossy(args: &[OsString], index: usize) -> String {
    args.get(index).map(|arg| arg.to_string_lossy().into_owned()).unwrap_or_default()
}

/// What the environment of a hook of a commit says.
fn commit_call(dir: &Path, args: &[OsString]) -> CommitCall {
    let merging = std::env::vars_os().filter_map(|(name, _)| {
        let id = name.to_str()?.strip_prefix("GITHEAD_")?;
        id.parse::<Oid>().ok()
    });
    CommitCall {
        dir: dir.to_owned(),
        args: args.to_vec(),
        index_file: std::env::var_os("GIT_INDEX_FILE").filter(|path| !path.is_empty()).map(PathBuf::from),
        author: ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_AUTHOR_DATE"].map(std::env::var_os),
        on_behalf: std::env::var_os("GIT_REFLOG_ACTION").is_some_and(|action| !action.is_empty()),
        merging: merging.collect(),
    }
}

fn refusals(violations: &[Violation]) -> String {
    let shown = violations.iter().take(SHOWN).map(|violation| format!("git-devlyn refuses: {violation}\n"));
    let mut told: String = shown.collect();
    if violations.len() > SHOWN {
        told.push_str(&format!("git-devlyn: and {} more\n", violations.len() - SHOWN));
    }
    told
}
