//! A remote of the repository: its addresses, and one branch at a time fetched, looked at, published or deleted by
//! `git` itself. Nothing is ever forced, no tag is touched, and nothing that is said of it shows a secret.

use std::time::Duration;

use super::secret::without_secrets;
use super::{Git, GitError, Oid, Output, Repo, Result};
use crate::package::is_branch_name;

/// How long objects may take to come or go.
const TRANSFER: Duration = Duration::from_secs(30 * 60);
/// How long a look may take.
const LOOK: Duration = Duration::from_secs(2 * 60);

/// A remote, by its name.
#[derive(Debug, Clone)]
pub struct Remote<'a> {
    repo: &'a Repo,
    name: String,
    attended: bool,
}

/// Every address of a remote; there may be several of each kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteUrls {
    /// Those that are stored for fetching.
    pub stored_fetch: Vec<String>,
    /// Those that are stored for pushing.
    pub stored_push: Vec<String>,
    /// Those that are fetched from, after `insteadOf`.
    pub fetch: Vec<String>,
    /// Those that are pushed to, after `insteadOf` and `pushInsteadOf`.
    pub push: Vec<String>,
}

impl RemoteUrls {
    /// All of them.
    pub fn all(&self) -> impl Iterator<Item = &str> {
        [&self.stored_fetch, &self.stored_push, &self.fetch, &self.push].into_iter().flatten().map(String::as_str)
    }
}

impl Repo {
    /// The remote `name`, which need not be configured.
    ///
    /// # Errors
    /// Where no remote can have that name; an address has none.
    pub fn remote(&self, name: &str) -> Result<Remote<'_>> {
        if !is_branch_name(name) {
            // It may be an address with a password, so it is not repeated.
            return Err(GitError::Ref("a remote is named by its name in the configuration".to_owned()));
        }
        Ok(Remote { repo: self, name: name.to_owned(), attended: false })
    }
}

impl<'a> Remote<'a> {
    /// The same, with somebody at the terminal who can be asked for a password.
    #[must_use]
    pub fn attended(self, attended: bool) -> Self {
        Self { attended, ..self }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The repository that it is a remote of.
    #[must_use]
    pub fn repo(&self) -> &'a Repo {
        self.repo
    }

    /// Its addresses, `None` where it has none.
    ///
    /// # Errors
    /// Where `git` cannot tell.
    pub fn urls(&self) -> Result<Option<RemoteUrls>> {
        let stored_fetch = self.stored("url")?;
        if stored_fetch.is_empty() {
            return Ok(None);
        }
        let stored_push = self.stored("pushurl")?;
        let used = |options: &[&str]| -> Result<Vec<String>> {
            let output = self.run(&self.repo.git().args(["remote", "get-url"]).args(options).arg(&self.name))?;
            Ok(String::from_utf8_lossy(&output.stdout).lines().map(str::to_owned).collect())
        };
        Ok(Some(RemoteUrls {
            stored_push: if stored_push.is_empty() { stored_fetch.clone() } else { stored_push },
            stored_fetch,
            fetch: used(&["--all"])?,
            push: used(&["--push", "--all"])?,
        }))
    }

    fn stored(&self, key: &str) -> Result<Vec<String>> {
        let key = format!("remote.{}.{key}", self.name);
        let output = self.repo.git().args(["config", "-z", "--get-all", &key]).output()?;
        let mut values: Vec<String> = Vec::new();
        for value in output.stdout.split(|byte| *byte == 0) {
            values.push(String::from_utf8_lossy(value).into_owned());
        }
        values.pop();
        // An empty value takes back those that stand before it.
        let from = values.iter().rposition(String::is_empty).map_or(0, |at| at + 1);
        Ok(values.split_off(from))
    }

    /// The full name of the reference that keeps what was last seen of `branch`.
    #[must_use]
    pub fn tracking_ref(&self, branch: &str) -> String {
        format!("refs/remotes/{}/{branch}", self.name)
    }

