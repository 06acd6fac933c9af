//! A task's result as a note on its source and its terminal commit (formats, "Note"), so that it travels with a push
//! and `git log --notes=devlyn` shows it. Nothing is ever proven by a note, and no task waits for one.

use std::fmt::Write;

use crate::git::{GitError, NOTES_REF, Oid, Repo};
use crate::json::Value;
use crate::os::of_the_machine;
use crate::queue::squeezed;
use crate::store::{Acceptance, Layout, Receipt, StoreError, Verdict};

/// Why notes were not written; a diagnostic of the cleanup, never a failure of the task.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// Git refused.
    #[error("notes at {NOTES_REF}: {0}; run `git devlyn fsck --rebuild-notes` later")]
    Git(#[from] GitError),
    /// The receipts could not be listed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl NotesError {
    /// Whether this machine's state is the cause, so that the same will do once there is room again.
    #[must_use]
    pub fn is_of_the_machine(&self) -> bool {
        match self {
            Self::Git(GitError::Io { source, .. }) | Self::Store(StoreError::Io { source, .. }) => {
                of_the_machine(source)
            }
            // What `git` says of it, which is asked to speak plainly.
            Self::Git(GitError::Ref(said)) => ["No space left on device", "Input/output error", "Disk quota exceeded"]
                .iter()
                .any(|told| said.contains(told)),
            Self::Git(_) | Self::Store(_) => false,
        }
    }
}

/// What [`rebuild`] did.
#[derive(Debug, Default)]
pub struct Rebuilt {
    /// How many results are noted now.
    pub results: usize,
    /// Whether a note was missing.
    pub changed: bool,
    /// What could not be read, or names a commit that is not here.
    pub left: Vec<String>,
}

/// The note of a bound result with the terminal commit `terminal`; `None` where nothing is bound.
#[must_use]
pub fn note_text(receipt: &Receipt, terminal: Oid) -> Option<String> {
    let (source, acceptance) = (receipt.source_sha?, receipt.acceptance.as_ref()?);
    let result = match acceptance.verdict() {
        Verdict::Accepted => "accepted",
        Verdict::Failed => "failed",
    };
    let (passed, declared) = checks(acceptance);
    let mut text = format!(
        "devlyn-task: {}\ndevlyn-result: {result}\ndevlyn-source: {source}\ndevlyn-terminal: {terminal}\n\
         devlyn-receipt: {}\ndevlyn-checks: {passed}/{declared}\n",
        receipt.task, receipt.id
    );
    let mut line = |key: &str, value: String| {
        if !value.is_empty() {
            // Writing to a string cannot fail.
            let _ = writeln!(text, "{key}: {value}");
        }
    };
    line("devlyn-reviews", reviews(acceptance));
    if acceptance.verdict() == Verdict::Failed {
        line("devlyn-reason", acceptance.reasons().first().map(|reason| squeezed(reason)).unwrap_or_default());
    }
    Some(text)
}

/// Notes the result on its source and on `terminal`, in one commit; whether anything had to be written.
///
/// # Errors
/// Where the notes cannot be written; the result itself is not touched by that.
pub fn write(repo: &Repo, receipt: &Receipt, terminal: Oid) -> Result<bool, NotesError> {
    let (Some(source), Some(text)) = (receipt.source_sha, note_text(receipt, terminal)) else { return Ok(false) };
    Ok(repo.append_notes(NOTES_REF, &[(source, text.clone()), (terminal, text)])?)
}

/// Whether a result is noted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noted {
    /// On its source and its terminal commit, or one of them is not in this repository.
    Yes,
    /// Not on both.
    No,
    /// A note tells of the task and says something else.
    Otherwise,
}

/// Whether the result is noted as its receipt tells it.
///
/// # Errors
/// Where the notes cannot be read.
pub fn noted(repo: &Repo, receipt: &Receipt, terminal: Oid) -> Result<Noted, GitError> {
    let (Some(source), Some(text)) = (receipt.source_sha, note_text(receipt, terminal)) else { return Ok(Noted::Yes) };
    let own = format!("devlyn-task: {}", receipt.task);
    let mut noted = Noted::Yes;
    for id in [source, terminal] {
        let note = repo.note(NOTES_REF, id)?.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        match note {
            Some(note) if note.contains(text.trim_end()) => {}
            Some(note) if note.lines().any(|line| line == own) => return Ok(Noted::Otherwise),
            _ => noted = Noted::No,
        }
    }
    Ok(noted)
}

