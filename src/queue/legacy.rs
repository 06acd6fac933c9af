//! The legacy queue: raw intents, read for planning and never written.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use super::{Line, Mark, QueueFault, parse_line};

/// Where the legacy queue is, relative to the repository's root.
pub const LEGACY_QUEUE: &str = "docs/specs/queue.md";

/// What a loop that takes an intent's place says of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Claim {
    /// The row's whole line, without its line ending.
    pub line: String,
    /// Which of the rows with that line, from 1.
    pub occurrence: usize,
}

/// An intent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LegacyRow {
    /// Its line, from 1.
    pub line: usize,
    /// How it stands.
    pub mark: Mark,
    /// What it says.
    pub text: String,
    /// How a loop names it.
    pub claim: Claim,
}

/// The intents in `bytes`, in their order. A row that is fully a loop's is none.
///
/// # Errors
/// Where the bytes are not UTF-8.
pub fn parse_legacy(bytes: &[u8]) -> Result<Vec<LegacyRow>, QueueFault> {
    let text = std::str::from_utf8(bytes).map_err(|error| QueueFault {
        line: bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1,
        what: "not UTF-8".to_owned(),
    })?;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    let mut rows = Vec::new();
    for (index, line) in text.split('\n').enumerate() {
        let line = line.strip_suffix('\r').unwrap_or(line);
        let Some(Line::Intent { mark, text }) = parse_line(line) else { continue };
        let occurrence = *seen.entry(line).and_modify(|n| *n += 1).or_insert(1);
        let claim = Claim { line: line.to_owned(), occurrence };
        rows.push(LegacyRow { line: index + 1, mark, text, claim });
    }
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_rows_are_counted_line_endings_aside() {
        let rows =
            parse_legacy(b"- [x] a\n- [ ] a\r\n- [ ] b\n- [ ] a\n- [ ] i.t [T](docs/specs/i/t/spec.md)").unwrap();
        let seen: Vec<_> = rows.iter().map(|r| (r.line, r.claim.line.as_str(), r.claim.occurrence)).collect();
        assert_eq!(seen, [(1, "- [x] a", 1), (2, "- [ ] a", 1), (3, "- [ ] b", 1), (4, "- [ ] a", 2)]);
        assert_eq!(parse_legacy(b"a\n- [ ] caf\xe9\n").unwrap_err().line, 2);
    }
}
