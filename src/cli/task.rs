//! `git devlyn task …`.

use std::io::IsTerminal;
use std::path::Path;

use super::args::{self, Task};
use super::reply::Reply;
use super::repository;
use crate::git::{GitError, Repo};
use crate::json::{Value, json};
use crate::oid::Oid;
use crate::shell;
use crate::store::{Layout, Mode, read_state};
use crate::task::{self, Completion, Request, TaskError, Where};

pub(super) fn run(task: Task) -> Reply {
    match task {
        Task::Allocate(asked) => allocate(&asked),
        Task::Accept(asked) => on_receipt(&asked.receipt.receipt, |repo, layout, receipt| {
            let accepted = task::accept(repo, layout, receipt, &asked.acceptance)?;
            let text = format!("{} is bound; {} keeps it.\n", accepted.source_sha, accepted.recovery_ref);
            Ok(Reply::new(&accepted, text))
        }),
        Task::Attach(asked) => on_receipt(&asked.receipt.receipt, |repo, layout, receipt| {
            let commit = exact(repo, "--commit", &asked.commit)?;
            let file = asked.file.to_str().unwrap_or_default();
            let attached = task::attach(repo, layout, receipt, commit, file)?;
            let text = format!("{} is attached to {}.\n", attached.terminal_sha, attached.receipt.display());
            Ok(Reply::new(&attached, text))
        }),
        Task::Complete(asked) => complete(&asked),
        Task::CleanScratch(asked) => {
            let released = asked.release.writers_stopped;
            let reply = on_receipt(&asked.receipt.receipt, |repo, layout, receipt| {
                let cleaned = task::clean_scratch(repo, layout, receipt, released)?;
                let text = format!("{}: {}\n", cleaned.status, asked.receipt.receipt.display());
                Ok(Reply::new(&cleaned, text))
            });
            resumable(reply, "clean-scratch", &asked.receipt.receipt, released)
        }
    }
}

fn allocate(asked: &args::Allocate) -> Reply {
    let made = repository(asked.place.repo.as_deref()).map_err(TaskError::from).and_then(|repo| {
        let layout = Layout::new(repo.common_dir());
        let start = match (&asked.start.local_base, &asked.start.from_receipt) {
            (Some(base), _) => Where::Local(exact(&repo, "--local-base", base)?),
            (None, Some(receipt)) => Where::From(receipt.clone()),
            (None, None) => Where::Remote {
                repository: asked.repository.clone(),
                start: asked.start.start.as_deref().map(|start| exact(&repo, "--start", start)).transpose()?,
            },
        };
        let request = Request {
            task: asked.task.clone(),
            branch: asked.branch.clone(),
            base: asked.base.clone(),
            remote: asked.remote.clone(),
            worktree: asked.worktree.clone(),
            start,
            except: Vec::new(),
            attended: attended(),
        };
        task::allocate(&repo, &layout, &request, &Ok)
    });
    match made {
        Ok(made) => {
            let object = json!({
                "status": "ALLOCATED",
                "receipt": made.dir.receipt(),
                "worktree": made.receipt.worktree,
                "scratch": made.dir.scratch(),
                "reconciled": made.reconciled,
            });
            let text = format!(
                "{} owns {} on {}.\nreceipt: {}\n",
                made.receipt.task,
                made.receipt.worktree.display(),
                made.receipt.branch,
                made.dir.receipt().display()
            );
            Reply::new(&object, text)
        }
        Err(error) => Reply::blocked(error),
    }
}

fn complete(asked: &args::Complete) -> Reply {
    let completion = Completion {
        acceptance: asked.acceptance.clone(),
        mode: asked.mode.map(|mode| match mode {
            args::Mode::Auto => Mode::Auto,
            args::Mode::Pr => Mode::Pr,
        }),
        local_only: asked.locality.local_only,
        writers_stopped: asked.release.writers_stopped,
        attended: attended(),
    };
    let reply = on_receipt(&asked.receipt.receipt, |repo, layout, receipt| {
        let completed = task::complete(repo, layout, receipt, &completion)?;
        let text = format!("{}: {}\n", completed.status, completed.receipt.display());
        Ok(Reply::new(&completed, text))
    });
    resumable(reply, "complete", &asked.receipt.receipt, completion.writers_stopped)
}

/// Whether somebody who typed this can be asked for a password.
fn attended() -> bool {
    std::io::stdin().is_terminal() && std::io::stderr().is_terminal()
}

/// Runs `step` on the repository that the receipt lies in; a refusal names the receipt.
fn on_receipt(receipt: &Path, step: impl FnOnce(&Repo, &Layout, &Path) -> Result<Reply, TaskError>) -> Reply {
    let absolute = std::path::absolute(receipt).unwrap_or_else(|_| receipt.to_owned());
    let result = repository_of(&absolute).map_err(TaskError::from).and_then(|repo| {
        let layout = Layout::new(repo.common_dir());
        step(&repo, &layout, &absolute)
    });
    result.unwrap_or_else(|error| Reply::blocked(error).with([("receipt", json!(absolute))]))
}

/// The repository around the current directory; where there is none, the one whose task the receipt is of, so that a
/// command line that was printed works wherever it is typed.
fn repository_of(receipt: &Path) -> Result<Repo, GitError> {
    let nowhere = match repository(None) {
        Err(error @ GitError::NotARepository(_)) => error,
        found => return found,
    };
    let common = std::fs::canonicalize(receipt).ok().and_then(|path| Some(path.ancestors().nth(3)?.to_owned()));
    let anchor =
        read_state(receipt).ok().flatten().and_then(|(object, _)| Some(object.get("anchor")?.as_str()?.to_owned()));
    let (Some(common), Some(anchor)) = (common, anchor) else { return Err(nowhere) };
    let main = common.parent().unwrap_or(&common);
    let opened = [Path::new(&anchor), main].into_iter().filter_map(|place| Repo::at(place).ok());
    opened.into_iter().find(|repo| repo.common_dir() == common).ok_or(nowhere)
}

/// A refusal with the command line that tries again.
fn resumable(reply: Reply, verb: &str, receipt: &Path, released: bool) -> Reply {
    if !reply.is_blocked() {
        return reply;
    }
    let receipt = std::path::absolute(receipt).unwrap_or_else(|_| receipt.to_owned());
    let mut words =
        vec!["git".into(), "devlyn".into(), "task".into(), verb.into(), "--receipt".into(), receipt.into_os_string()];
    if released {
        words.push("--writers-stopped".into());
    }
    reply.with([("resume", Value::String(shell::line(words)))])
}

fn exact(repo: &Repo, flag: &str, text: &str) -> Result<Oid, TaskError> {
    let found = repo.exact_commit(text)?;
    found.ok_or_else(|| {
        TaskError::Refused(format!("{flag} takes the whole id of a commit of this repository, not {text:?}"))
    })
}