    /// Fetches `branch` into its tracking reference and returns where it is. No tag comes with it, `FETCH_HEAD` stays as
    /// it is, and no configured refspec adds anything.
    ///
    /// # Errors
    /// Where the branch is not there, or the remote cannot be reached.
    pub fn fetch(&self, branch: &str) -> Result<Oid> {
        let tracking = self.tracking_ref(branch);
        let call = self
            .transport(TRANSFER)
            .args(["fetch", "-q", "--no-tags", "--no-write-fetch-head", "--no-prune", "--no-recurse-submodules"])
            .args(["--no-auto-maintenance", "--refmap=", &self.name])
            .arg(format!("+refs/heads/{branch}:{tracking}"));
        self.run(&call)?;
        let fetched = self.repo.resolve(&tracking)?;
        fetched.ok_or_else(|| GitError::Ref(format!("{tracking} was fetched and is not there")))
    }

    /// Where `branch` is on the remote now, `None` where it is not.
    ///
    /// # Errors
    /// Where the remote cannot be reached.
    pub fn head(&self, branch: &str) -> Result<Option<Oid>> {
        let wanted = format!("refs/heads/{branch}");
        let output = self.run(&self.transport(LOOK).args(["ls-remote", "-q", "--refs", &self.name, &wanted]))?;
        let text = String::from_utf8_lossy(&output.stdout);
        // What ends in the wanted name matches for `git` too.
        let line = text.split('\n').find_map(|line| line.split_once('\t').filter(|(_, name)| *name == wanted));
        line.map(|(id, _)| id.parse().map_err(GitError::Object)).transpose()
    }

    /// Publishes `commit` as the new branch `branch`. That it is not there yet is part of what is asked: even a branch
    /// of somebody else's that lies behind the commit is not moved.
    ///
    /// # Errors
    /// Where it is there, or the remote refuses or cannot be reached; whether it was published is not known then.
    pub fn publish(&self, branch: &str, commit: Oid) -> Result<()> {
        let name = format!("refs/heads/{branch}");
        self.push(&format!("--force-with-lease={name}:"), &format!("{commit}:{name}"))
    }

    /// Deletes `branch`, which is at `commit`.
    ///
    /// # Errors
    /// Where it is elsewhere, or the remote refuses or cannot be reached; whether it was deleted is not known then.
    pub fn delete(&self, branch: &str, commit: Oid) -> Result<()> {
        let name = format!("refs/heads/{branch}");
        self.push(&format!("--force-with-lease={name}:{commit}"), &format!(":{name}"))
    }

    fn push(&self, lease: &str, refspec: &str) -> Result<()> {
        let call = self
            .transport(TRANSFER)
            .args(["push", "-q", "--porcelain", "--no-follow-tags", "--recurse-submodules=no", lease, &self.name])
            .arg(refspec);
        self.run(&call).map(|_| ())
    }

    /// A call of `git` that speaks to the remote.
    fn transport(&self, limit: Duration) -> Git {
        // A trace that somebody switched on must not show what it is let in by.
        let git = self.repo.git().env("GIT_TRACE_REDACT", "1");
        if self.attended {
            return git;
        }
        let git = git.limit(limit).env("GIT_TERMINAL_PROMPT", "0");
        let own_ssh = ["GIT_SSH_COMMAND", "GIT_SSH"].iter().any(|name| std::env::var_os(name).is_some())
            || self.repo.config("core.sshCommand").is_some();
        // Whoever chose a command of their own chose its questions too.
        if own_ssh { git } else { git.env("GIT_SSH_COMMAND", "ssh -o BatchMode=yes") }
    }

    fn run(&self, call: &Git) -> Result<Output> {
        call.run().map_err(shown)
    }
}

