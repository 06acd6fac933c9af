//! One row of a queue (formats, "Queue rows").

use std::fmt;

use crate::package::Identity;

/// The longest reason on a row, in characters.
const REASON_LENGTH: usize = 200;

/// What stands between the brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Mark {
    /// Not settled.
    Pending,
    /// Accepted.
    Accepted,
    /// Failed or blocked.
    Failed,
}

impl Mark {
    /// The character.
    #[must_use]
    pub fn as_char(self) -> char {
        match self {
            Self::Pending => ' ',
            Self::Accepted => 'x',
            Self::Failed => 'F',
        }
    }
}

/// Why a row failed, and the receipt that proves it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason, on one line.
    pub reason: String,
    /// The key of the receipt; none where there was none.
    pub receipt: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, " — {} (receipt {})", squeezed(&self.reason), self.receipt.as_deref().unwrap_or("none"))
    }
}

/// A row of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The task.
    pub identity: Identity,
    /// Its title, without escapes.
    pub title: String,
    /// How it stands.
    pub mark: Mark,
    /// What a failed row says behind its link.
    pub failure: Option<Failure>,
}

impl Row {
    /// The pending row of a task.
    #[must_use]
    pub fn pending(identity: Identity, title: impl Into<String>) -> Self {
        Self { identity, title: title.into(), mark: Mark::Pending, failure: None }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "- [{}] {} [", self.mark.as_char(), self.identity)?;
        for c in self.title.chars() {
            if matches!(c, '\\' | '[' | ']') {
                f.write_str("\\")?;
            }
            write!(f, "{c}")?;
        }
        write!(f, "]({})", self.identity.spec_file())?;
        self.failure.as_ref().map_or(Ok(()), |failure| failure.fmt(f))
    }
}

/// A line of a queue that is a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Line {
    /// A row of a loop.
    Loop(Row),
    /// Anything else with a mark: an intent, never executed.
    Intent {
        /// How it stands.
        mark: Mark,
        /// What it says.
        text: String,
    },
}

/// The row on `line`, which has no line ending but perhaps a carriage return; `None` where it is no row.
#[must_use]
pub fn parse_line(line: &str) -> Option<Line> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    let rest = line.strip_prefix("- [")?;
    let mark = match rest.chars().next()? {
        ' ' => Mark::Pending,
        'x' => Mark::Accepted,
        'F' => Mark::Failed,
        _ => return None,
    };
    let text = rest[1..].strip_prefix("] ")?;
    Some(parse_loop_row(mark, text).map_or_else(|| Line::Intent { mark, text: text.to_owned() }, Line::Loop))
}

fn parse_loop_row(mark: Mark, text: &str) -> Option<Row> {
    let text = text.trim_end();
    let (identity, text) = text.split_once(" [")?;
    let identity = Identity::parse(identity).ok()?;
    let (title, text) = parse_title(text)?;
    let rest = text.strip_prefix(&format!("({})", identity.spec_file()))?;
    let failure = match (mark, rest) {
        (Mark::Failed, rest) => Some(parse_failure(rest)?),
        (_, "") => None,
        _ => return None,
    };
    Some(Row { identity, title, mark, failure })
}

/// The title up to its closing bracket, without escapes, and what follows the bracket.
fn parse_title(text: &str) -> Option<(String, &str)> {
    let (mut title, mut chars) = (String::new(), text.char_indices());
    while let Some((at, c)) = chars.next() {
        match c {
            ']' => return Some((title, &text[at + 1..])),
            '\\' => title.push(chars.next()?.1),
            _ => title.push(c),
        }
    }
    None
}

fn parse_failure(rest: &str) -> Option<Failure> {
    let (reason, receipt) = rest.strip_prefix(" — ")?.strip_suffix(')')?.rsplit_once(" (receipt ")?;
    let key = receipt.len() == 24 && receipt.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    if reason.trim().is_empty() || !(key || receipt == "none") {
        return None;
    }
    Some(Failure { reason: reason.to_owned(), receipt: key.then(|| receipt.to_owned()) })
}

