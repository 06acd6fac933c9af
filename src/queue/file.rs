//! A loop's own queue file: read whole, written whole, and changed in one way only (formats, "Queue rows").

use std::collections::HashSet;

use super::{Claim, Failure, Line, Mark, Row, parse_line};
use crate::package::{Identity, LoopId};

const CLAIM_HEAD: &str = "<!-- replaces docs/specs/queue.md row (occurrence ";

/// What a queue file holds that it must not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {what}")]
pub struct QueueFault {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong with it.
    pub what: String,
}

/// A loop's queue file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueFile {
    /// The legacy row in whose place the loop stands.
    pub claim: Option<Claim>,
    /// The rows, in their order.
    pub rows: Vec<Row>,
}

impl QueueFile {
    /// The queue file of `loop_id` in `bytes`; `None` where it holds no row of that loop, so that it is no loop's
    /// queue file.
    ///
    /// # Errors
    /// Where it is one and holds a row of another kind, an identity twice, or bytes that are not UTF-8.
    pub fn parse(loop_id: &LoopId, bytes: &[u8]) -> Result<Option<Self>, QueueFault> {
        let text = text_of(bytes)?;
        let lines: Vec<(usize, &str, Line)> = text
            .split('\n')
            .enumerate()
            .filter_map(|(index, line)| Some((index + 1, line, parse_line(line)?)))
            .collect();
        let own = |row: &Row| row.identity.loop_id == *loop_id;
        if !lines.iter().any(|(_, _, line)| matches!(line, Line::Loop(row) if own(row))) {
            return Ok(None);
        }
        let (mut rows, mut known) = (Vec::new(), HashSet::new());
        for (line, text, parsed) in lines {
            let fault = |what: String| QueueFault { line, what };
            match parsed {
                Line::Loop(row) if !own(&row) => {
                    return Err(fault(format!("{} is a row of another loop", row.identity)));
                }
                Line::Loop(row) if !known.insert(row.identity.clone()) => {
                    return Err(fault(format!("{} stands there twice", row.identity)));
                }
                Line::Loop(row) => rows.push(row),
                Line::Intent { .. } => return Err(fault(format!("{:?} is no row of {loop_id}", text.trim_end()))),
            }
        }
        let claim = text.split('\n').next().and_then(parse_claim);
        Ok(Some(Self { claim, rows }))
    }

    /// The row of a task.
    #[must_use]
    pub fn row(&self, identity: &Identity) -> Option<&Row> {
        self.rows.iter().find(|row| row.identity == *identity)
    }

    /// The bytes as `add` writes them: the claim first, everything one blank line apart, one final line feed.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let claim = self.claim.iter().map(|claim| format!("{CLAIM_HEAD}{}): {} -->", claim.occurrence, claim.line));
        let lines: Vec<String> = claim.chain(self.rows.iter().map(ToString::to_string)).collect();
        format!("{}\n", lines.join("\n\n")).into_bytes()
    }
}

fn text_of(bytes: &[u8]) -> Result<&str, QueueFault> {
    std::str::from_utf8(bytes).map_err(|error| QueueFault {
        line: bytes[..error.valid_up_to()].iter().filter(|b| **b == b'\n').count() + 1,
        what: "not UTF-8".to_owned(),
    })
}

fn parse_claim(line: &str) -> Option<Claim> {
    let line = line.strip_suffix('\r').unwrap_or(line).trim_end();
    let (number, rest) = line.strip_prefix(CLAIM_HEAD)?.split_once("): ")?;
    let occurrence = number.parse().ok().filter(|n| *n > 0)?;
    Some(Claim { line: rest.strip_suffix(" -->")?.to_owned(), occurrence })
}

