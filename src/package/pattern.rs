//! Forbidden patterns: `re.search` of Python, translated.

use std::fmt;

/// A compiled pattern. Cheap to clone.
#[derive(Clone)]
pub struct Pattern {
    source: String,
    regex: fancy_regex::Regex,
}

/// Why a pattern gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not compile.
    #[error("{message}")]
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
    /// [`PatternError::Invalid`] where Python would refuse it, or where it is too large.
    pub fn compile(source: &str) -> Result<Self, PatternError> {
        let regex = fancy_regex::Regex::new(source)
            .map_err(|error| PatternError::Invalid { offset: 0, message: error.to_string() })?;
        Ok(Self { source: source.to_owned(), regex })
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.source
    }

    /// Whether the pattern is found anywhere in `text`.
    ///
    /// # Errors
    /// [`PatternError::RanAway`] where the search was cut off.
    pub fn search(&self, text: &str) -> Result<bool, PatternError> {
        self.regex.is_match(text).map_err(|_| PatternError::RanAway(self.source.clone()))
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.source).finish()
    }
}
