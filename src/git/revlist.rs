//! Commits that one side has and another has not, one after the other, the oldest first.

use std::io::{BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::process::Stdio;

use super::command::tail;
use super::{GitError, Oid, Repo, Result};

/// Which commits.
#[derive(Debug, Clone, Default)]
pub struct Revisions {
    /// Revisions as `git rev-list` takes them, a `^` before those whose history is left out.
    pub revisions: Vec<String>,
    /// What else is left out, as options of `git rev-list`: `--all`, `--remotes=<name>`.
    pub not: Vec<String>,
    /// Whether only the first parent of each commit is followed.
    pub first_parent: bool,
}

impl Repo {
    /// The commit that `id` is, or that it tags; `None` where it is none.
    ///
    /// # Errors
    /// Where the object is not there or cannot be read.
    pub fn peeled_commit(&self, id: Oid) -> Result<Option<Oid>> {
        let object = self.inner.find_object(id.0).map_err(|_| GitError::Object(format!("there is no object {id}")))?;
        let object = object.peel_tags_to_end().map_err(GitError::gix)?;
        Ok((object.kind == gix::objs::Kind::Commit).then_some(Oid(object.id)))
    }

    /// Calls `each` with every commit of `revisions`, parents before children, until it breaks.
    ///
    /// # Errors
    /// Where a revision is none, or `each` fails.
    pub fn each_commit<E: From<GitError>>(
        &self,
        revisions: &Revisions,
        mut each: impl FnMut(Oid) -> Result<ControlFlow<()>, E>,
    ) -> Result<(), E> {
        let mut call = self.git().args(["rev-list", "--reverse", "--topo-order"]);
        if revisions.first_parent {
            call = call.arg("--first-parent");
        }
        call = call.arg("--stdin");
        if !revisions.not.is_empty() {
            call = call.arg("--not").args(&revisions.not);
        }
        let mut command = call.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Spawn)?;
        let input: String = revisions.revisions.iter().flat_map(|revision| [revision.as_str(), "\n"]).collect();
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(mut stderr)) = pipes else {
            return Err(GitError::Object("git rev-list has no pipes".to_owned()).into());
        };
        // It reads all of its input before it says anything, and says at most a few lines on standard error.
        let written = stdin.write_all(input.as_bytes());
        drop(stdin);
        let mut end = Ok(ControlFlow::Continue(()));
        for line in BufReader::new(stdout).lines() {
            let line = line.map_err(GitError::Spawn)?;
            end = line.parse().map_err(|why| GitError::Object(why).into()).and_then(&mut each);
            if !matches!(end, Ok(ControlFlow::Continue(()))) {
                let _ = child.kill();
                break;
            }
        }
        let mut said = Vec::new();
        let _ = stderr.read_to_end(&mut said);
        let status = child.wait().map_err(GitError::Spawn)?;
        match end? {
            ControlFlow::Break(()) => Ok(()),
            ControlFlow::Continue(()) if status.success() && written.is_ok() => Ok(()),
            ControlFlow::Continue(()) => {
                Err(GitError::Object(format!("{}: {}", revisions.revisions.join(" "), tail(&said))).into())
            }
        }
    }
}