/// The error without the secrets that it may repeat.
fn shown(error: GitError) -> GitError {
    match error {
        GitError::Failed { argv, dir, status, stderr } => {
            GitError::Failed { argv: without_secrets(&argv), dir, status, stderr: without_secrets(&stderr) }
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Place {
        temp: tempfile::TempDir,
        repo: Repo,
    }

    fn git(dir: &std::path::Path, args: &[&str]) -> String {
        let call = Git::new(dir).config("user.name=x").config("user.email=x@y").args(args);
        call.run().unwrap().line()
    }

    /// A repository with a bare remote beside it.
    fn place() -> Place {
        let temp = tempfile::tempdir().unwrap();
        git(temp.path(), &["init", "-q", "--bare", "-b", "main", "bare"]);
        git(temp.path(), &["init", "-q", "-b", "main", "work"]);
        let work = temp.path().join("work");
        git(&work, &["remote", "add", "origin", temp.path().join("bare").to_str().unwrap()]);
        git(&work, &["commit", "-q", "--allow-empty", "-m", "base"]);
        git(&work, &["push", "-q", "origin", "main"]);
        let repo = Repo::at(&work).unwrap();
        Place { temp, repo }
    }

    fn commit(place: &Place, message: &str) -> Oid {
        let work = place.temp.path().join("work");
        git(&work, &["commit", "-q", "--allow-empty", "-m", message]);
        git(&work, &["rev-parse", "HEAD"]).parse().unwrap()
    }

    #[test]
    fn a_branch_is_published_once_seen_and_deleted_where_it_is() {
        let place = place();
        let remote = place.repo.remote("origin").unwrap();
        let base = remote.fetch("main").unwrap();
        let (one, two) = (commit(&place, "one"), commit(&place, "two"));
        assert_eq!(remote.head("devlyn/x/t1").unwrap(), None);
        remote.publish("devlyn/x/t1", one).unwrap();
        assert_eq!(remote.head("devlyn/x/t1").unwrap(), Some(one));
        remote.publish("devlyn/x/t1", two).unwrap_err();
        remote.delete("devlyn/x/t1", two).unwrap_err();
        assert_eq!(remote.head("devlyn/x/t1").unwrap(), Some(one));
        remote.delete("devlyn/x/t1", one).unwrap();
        assert_eq!(remote.head("devlyn/x/t1").unwrap(), None);
        assert_eq!(remote.head("main").unwrap(), Some(base));
    }

    #[test]
    fn somebody_else_s_branch_that_lies_behind_is_not_moved() {
        let place = place();
        let remote = place.repo.remote("origin").unwrap();
        let (base, one) = (remote.fetch("main").unwrap(), commit(&place, "one"));
        git(&place.temp.path().join("bare"), &["branch", "theirs", "main"]);
        remote.publish("theirs", one).unwrap_err();
        assert_eq!(remote.head("theirs").unwrap(), Some(base));
    }

    #[test]
    fn a_fetch_takes_one_branch_and_nothing_else() {
        let place = place();
        let (bare, work) = (place.temp.path().join("bare"), place.temp.path().join("work"));
        git(&bare, &["tag", "main"]);
        git(&work, &["config", "fetch.prune", "true"]);
        git(&work, &["update-ref", "refs/remotes/origin/gone", "HEAD"]);
        let remote = place.repo.remote("origin").unwrap();
        let base = remote.fetch("main").unwrap();
        assert_eq!(remote.head("main").unwrap(), Some(base));
        assert!(!work.join(".git/FETCH_HEAD").exists());
        let refs: Vec<String> = place.repo.refs_below("refs/").unwrap().into_keys().collect();
        assert_eq!(refs, ["refs/heads/main", "refs/remotes/origin/gone", "refs/remotes/origin/main"]);
        assert!(remote.fetch("none").unwrap_err().to_string().contains("none"));
    }

    #[test]
    fn addresses_are_told_as_stored_and_as_used() {
        let place = place();
        let work = place.temp.path().join("work");
        let remote = place.repo.remote("other").unwrap();
        assert_eq!(remote.urls().unwrap(), None);
        git(&work, &["remote", "add", "other", "gh:o/n"]);
        git(&work, &["config", "url.https://github.com/.insteadOf", "gh:"]);
        git(&work, &["config", "url.ssh://git@github.com/.pushInsteadOf", "gh:"]);
        let urls = remote.urls().unwrap().unwrap();
        assert_eq!(
            (urls.stored_fetch.as_slice(), urls.stored_push.as_slice()),
            (&["gh:o/n".into()][..], &["gh:o/n".into()][..])
        );
        assert_eq!(urls.fetch, ["https://github.com/o/n"]);
        assert_eq!(urls.push, ["ssh://git@github.com/o/n"]);
        assert_eq!(urls.all().count(), 4);
    }

    #[test]
    fn an_address_is_no_name_and_is_not_repeated() {
        let place = place();
        let error = place.repo.remote("https://u:hunter2@h/x").unwrap_err().to_string();
        assert!(!error.contains("hunter2"), "{error}");
        let work = place.temp.path().join("work");
        git(&work, &["remote", "add", "bad", "https://u:hunter2@127.0.0.1:1/x"]);
        let error = place.repo.remote("bad").unwrap().head("main").unwrap_err().to_string();
        assert!(!error.contains("hunter2") && error.contains("127.0.0.1"), "{error}");
    }
}