/// Notes every attached result again that a receipt of this repository tells of, in one commit.
///
/// # Errors
/// Where the receipts cannot be listed, or the notes not be written.
pub fn rebuild(repo: &Repo, layout: &Layout) -> Result<Rebuilt, NotesError> {
    let (mut rebuilt, mut notes) = (Rebuilt::default(), Vec::new());
    let folder = layout.completions();
    let entries = match std::fs::read_dir(&folder) {
        Ok(entries) => entries.collect::<Result<Vec<_>, _>>().map_err(StoreError::io(&folder))?,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Vec::new(),
        Err(error) => return Err(StoreError::io(&folder)(error).into()),
    };
    let mut folders: Vec<_> = entries.into_iter().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    for path in folders {
        match Receipt::read(&crate::store::ReceiptDir::new(path)) {
            Ok(Some(receipt)) => {
                let Some(terminal) = receipt.queue.as_ref().map(|queue| queue.commit) else { continue };
                let (Some(source), Some(text)) = (receipt.source_sha, note_text(&receipt, terminal)) else { continue };
                if repo.commit(source)?.is_none() || repo.commit(terminal)?.is_none() {
                    rebuilt.left.push(format!("{}: its commits are not in this repository", receipt.task));
                    continue;
                }
                rebuilt.results += 1;
                notes.extend([(source, text.clone()), (terminal, text)]);
            }
            Ok(None) => {}
            Err(error) => rebuilt.left.push(error.to_string()),
        }
    }
    rebuilt.changed = !notes.is_empty() && repo.append_notes(NOTES_REF, &notes)?;
    Ok(rebuilt)
}

/// How many of the declared commands passed, and how many there are.
fn checks(acceptance: &Acceptance) -> (usize, usize) {
    let commands = acceptance.0.get("commands").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    (commands.iter().filter(|command| command["passed"] == true).count(), commands.len())
}

/// The reviewers that counted, each once, in their order.
fn reviews(acceptance: &Acceptance) -> String {
    let mut names: Vec<String> = Vec::new();
    for review in acceptance.0.get("reviews").and_then(Value::as_array).into_iter().flatten() {
        if let (Some(engine), Some(model)) = (review["engine"].as_str(), review["model"].as_str()) {
            let name = squeezed(&format!("{engine}/{model}"));
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn receipt(repository: &str, source: &str, verdict: &str) -> Receipt {
        let key = crate::package::Key::of_branch("devlyn/inv/t1");
        serde_json::from_value(json!({
            "id": key.as_str(), "task": "inv.t1", "branch": "devlyn/inv/t1", "base": "main", "repository": null,
            "recovery_ref": key.recovery_ref(), "common_gitdir": repository, "anchor": "/r", "worktree": "/w",
            "linked": true, "baseline": source, "allocation": "owned", "source_sha": source,
            "queue": {"commit": source, "file": "docs/specs/inv/queue.md"},
            "acceptance": {
                "kind": "loop", "verdict": verdict, "reasons": if verdict == "FAILED" { json!(["failed: a\n b"]) } else { json!([]) },
                "commands": [{"passed": true}, {"passed": false}],
                "reviews": [{"engine": "codex", "model": "x-1"}, {"engine": "codex", "model": "x-1"}, {"engine": "claude", "model": "o"}],
            },
        }))
        .unwrap()
    }

    #[test]
    fn a_note_has_a_line_for_everything_that_is_known() {
        let id = "a".repeat(40);
        let text = note_text(&receipt("/r/.git", &id, "FAILED"), id.parse().unwrap()).unwrap();
        let key = crate::package::Key::of_branch("devlyn/inv/t1");
        assert_eq!(
            text,
            format!(
                "devlyn-task: inv.t1\ndevlyn-result: failed\ndevlyn-source: {id}\ndevlyn-terminal: {id}\n\
                 devlyn-receipt: {key}\ndevlyn-checks: 1/2\ndevlyn-reviews: codex/x-1, claude/o\n\
                 devlyn-reason: failed: a b\n"
            )
        );
        let accepted = note_text(&receipt("/r/.git", &id, "ACCEPTED"), id.parse().unwrap()).unwrap();
        assert!(accepted.contains("devlyn-result: accepted") && !accepted.contains("devlyn-reason"));
    }

    #[test]
    fn notes_are_rebuilt_from_receipts_once() {
        let temp = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| crate::git::Git::new(temp.path()).args(args).run().unwrap();
        git(&["init", "-q"]);
        git(&["config", "user.name", "A"]);
        git(&["config", "user.email", "a@b.example"]);
        git(&["commit", "-q", "--allow-empty", "-m", "one"]);
        let repo = Repo::at(temp.path()).unwrap();
        let head = repo.head().unwrap().commit().unwrap();
        let layout = Layout::new(repo.common_dir());
        assert!(!rebuild(&repo, &layout).unwrap().changed);
        let receipt = receipt(&repo.common_dir().display().to_string(), &head.to_string(), "ACCEPTED");
        let dir = layout.receipt_dir(&crate::package::Key::of_branch("devlyn/inv/t1"));
        crate::store::make_dir(dir.path()).unwrap();
        receipt.write(&dir).unwrap();
        let broken = layout.completions().join("broken");
        crate::store::make_dir(&broken).unwrap();
        crate::store::write_bytes(&broken.join("receipt.json"), b"{").unwrap();
        let first = rebuild(&repo, &layout).unwrap();
        assert_eq!((first.results, first.changed, first.left.len()), (1, true, 1));
        assert!(!rebuild(&repo, &layout).unwrap().changed);
        assert!(!write(&repo, &receipt, head).unwrap(), "what attach writes is what is rebuilt");
        let shown = git(&["log", "-1", "--notes=devlyn", "--format=%N"]).line();
        assert!(shown.contains("devlyn-task: inv.t1"), "{shown}");
    }
}
