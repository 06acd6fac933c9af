//! Forbidden patterns: what Python's `re.search` finds, found by another engine and never for ever.
//!
//! [`parse`] reads the pattern as Python does, [`emit`] writes it for the engine. No clock: a search is cut off by
//! the number of its steps, so that it ends the same way on every machine.

mod emit;
mod parse;
mod syntax;

use std::fmt;
use std::sync::{Arc, LazyLock};

use fancy_regex::{Regex, RegexBuilder};

/// A compiled pattern. Cheap to clone.
#[derive(Clone)]
pub struct Pattern(Arc<Compiled>);

struct Compiled {
    source: String,
    /// For most texts.
    plain: Regex,
    /// For texts in which the engine's word boundaries are not Python's; only where there are boundaries.
    exact: Option<Regex>,
}

/// Why a pattern gave no answer.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// It does not compile.
    #[error("{message} (at character {offset})")]
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

/// How many times a search may turn back, and how many more for each byte of the text: every place to begin at costs
/// a step even where nothing runs away.
const STEPS: usize = 1_000_000;
const STEPS_A_BYTE: usize = 4;
/// Texts up to this length share one compiled pattern; a longer one gets its own, with its own number of steps.
const SHORT: usize = 1 << 18;
/// As large as a compiled part may be, and as many instructions as it may have.
const LARGEST: usize = 32 << 20;
const LONGEST: usize = 1 << 18;

impl Pattern {
    /// Compiles `source`.
    ///
    /// # Errors
    /// [`PatternError::Invalid`] where Python 3.11 would refuse it, where it is too large, and where it names a
    /// character by `\N{…}`.
    pub fn compile(source: &str) -> Result<Self, PatternError> {
        let tree = parse::parse(source)
            .map_err(|refusal| PatternError::Invalid { offset: refusal.offset, message: refusal.message })?;
        let plain = emit::emit(&tree, false);
        let built = |text: &str| {
            build(text, SHORT).map_err(|error| PatternError::Invalid {
                offset: 0,
                message: format!("the engine cannot run it: {error}"),
            })
        };
        let exact = if plain.boundaries { Some(built(&emit::emit(&tree, true).text)?) } else { None };
        Ok(Self(Arc::new(Compiled { source: source.to_owned(), plain: built(&plain.text)?, exact })))
    }

    /// The pattern as it was written.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0.source
    }

    /// Whether the pattern is found anywhere in `text`.
    ///
    /// # Errors
    /// [`PatternError::RanAway`] where the search was cut off.
    pub fn search(&self, text: &str) -> Result<bool, PatternError> {
        let regex = self.0.exact.as_ref().filter(|_| has_other_words(text)).unwrap_or(&self.0.plain);
        let found = if text.len() <= SHORT {
            regex.is_match(text)
        } else {
            build(regex.as_str(), text.len()).and_then(|regex| regex.is_match(text))
        };
        found.map_err(|_| PatternError::RanAway(self.0.source.clone()))
    }
}

fn build(text: &str, length: usize) -> Result<Regex, fancy_regex::Error> {
    RegexBuilder::new(text)
        .backtrack_limit(STEPS + STEPS_A_BYTE * length)
        .delegate_size_limit(LARGEST)
        .max_prog_size(LONGEST)
        .build()
}

/// Whether `text` is empty, or holds a character that is part of a word for one engine only.
fn has_other_words(text: &str) -> bool {
    static OTHER: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(&format!(r"[\w~~[{}]]", emit::WORD)).ok());
    text.is_empty() || !text.is_ascii() && OTHER.as_ref().is_none_or(|other| !matches!(other.is_match(text), Ok(false)))
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Pattern").field(&self.0.source).finish()
    }
}

#[cfg(test)]
mod tests;