/// The bytes of a queue file with the pending row of `identity` settled and every other byte as it was; `None` where
/// it has no such row or the row is settled already.
#[must_use]
pub fn with_mark(bytes: &[u8], identity: &Identity, failure: Option<&Failure>) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut found = false;
    let lines: Vec<String> = text
        .split('\n')
        .map(|line| match parse_line(line) {
            Some(Line::Loop(row)) if row.identity == *identity && row.mark == Mark::Pending && !found => {
                found = true;
                settled(line, failure)
            }
            _ => line.to_owned(),
        })
        .collect();
    found.then(|| lines.join("\n").into_bytes())
}

fn settled(line: &str, failure: Option<&Failure>) -> String {
    let rest = &line["- [ ]".len()..];
    match failure {
        None => format!("- [x]{rest}"),
        Some(failure) => {
            let end = if rest.ends_with('\r') { "\r" } else { "" };
            format!("- [F]{}{failure}{end}", rest.trim_end())
        }
    }
}

/// The one change that a queue file may see.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transition {
    /// The task whose row was settled.
    pub identity: Identity,
    /// Why it failed; `None` where it was accepted.
    pub failure: Option<Failure>,
}

/// Why a change of a queue file is not the legal one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Illegal {
    /// Nothing changed.
    #[error("no row changed")]
    Nothing,
    /// A line that is no pending row of the loop changed, or lines came or went.
    #[error("line {0} changed, which is no pending row")]
    Line(usize),
    /// A settled row changed.
    #[error("the settled row of {0} changed")]
    Settled(Identity),
    /// More than one row changed.
    #[error("the rows of {0} and {1} changed together")]
    Several(Identity, Identity),
    /// The row changed into something else than its settled form.
    #[error("the row of {0} became something else than `[x]` or `[F] — <reason> (receipt <id>)`")]
    Form(Identity),
}

/// The legal transition from `old` to `new`, byte for byte.
///
/// # Errors
/// [`Illegal`] with what was changed instead.
pub fn transition(old: &[u8], new: &[u8]) -> Result<Transition, Illegal> {
    let (before, after): (Vec<&[u8]>, Vec<&[u8]>) =
        (old.split(|b| *b == b'\n').collect(), new.split(|b| *b == b'\n').collect());
    let mut found: Option<Transition> = None;
    for index in 0..before.len().max(after.len()) {
        let (Some(was), Some(is)) = (before.get(index), after.get(index)) else {
            return Err(Illegal::Line(index + 1));
        };
        if was == is {
            continue;
        }
        let pending = match std::str::from_utf8(was).ok().and_then(parse_line) {
            Some(Line::Loop(row)) if row.mark == Mark::Pending => row.identity,
            Some(Line::Loop(row)) => return Err(Illegal::Settled(row.identity)),
            _ => return Err(Illegal::Line(index + 1)),
        };
        if let Some(first) = found {
            return Err(Illegal::Several(first.identity, pending));
        }
        found = Some(settled_as(&pending, was, is).ok_or(Illegal::Form(pending))?);
    }
    found.ok_or(Illegal::Nothing)
}

