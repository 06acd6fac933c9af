//! The host that merges requests: behind one small trait, what a delivery asks of it. A host is asked and believed only
//! in what it shows of a request; what its tool says of its own success proves nothing.
//!
//! It never merges by itself, never changes a setting, never deletes a branch, and never shows a secret.

mod answer;
mod equivalent;
mod github;
mod slug;

pub use answer::{read_repository, read_request, read_requests};
pub use equivalent::{Landing, landed};
pub use github::GitHub;
pub use slug::Slug;

use crate::git::{GitError, Oid, Remote, has_credentials, without_secrets};
use crate::json::{Map, Value};
use crate::store::RemoteUrl;

/// Why a host, or the remote that leads to it, cannot be used. The text is complete and shows no secret.
#[derive(Debug, thiserror::Error)]
pub enum ForgeError {
    /// The remote is not what delivery needs.
    #[error("the remote {remote} {why}")]
    Remote {
        /// Its name.
        remote: String,
        /// What is wrong with it.
        why: String,
    },
    /// The configuration names a host that there is no way to.
    #[error("devlyn.forge is {0:?}; this version delivers through `github`, or pushes and waits with `none`")]
    Unknown(String),
    /// The host's tool is not there.
    #[error("{tool} cannot be started ({why}); install it, log in with `{tool} auth login`, and try again")]
    NoTool {
        /// Its name.
        tool: &'static str,
        /// What the system said.
        why: String,
    },
    /// The host's tool gave no answer, or none that can be believed.
    #[error("`{asked}` {why}")]
    NoAnswer {
        /// What was asked.
        asked: String,
        /// What came instead.
        why: String,
    },
    /// The host shows another request than the task's.
    #[error("the request {url} {why}")]
    Other {
        /// Its address.
        url: String,
        /// What is different.
        why: String,
    },
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
}

/// What this module returns.
pub type Result<T, E = ForgeError> = std::result::Result<T, E>;

/// A repository as its host describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositoryView {
    /// Its default branch.
    pub default_branch: String,
    /// Whether it lets requests end in merge commits.
    pub merge_commits: bool,
}

/// How a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum State {
    /// It can be merged.
    Open,
    /// Somebody closed it.
    Closed,
    /// It was merged.
    Merged,
}

/// A request to merge, as its host describes it.
#[derive(Debug, Clone, PartialEq)]
pub struct MergeRequest {
    /// Its number.
    pub number: u64,
    /// Its address.
    pub url: String,
    /// How it stands.
    pub state: State,
    /// The branch that it would merge.
    pub head: String,
    /// The commit that it would merge, or merged.
    pub commit: Oid,
    /// The branch that it would merge into.
    pub base: String,
    /// Whether its branch is one of the very repository, and not of a fork.
    pub own: bool,
    /// Whether it merges by itself once the rules allow it.
    pub auto_merge: bool,
    /// The commit by which it was merged.
    pub merge_commit: Option<Oid>,
    /// All that was asked, as it was answered.
    pub raw: Map<String, Value>,
}

/// A request to be opened.
#[derive(Debug, Clone)]
pub struct Opening {
    /// The branch to merge.
    pub head: String,
    /// The branch to merge into.
    pub base: String,
    /// One line.
    pub title: String,
    /// What it is about.
    pub body: String,
}

/// What the host's tool said after it was told to do something. Whether it was done is seen by looking.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// Its complaint, where it had one.
    pub complaint: Option<String>,
    /// The number of the request that it spoke of, where it named one.
    pub number: Option<u64>,
}

/// What can view a repository, and find, open, view and merge a request.
pub trait Forge {
    /// The repository.
    ///
    /// # Errors
    /// Where there is no answer that can be believed.
    fn repository(&self) -> Result<RepositoryView>;

    /// Every request for the branch `head` of this repository, however it stands.
    ///
    /// # Errors
    /// As [`Forge::repository`].
    fn find(&self, head: &str) -> Result<Vec<MergeRequest>>;

    /// Opens a request.
    ///
    /// # Errors
    /// Where the tool cannot be started; otherwise a look tells what came of it.
    fn open(&self, opening: &Opening) -> Result<Said>;

