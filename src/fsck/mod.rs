//! Everything that is kept, held against everything else, with a remedy for whatever does not agree.
//!
//! Reading only: it takes no lock that anybody waits behind, writes no file and moves no reference.

mod captures;
mod ground;
mod leftovers;
mod receipts;
mod refs;
mod results;
mod rows;
mod worktrees;

use serde::Serialize;

use self::ground::Ground;
use crate::git::{GitError, Repo};
use crate::store::{Layout, StoreError};

/// How much a finding matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// Two records contradict each other, or something that is relied on is not there.
    Error,
    /// Something stands in the way, or is of no use any more.
    Warning,
    /// It was kept on purpose; nothing has to be done.
    Info,
}

/// Something that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// How much it matters.
    pub severity: Severity,
    /// The file, directory or reference.
    #[serde(rename = "where")]
    pub place: String,
    /// What was found there.
    pub what: String,
    /// What to type, or what to look at.
    pub remedy: String,
}

/// Why nothing can be said.
#[derive(Debug, thiserror::Error)]
pub enum FsckError {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] GitError),
    /// A directory of the state could not be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// What this module returns.
pub type Result<T, E = FsckError> = std::result::Result<T, E>;

/// Everything that does not agree in the repository, what matters most first.
///
/// # Errors
/// Where the state cannot be read at all.
pub fn fsck(repo: &Repo) -> Result<Vec<Finding>> {
    let layout = Layout::new(repo.common_dir());
    let mut first = once(repo, &layout)?;
    if first.iter().any(|finding| finding.severity != Severity::Info) {
        // Somebody may be at work here: what is found once may be on its way, what is found twice stays.
        std::thread::sleep(std::time::Duration::from_millis(100));
        let second = once(repo, &layout)?;
        first.retain(|finding| second.contains(finding));
    }
    first.sort_by(|a, b| (a.severity, &a.place, &a.what).cmp(&(b.severity, &b.place, &b.what)));
    Ok(first)
}

fn once(repo: &Repo, layout: &Layout) -> Result<Vec<Finding>> {
    let mut findings = Findings::default();
    let ground = Ground::read(repo, layout, &mut findings)?;
    refs::check(&ground, &mut findings)?;
    captures::check(&ground, &mut findings)?;
    receipts::check(&ground, &mut findings)?;
    worktrees::check(&ground, &mut findings)?;
    rows::check(&ground, &mut findings)?;
    leftovers::check(&ground, &mut findings)?;
    Ok(findings.0)
}

/// The findings so far.
#[derive(Debug, Default)]
struct Findings(Vec<Finding>);

impl Findings {
    fn push(
        &mut self,
        severity: Severity,
        place: impl std::fmt::Display,
        what: impl Into<String>,
        remedy: impl Into<String>,
    ) {
        self.0.push(Finding { severity, place: place.to_string(), what: what.into(), remedy: remedy.into() });
    }

    fn error(&mut self, place: impl std::fmt::Display, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(Severity::Error, place, what, remedy);
    }

    fn warning(&mut self, place: impl std::fmt::Display, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(Severity::Warning, place, what, remedy);
    }

    fn info(&mut self, place: impl std::fmt::Display, what: impl Into<String>, remedy: impl Into<String>) {
        self.push(Severity::Info, place, what, remedy);
    }

    /// How many there are of those that matter.
    fn errors(&self) -> usize {
        self.0.iter().filter(|finding| finding.severity == Severity::Error).count()
    }
}

/// A command line that ends in a path.
fn typed(words: &[&str], path: &std::path::Path) -> String {
    crate::shell::line(words.iter().map(AsRef::as_ref).chain([path.as_os_str()]))
}