fn settled_as(identity: &Identity, was: &[u8], is: &[u8]) -> Option<Transition> {
    let (was, is) = (std::str::from_utf8(was).ok()?, std::str::from_utf8(is).ok()?);
    let Some(Line::Loop(row)) = parse_line(is) else { return None };
    let same = row.identity == *identity && settled(was, row.failure.as_ref()) == is;
    same.then(|| Transition { identity: identity.clone(), failure: row.failure })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn id(text: &str) -> Identity {
        Identity::parse(text).unwrap()
    }

    fn sample() -> QueueFile {
        QueueFile {
            claim: None,
            rows: ["a.t1", "a.t2", "a.t3"].map(|t| Row::pending(id(t), "Title [x] \\ 한")).to_vec(),
        }
    }

    fn failure(reason: &str) -> Failure {
        Failure { reason: reason.into(), receipt: Some("0123456789abcdef01234567".into()) }
    }

    #[test]
    fn a_file_is_read_back_as_it_was_written() {
        let claim = Claim { line: "- [ ] odd --> (occurrence 9): - [ ] x -->".into(), occurrence: 2 };
        let file = QueueFile { claim: Some(claim), ..sample() };
        let bytes = file.to_bytes();
        assert_eq!(QueueFile::parse(&id("a.t1").loop_id, &bytes).unwrap(), Some(file));
        assert!(bytes.ends_with(b"spec.md)\n"));
    }

    #[test]
    fn only_rows_of_the_loop_stand_in_its_file() {
        let own = LoopId::new("a").unwrap();
        let good = "- [ ] a.t1 [T](docs/specs/a/t1/spec.md)\n";
        for (more, line) in [
            ("- [ ] and tests\n", 2),
            ("- [ ] b.t1 [T](docs/specs/b/t1/spec.md)\n", 2),
            (good, 2),
            ("\n- [F] a.t2 [T](docs/specs/a/t2/spec.md)\n", 3),
        ] {
            let bytes = format!("{good}{more}");
            assert_eq!(QueueFile::parse(&own, bytes.as_bytes()).unwrap_err().line, line, "{more}");
        }
        assert_eq!(QueueFile::parse(&own, b"# Notes\n- [ ] milk\n- [ ] b.t1 [T](docs/specs/b/t1/spec.md)\n"), Ok(None));
        assert!(QueueFile::parse(&own, b"\xff").is_err());
    }

    #[test]
    fn anything_but_one_settled_row_is_no_transition() {
        let bytes = sample().to_bytes();
        let once = with_mark(&bytes, &id("a.t1"), None).unwrap();
        assert_eq!(transition(&bytes, &bytes), Err(Illegal::Nothing));
        assert_eq!(transition(&once, &bytes), Err(Illegal::Settled(id("a.t1"))));
        let twice = with_mark(&once, &id("a.t2"), Some(&failure("failed: x"))).unwrap();
        assert_eq!(transition(&bytes, &twice), Err(Illegal::Several(id("a.t1"), id("a.t2"))));
        let text = String::from_utf8(bytes.clone()).unwrap();
        for (from, to) in [("- [ ] a.t1", "- [x] a.t9"), ("Title", "Titel"), ("[ ] a.t3", "[F] a.t3")] {
            assert!(transition(&bytes, text.replacen(from, to, 1).as_bytes()).is_err(), "{to}");
        }
        assert!(transition(&bytes, format!("{text}\n").as_bytes()).is_err());
        assert!(transition(&bytes, &bytes[..bytes.len() - 1]).is_err());
        assert_eq!(with_mark(&once, &id("a.t1"), None), None);
        assert_eq!(with_mark(&bytes, &id("a.t9"), None), None);
    }

    proptest! {
        #[test]
        fn the_legal_transition_changes_one_line_and_is_recognised(
            which in 0usize..3, failed: bool, reason in "\\PC{0,300}", crlf: bool, blank in "[ \t]{0,3}",
        ) {
            let text = String::from_utf8(sample().to_bytes()).unwrap().replace(".md)", &format!(".md){blank}"));
            let text = if crlf { text.replace('\n', "\r\n") } else { text };
            let identity = id(["a.t1", "a.t2", "a.t3"][which]);
            let why = failed.then(|| failure(&format!("failed: {reason}")));
            let after = with_mark(text.as_bytes(), &identity, why.as_ref()).unwrap();
            let found = transition(text.as_bytes(), &after).unwrap();
            prop_assert_eq!(&found.identity, &identity);
            prop_assert_eq!(found.failure.is_some(), failed);
            let after = String::from_utf8(after).unwrap();
            let changed = text.split('\n').zip(after.split('\n')).filter(|(a, b)| a != b).count();
            prop_assert_eq!(changed, 1);
            let read = QueueFile::parse(&identity.loop_id, after.as_bytes()).unwrap().unwrap();
            prop_assert_eq!(read.row(&identity).unwrap().mark, if failed { Mark::Failed } else { Mark::Accepted });
        }
    }
}
