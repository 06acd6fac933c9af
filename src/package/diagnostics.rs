//! A fault of a package: what is wrong, where, and what to write instead. Never prints.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong in a file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Fault {
    /// The file, relative to the repository's root.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong, in one line.
    pub message: String,
    /// What to write instead, in one line.
    pub help: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

/// A line and a column, both from 1, the column in characters. The order is the order of reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl Place {
    /// Where a file begins; also where what a file lacks altogether is reported.
    pub(crate) const START: Self = Self { line: 1, column: 1 };

    /// The beginning of a line, counted from 0 as lists of lines are.
    pub(crate) const fn of_line(index: usize) -> Self {
        Self { line: index + 1, column: 1 }
    }
}

/// The faults of one file, gathered while it is read.
#[derive(Debug)]
pub(crate) struct Faults {
    file: String,
    found: Vec<Fault>,
}

impl Faults {
    pub(crate) const fn new(file: String) -> Self {
        Self { file, found: Vec::new() }
    }

    pub(crate) fn file(&self) -> &str {
        &self.file
    }

    pub(crate) fn push(&mut self, at: Place, message: impl Into<String>, help: impl Into<String>) {
        self.found.push(Fault {
            file: self.file.clone(),
            line: at.line,
            column: at.column,
            message: message.into(),
            help: help.into(),
        });
    }

    pub(crate) const fn is_empty(&self) -> bool {
        self.found.is_empty()
    }

    /// The faults, topmost first; those of one place in the order in which they were found.
    pub(crate) fn into_sorted(mut self) -> Vec<Fault> {
        self.found.sort_by_key(|fault| (fault.line, fault.column));
        self.found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_is_written_with_its_place_and_sorted_by_it() {
        let mut faults = Faults::new("docs/specs/inv/meta.md".into());
        faults.push(Place { line: 9, column: 2 }, "later", "");
        faults.push(Place { line: 3, column: 5 }, "first", "write it");
        faults.push(Place { line: 3, column: 5 }, "second", "");
        let texts: Vec<String> = faults.into_sorted().iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "docs/specs/inv/meta.md:3:5: first",
                "docs/specs/inv/meta.md:3:5: second",
                "docs/specs/inv/meta.md:9:2: later"
            ]
        );
    }
}
