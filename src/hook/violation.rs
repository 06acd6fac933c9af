//! A refusal: which rule, where, what is wrong, what to do. Five lines at most.

use std::fmt;

use serde::Serialize;

use crate::git::Oid;

/// The rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum Rule {
    /// Nothing at or below `.devlyn/` is committed.
    H1,
    /// `.devlyn/` stays ignored while there is a loop.
    H2,
    /// A queue file changes by one pending row that is settled.
    H3,
    /// That change stands alone in its commit.
    H4,
    /// It says what the receipt says.
    H5,
    /// A queue file appears as it was captured.
    H6,
    /// The package of a captured loop does not change.
    H7,
    /// A task's branch leaves its own loop's package and the legacy queue alone.
    H8,
    /// Captures and recovery refs stay where they are on record; only where that was asked for.
    Ref,
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What a commit does that it may not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    /// The commit, where it is made already.
    pub commit: Option<Oid>,
    /// The file, from the root of the repository, with everything that is no text made visible; or the reference.
    pub file: String,
    /// The row: a task's identity, or a line of the file.
    pub row: Option<String>,
    /// What is wrong.
    pub what: String,
    /// What to do instead.
    pub remedy: String,
}

impl Violation {
    pub(super) fn new(rule: Rule, file: impl Into<String>, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { rule, commit: None, file: file.into(), row: None, what: what.into(), remedy: remedy.into() }
    }

    pub(super) fn row(mut self, row: impl fmt::Display) -> Self {
        self.row = Some(row.to_string());
        self
    }

    /// On one line, for a list.
    #[must_use]
    pub fn line(&self) -> String {
        let commit = self.commit.map_or_else(String::new, |commit| format!("{commit} "));
        let row = self.row.as_ref().map_or_else(String::new, |row| format!(" ({row})"));
        format!("{commit}{} {}{row}: {}; {}", self.rule, self.file, self.what, self.remedy)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.rule, self.file)?;
        if let Some(row) = &self.row {
            write!(f, ", {row}")?;
        }
        if let Some(commit) = self.commit {
            write!(f, "\n  commit: {commit}")?;
        }
        write!(f, "\n  wrong: {}\n  do: {}", self.what, self.remedy)
    }
}
