//! A commit before it is made, judged on the index that Git hands to the hook and never on the work tree. Git does not
//! tell a hook about `--amend`: the commit is judged on top of `HEAD`, and again when it is pushed.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;

use super::judge::{Candidate, Judge};
use super::{Event, HookError, Result, Violation};
use crate::git::{Head, Oid, Repo};

/// What Git hands to a hook of a commit.
#[derive(Debug, Clone, Default)]
pub struct CommitCall {
    /// The directory that it runs in.
    pub dir: PathBuf,
    /// The arguments.
    pub args: Vec<OsString>,
    /// `GIT_INDEX_FILE`.
    pub index_file: Option<PathBuf>,
    /// `GIT_AUTHOR_NAME`, `GIT_AUTHOR_EMAIL` and `GIT_AUTHOR_DATE`.
    pub author: [Option<OsString>; 3],
    /// Whether `GIT_REFLOG_ACTION` says who made Git make the commit.
    pub on_behalf: bool,
    /// The commits that variables `GITHEAD_<id>` name: what `git merge` merges, before it writes `MERGE_HEAD`.
    pub merging: Vec<Oid>,
}

impl CommitCall {
    /// Whether the hook has anything to judge: `prepare-commit-msg` is called by everything that makes a commit, and is
    /// for what calls no other hook of ours.
    #[must_use]
    pub fn concerns(&self, event: Event) -> bool {
        if event != Event::PrepareCommitMsg {
            return true;
        }
        // `git commit` hands the author on in a form of its own, and has called pre-commit, or was told not to with
        // --no-verify, which is its user's right; `git merge` likewise. The sequencer, which makes the commits of
        // cherry-pick, revert and rebase, does neither, and where an editor is to be opened it has `git commit
        // --no-verify` do it on its behalf.
        match &self.author {
            [Some(_), Some(_), Some(date)] if date.as_bytes().starts_with(b"@") => self.on_behalf,
            _ => self.args.get(1).is_none_or(|source| source != "merge"),
        }
    }
}

/// What the commit that would be made does and may not.
///
/// # Errors
/// Where the index or `HEAD` cannot be read.
pub fn judge_commit(repo: &Repo, event: Event, call: &CommitCall) -> Result<Vec<Violation>> {
    if !call.concerns(event) {
        return Ok(Vec::new());
    }
    let index = match &call.index_file {
        Some(path) => call.dir.join(path),
        None => repo.git_dir().join("index"),
    };
    let tree = repo.index_tree(&index)?;
    let head = repo.head()?;
    let mut parents: Vec<Oid> = head.commit().into_iter().collect();
    if event == Event::PrepareCommitMsg
        && takes_the_place_of_head(repo)
        && let Some(replaced) = head.commit().map(|id| repo.commit(id)).transpose()?.flatten()
    {
        parents = replaced.parents;
    }
    let mut merged = merge_heads(repo)?;
    if event == Event::PreMergeCommit && merged.is_empty() {
        merged.clone_from(&call.merging);
        if merged.is_empty() {
            // Without its other parents a merge cannot be judged; whoever it is pushed to judges it.
            return Ok(Vec::new());
        }
    }
    parents.extend(merged.into_iter().filter(|id| Some(*id) != head.commit()));
    let judge = Judge::now(repo);
    let owner = branch(repo, &head).and_then(|branch| judge.owner(&branch)).map(|(identity, _)| identity);
    judge.judge(&Candidate { commit: None, parents: &parents, tree, owner })
}

/// What a merge that is not concluded yet merges.
fn merge_heads(repo: &Repo) -> Result<Vec<Oid>> {
    let path = repo.git_dir().join("MERGE_HEAD");
    let text = match std::fs::read_to_string(&path) {
        Ok(text) => text,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(HookError::io(&path)(error)),
    };
    text.lines().map(|line| line.parse().map_err(HookError::Input)).collect()
}

/// Whether the commit is a fixup or squash of a rebase, by the last command that the rebase says is done.
fn takes_the_place_of_head(repo: &Repo) -> bool {
    let done = std::fs::read(repo.git_dir().join("rebase-merge/done")).unwrap_or_default();
    let last = done.split(|byte| *byte == b'\n').rfind(|line| !line.is_empty()).unwrap_or_default();
    let command = last.split(|byte| *byte == b' ').next().unwrap_or_default();
    matches!(command, b"fixup" | b"f" | b"squash" | b"s")
}

/// The short name of the branch that the commit is for; while it is rebased, `HEAD` is on none.
fn branch(repo: &Repo, head: &Head) -> Option<String> {
    if let Some(branch) = head.branch() {
        return Some(branch.to_owned());
    }
    ["rebase-merge/head-name", "rebase-apply/head-name"].iter().find_map(|name| {
        let text = std::fs::read_to_string(repo.git_dir().join(name)).ok()?;
        Some(text.trim_end().strip_prefix("refs/heads/")?.to_owned())
    })
}