/// A reason as it stands on a row: white space squeezed, cut to 200 characters with an ellipsis as the last.
#[must_use]
pub fn squeezed(reason: &str) -> String {
    let text = reason.split_whitespace().collect::<Vec<_>>().join(" ");
    if text.chars().count() <= REASON_LENGTH {
        return text;
    }
    let mut cut: String = text.chars().take(REASON_LENGTH - 1).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn row(text: &str) -> Option<Row> {
        match parse_line(text)? {
            Line::Loop(row) => Some(row),
            Line::Intent { .. } => None,
        }
    }

    #[test]
    fn a_loop_row_matches_fully_or_is_an_intent() {
        let good = row("- [ ] a.t1 [T \\[x\\] \\\\ [y](docs/specs/a/t1/spec.md) \t\r").unwrap();
        assert_eq!((good.title.as_str(), good.mark), ("T [x] \\ [y", Mark::Pending));
        for text in [
            "- [ ] package.json [bump lodash](https://example.invalid/3)",
            "- [ ] a.t1 [T](docs/specs/a/t9/spec.md)",
            "- [ ] a.t1 [T](docs/specs/a/t1/spec.md) and more",
            "- [ ] A.t7 [T](docs/specs/A/t7/spec.md)",
            "- [ ] a.t9 [T] U](docs/specs/a/t9/spec.md)",
            "- [ ] a.t10 [T](docs/specs/a/t10/spec.md) — failed: x (receipt none)",
            "- [F] a.t1 [T](docs/specs/a/t1/spec.md)",
            "- [F] a.t1 [T](docs/specs/a/t1/spec.md) — failed: x",
            "- [F] a.t1 [T](docs/specs/a/t1/spec.md) — failed: x (receipt 12)",
            "- [ ] see a.t11 [T](docs/specs/a/t11/spec.md)",
            "- [ ] a.t1 [T\\](docs/specs/a/t1/spec.md)",
        ] {
            assert!(matches!(parse_line(text), Some(Line::Intent { .. })), "{text}");
        }
        for text in ["* [ ] a", " - [ ] b", "- [] c", "- [X] d", "- [ ]e", "-  [ ] f", "- [-] g", "- [é] h", "- ["] {
            assert_eq!(parse_line(text), None, "{text}");
        }
    }

    #[test]
    fn a_failure_is_read_from_its_last_receipt() {
        let text = "- [F] a.t1 [T](docs/specs/a/t1/spec.md) — failed: [x] — see (receipt none) (receipt 0123456789abcdef01234567)";
        let failure = row(text).unwrap().failure.unwrap();
        assert_eq!(failure.reason, "failed: [x] — see (receipt none)");
        assert_eq!(failure.receipt.as_deref(), Some("0123456789abcdef01234567"));
    }

    #[test]
    fn a_reason_is_squeezed_and_cut() {
        assert_eq!(squeezed("Which\n  unit?\t"), "Which unit?");
        assert_eq!(squeezed(&"한".repeat(200)), "한".repeat(200));
        assert_eq!(squeezed(&"한".repeat(201)), format!("{}…", "한".repeat(199)));
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(title in "[^\n\r]{1,40}", failed: bool, reason in "[^\n\r ][^\n\r]{0,260}") {
            prop_assume!(!reason.trim().is_empty());
            let identity = Identity::parse("inv.t-1").unwrap();
            let mark = if failed { Mark::Failed } else { Mark::Accepted };
            let failure = failed.then(|| Failure { reason: squeezed(&reason), receipt: None });
            let written = Row { identity, title, mark, failure };
            prop_assert_eq!(row(&written.to_string()), Some(written));
        }

        #[test]
        fn no_line_makes_it_panic(line in "\\PC{0,80}") {
            let _ = parse_line(&line);
            let _ = parse_line(&format!("- [ ] a.b [{line}"));
        }
    }
}