    /// The request `number`.
    ///
    /// # Errors
    /// As [`Forge::repository`].
    fn view(&self, number: u64) -> Result<MergeRequest>;

    /// Asks for the merge of the request at exactly `commit`, as soon as the repository's rules allow it.
    ///
    /// # Errors
    /// As [`Forge::open`].
    fn merge(&self, number: u64, commit: Oid) -> Result<Said>;

    /// Takes such a request for a merge back.
    ///
    /// # Errors
    /// As [`Forge::open`].
    fn cancel(&self, number: u64) -> Result<Said>;
}

/// Where a remote leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// To this repository on GitHub.
    GitHub(Slug),
    /// To a place where persons merge by whatever means (`devlyn.forge` is `none`).
    Anywhere,
}

/// A remote that delivery can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Its addresses, none of which holds a secret.
    pub urls: RemoteUrl,
    /// Where it leads.
    pub host: Host,
}

impl Target {
    /// Where `remote` leads, by `devlyn.forge` or by its address. Asks nobody but `git`'s configuration.
    ///
    /// # Errors
    /// Where it has no address, one with a secret in it, or addresses that are not of one repository.
    pub fn of(remote: &Remote<'_>) -> Result<Self> {
        let wrong = |why: String| ForgeError::Remote { remote: remote.name().to_owned(), why };
        let Some(urls) = remote.urls()? else {
            return Err(wrong("is not configured; add it with `git remote add`".to_owned()));
        };
        if urls.all().any(has_credentials) {
            let why = "has an address with a user or a password in it, which is not used and not shown; take it out \
                       and let a credential helper keep it";
            return Err(wrong(why.to_owned()));
        }
        let first = |urls: &[String]| urls.first().cloned().unwrap_or_default();
        let kept = RemoteUrl { literal: first(&urls.stored_fetch), fetch: first(&urls.fetch), push: first(&urls.push) };
        let host = match remote.repo().config("devlyn.forge").as_deref() {
            None | Some("github") => Host::GitHub(one_repository(urls.all()).map_err(wrong)?),
            Some("none") if urls.fetch.len() == 1 && urls.push.len() == 1 => Host::Anywhere,
            Some("none") => return Err(wrong("has several addresses, and only one can be waited for".to_owned())),
            Some(other) => return Err(ForgeError::Unknown(other.to_owned())),
        };
        Ok(Self { urls: kept, host })
    }

    /// `owner/name`, where the host has such names.
    #[must_use]
    pub fn repository(&self) -> Option<String> {
        match &self.host {
            Host::GitHub(slug) => Some(slug.to_string()),
            Host::Anywhere => None,
        }
    }

    /// What can be asked there; nothing where persons merge by whatever means.
    #[must_use]
    pub fn forge(&self) -> Option<Box<dyn Forge>> {
        match &self.host {
            Host::GitHub(slug) => Some(Box::new(GitHub::new(slug.clone()))),
            Host::Anywhere => None,
        }
    }
}

/// The one repository that all addresses name.
fn one_repository<'a>(urls: impl Iterator<Item = &'a str>) -> Result<Slug, String> {
    let mut found: Option<Slug> = None;
    for url in urls {
        let Some(slug) = Slug::of_url(url) else {
            return Err(format!(
                "is at {}, which is no repository on GitHub; deliver through one, or set devlyn.forge to `none` to push \
                 there and wait for a person's merge",
                without_secrets(url)
            ));
        };
        match &found {
            Some(known) if *known != slug => {
                return Err(format!("leads to {known} and to {slug}; name one repository"));
            }
            _ => found = Some(slug),
        }
    }
    found.ok_or_else(|| "has no address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_addresses_name_one_repository_or_none_is_used() {
        let one = |urls: &[&str]| one_repository(urls.iter().copied());
        assert_eq!(one(&["https://github.com/O/n", "git@github.com:o/N.git"]).unwrap().to_string(), "o/N");
        assert!(one(&["https://github.com/o/n", "https://github.com/o/m"]).unwrap_err().contains("o/n and to o/m"));
        let why = one(&["https://github.com/o/n", "https://u:hunter2@h/o/n"]).unwrap_err();
        assert!(why.contains("devlyn.forge") && !why.contains("hunter2"));
        one(&[]).unwrap_err();
    }
}
