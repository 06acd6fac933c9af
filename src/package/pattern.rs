//! Forbidden patterns: what Python's `re.search` finds, and never for ever.
//!
//! [`parse`] reads a pattern as Python does. What is regular is searched by an engine that takes linear time, the
//! rest by a machine that turns back and counts its steps. No clock: a search is given up by its count, so that it
//! ends the same way on every machine.

mod class;
mod machine;
mod parse;
mod program;
mod regular;
mod syntax;

use std::fmt;
use std::sync::{Arc, LazyLock, OnceLock};

use class::Set;
use program::Program;
use regular::Regular;
use syntax::Node;

/// A compiled pattern. Cheap to clone.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    source: String,
    tree: Node,
    /// Where it is regular; built for the first search, since most patterns are only judged.
    regular: OnceLock<Option<Regular>>,
    program: Program,
}

/// Why a pattern gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not compile.
    #[error("{message} (at character {})", .offset + 1)]
    Invalid {
        /// Where in the pattern, in characters from 0.
        offset: usize,
        /// What is wrong there.
        message: String,
    },
    /// It was given up: it would search for ever.
    #[error("the pattern {0:?} runs away: it was cut off before it had an answer")]
    RanAway(String),
}

impl Pattern {
    /// Compiles `source`.
    ///
    /// # Errors
    /// [`PatternError::Invalid`] where Python 3.11 would refuse it, where it is too large, and where it names a
    /// character by `\N{…}`.
    pub fn compile(source: &str) -> Result<Self, PatternError> {
        let tree = parse::parse(source)
            .map_err(|refusal| PatternError::Invalid { offset: refusal.offset, message: refusal.message })?;
        let too_large = || PatternError::Invalid { offset: 0, message: "it is too large".to_owned() };
        let program = Program::new(&tree).ok_or_else(too_large)?;
        Ok(Self(Arc::new(Compiled { source: source.to_owned(), tree, regular: OnceLock::new(), program })))
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    fn regular(&self) -> Option<&Regular> {
        self.0.regular.get_or_init(|| Regular::new(&self.0.tree)).as_ref()
    }

    /// Whether the pattern is found anywhere in `text`.
    ///
    /// # Errors
    /// [`PatternError::RanAway`] where the search was cut off.
    pub fn search(&self, text: &str) -> Result<bool, PatternError> {
        /// What is part of a word, in Unicode and in ASCII.
        static WORD: LazyLock<[Set; 2]> = LazyLock::new(|| [false, true].map(|ascii| Set::new(&class::word(ascii))));
        match self.regular().and_then(|regular| regular.is_found_in(text)) {
            Some(found) => Ok(found),
            None => {
                machine::search(&self.0.program, &WORD, text).map_err(|_| PatternError::RanAway(self.0.source.clone()))
            }
        }
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.0.source).finish()
    }
}

#[cfg(test)]
mod tests;
