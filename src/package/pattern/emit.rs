//! Writes a pattern of Python in the language of `fancy-regex`, so that both find the same.
//!
//! Every character that could mean something is written by its number; groups that nothing refers to capture
//! nothing, so that whatever is regular runs in linear time.

use std::collections::BTreeSet;
use std::fmt::Write;

use super::syntax::{At, Case, Class, Item, Node, Style};

/// A pattern written for `fancy-regex`.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Emitted {
    pub(super) text: String,
    /// Whether it holds a `\b` or `\B` of Unicode.
    pub(super) boundaries: bool,
}

/// Writes `node`. With `exact`, `\b` and `\B` are spelled out as Python means them, which is slower.
pub(super) fn emit(node: &Node, exact: bool) -> Emitted {
    let mut referred = BTreeSet::new();
    find_references(node, &mut referred);
    let mut emitter = Emitter { out: String::new(), referred, exact, boundaries: false };
    emitter.node(node);
    Emitted { text: emitter.out, boundaries: emitter.boundaries }
}

fn find_references(node: &Node, found: &mut BTreeSet<usize>) {
    match node {
        Node::Literal(..) | Node::Any { .. } | Node::Set { .. } | Node::At(_) => {}
        Node::Group(_, node) | Node::Atomic(node) | Node::Repeat { node, .. } | Node::Look { node, .. } => {
            find_references(node, found);
        }
        Node::Sequence(nodes) | Node::Choice(nodes) => nodes.iter().for_each(|node| find_references(node, found)),
        Node::Back(group, _) => {
            found.insert(*group);
        }
        Node::Conditional { group, yes, no } => {
            found.insert(*group);
            find_references(yes, found);
            find_references(no, found);
        }
    }
}

/// A word in Python: letters and whatever has a numeric value. The engine's own `\w` has marks as well.
pub(super) const WORD: &str = r"\p{L}\p{N}_";

/// Characters that Python compares alike, and the engine does not, when case is ignored.
const ALIKE: [&[u32]; 1] = [&[0x49, 0x69, 0x130, 0x131]];

/// What no text holds: the halves of a surrogate pair.
const SURROGATES: (u32, u32) = (0xd800, 0xdfff);

struct Emitter {
    out: String,
    referred: BTreeSet<usize>,
    exact: bool,
    boundaries: bool,
}

impl Emitter {
    fn push(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// `open`, the part, and the parenthesis that closes it.
    fn wrapped(&mut self, open: &str, node: &Node) {
        self.push(open);
        self.node(node);
        self.push(")");
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Literal(c, case) => self.literal(*c, *case),
            Node::Any { line_end: true } => self.push("(?s:.)"),
            Node::Any { line_end: false } => self.push("."),
            Node::Set { negated, items, case } => self.set(*negated, items, *case),
            Node::At(at) => self.at(*at),
            Node::Group(Some(number), node) if self.referred.contains(number) => self.wrapped("(", node),
            Node::Group(_, node) => self.atom(node),
            Node::Atomic(node) => self.wrapped("(?>", node),
            Node::Sequence(nodes) => nodes.iter().for_each(|node| self.node(node)),
            Node::Choice(nodes) => {
                for (i, node) in nodes.iter().enumerate() {
                    self.push(if i == 0 { "" } else { "|" });
                    self.node(node);
                }
            }
            Node::Repeat { node, min, max, style } => self.repeat(node, *min, *max, *style),
            Node::Look { behind, negated, node } => {
                let open = match (behind, negated) {
                    (false, false) => "(?=",
                    (false, true) => "(?!",
                    (true, false) => "(?<=",
                    (true, true) => "(?<!",
                };
                self.wrapped(open, node);
            }
            Node::Back(group, case) => {
                let number = self.number(*group);
                let flag = if *case == Case::Exact { "" } else { "i" };
                let _ = write!(self.out, "(?{flag}:\\{number})");
            }
            Node::Conditional { group, yes, no } => {
                let number = self.number(*group);
                let _ = write!(self.out, "(?({number})");
                self.wrapped("(?:", yes);
                self.push("|");
                self.wrapped("(?:", no);
                self.push(")");
            }
        }
    }

    /// The part, in a group where it would fall apart without one.
    fn atom(&mut self, node: &Node) {
        match node {
            Node::Sequence(_) | Node::Choice(_) | Node::Repeat { .. } | Node::At(_) => self.wrapped("(?:", node),
            Node::Literal(..)
            | Node::Any { .. }
            | Node::Set { .. }
            | Node::Group(..)
            | Node::Look { .. }
            | Node::Atomic(_)
            | Node::Back(..)
            | Node::Conditional { .. } => self.node(node),
        }
    }

    /// The number that a group has among those that capture.
    fn number(&self, group: usize) -> usize {
        self.referred.range(..=group).count()
    }

    fn repeat(&mut self, node: &Node, min: u32, max: Option<u32>, style: Style) {
        if node.takes_nothing() {
            // The engine repeats nothing that takes nothing; Python tries it once.
            let (before, behind) = match (min, max, style) {
                (_, Some(0), _) => return self.push("(?:)"),
                (1.., ..) => return self.atom(node),
                (0, _, Style::Greedy) => ("(?:", "|)"),
                (0, _, Style::Lazy) => ("(?:|", ")"),
                (0, _, Style::Possessive) => ("(?>", "|)"),
            };
            self.push(before);
            self.node(node);
            return self.push(behind);
        }
        if style == Style::Possessive {
            // Python never goes back into a single turn of it either.
            self.push("(?>");
            self.wrapped("(?>", node);
        } else {
            self.atom(node);
        }
        match (min, max) {
            (0, None) => self.push("*"),
            (1, None) => self.push("+"),
            (0, Some(1)) => self.push("?"),
            (min, None) => {
                let _ = write!(self.out, "{{{min},}}");
            }
            (min, Some(max)) => {
                let _ = write!(self.out, "{{{min},{max}}}");
            }
        }
        match style {
            Style::Greedy => {}
            Style::Lazy => self.push("?"),
            Style::Possessive => self.push(")"),
        }
    }

    fn at(&mut self, at: At) {
        const IN: &str = "(?:(?<=[W])(?![W])|(?<![W])(?=[W]))";
        // Python finds no `\B` in an empty text.
        const OUT: &str = r"(?:(?<=[W])(?=[W])|(?<![W])(?![W])(?!\A\z))";
        match at {
            At::TextStart => self.push(r"\A"),
            At::LineStart => self.push("(?m:^)"),
            At::TextEnd => self.push(r"\z"),
            At::LastLineEnd => self.push(r"(?=\n?\z)"),
            At::LineEnd => self.push("(?m:$)"),
            At::Boundary { negated, ascii } => {
                self.boundaries |= !ascii;
                if ascii || self.exact {
                    let text = if negated { OUT } else { IN };
                    self.push(&text.replace('W', if ascii { "0-9A-Za-z_" } else { WORD }));
                } else {
                    self.push(if negated { r"\B" } else { r"\b" });
                }
            }
        }
    }

    fn literal(&mut self, c: u32, case: Case) {
        match char::from_u32(c) {
            Some(c) if case == Case::Exact && c.is_ascii_alphanumeric() => self.out.push(c),
            Some(_) if case == Case::Exact => self.character(c),
            _ => self.set(false, &[Item::Range(c, c)], case),
        }
    }

    fn character(&mut self, c: u32) {
        let _ = write!(self.out, "\\x{{{c:x}}}");
    }

    fn range(&mut self, low: u32, high: u32) {
        let (before, behind) = (high.min(SURROGATES.0 - 1), low.max(SURROGATES.1 + 1));
        for (low, high) in [(low, before), (behind, high)] {
            if low < high {
                self.character(low);
                self.push("-");
            }
            if low <= high {
                self.character(high);
            }
        }
    }

    fn set(&mut self, negated: bool, items: &[Item], case: Case) {
        let mut ranges: Vec<(u32, u32)> = items
            .iter()
            .filter_map(|item| match item {
                Item::Range(low, high) => Some((*low, *high)),
                Item::Category { .. } => None,
            })
            .collect();
        add_cases(&mut ranges, case);
        let categories: Vec<&Item> = items.iter().filter(|item| matches!(item, Item::Category { .. })).collect();
        // A category holds what it holds, whatever the case: only the rest is compared without regard to it.
        let folds = case == Case::Ignored && !ranges.is_empty();
        let apart = folds && !negated && !categories.is_empty();
        self.push(if apart { "(?:" } else { "" });
        self.push(if folds { "(?i:" } else { "" });
        // The empty set is written as the complement of everything: what Python has in it no text holds.
        let everything = r"\x{0}-\x{10ffff}";
        let empty = categories.is_empty() && ranges.iter().all(|(low, high)| is_surrogate(*low) && is_surrogate(*high));
        self.push(if negated != empty { "[^" } else { "[" });
        if empty {
            self.push(everything);
        }
        ranges.iter().for_each(|(low, high)| self.range(*low, *high));
        if apart {
            self.push("])|[");
        }
        categories.iter().for_each(|item| self.category(item));
        self.push("]");
        self.push(if folds { ")" } else { "" });
    }

    fn category(&mut self, item: &Item) {
        let Item::Category { class, negated, ascii } = item else { return };
        let members = match (class, ascii) {
            (Class::Digit, false) => r"\d",
            (Class::Digit, true) => "0-9",
            (Class::Space, false) => r"\s\x{1c}-\x{1f}",
            (Class::Space, true) => r"\x{9}-\x{d}\x{20}",
            (Class::Word, false) => WORD,
            (Class::Word, true) => "0-9A-Za-z_",
        };
        if *negated {
            let _ = write!(self.out, "[^{members}]");
        } else {
            self.push(members);
        }
    }
}

const fn is_surrogate(c: u32) -> bool {
    SURROGATES.0 <= c && c <= SURROGATES.1
}

/// Adds what the members of a set are compared alike with, beyond what the engine adds by itself.
fn add_cases(ranges: &mut Vec<(u32, u32)>, case: Case) {
    let overlaps = |ranges: &[(u32, u32)], c: u32| ranges.iter().any(|(low, high)| (*low..=*high).contains(&c));
    match case {
        Case::Exact => {}
        Case::Ignored => {
            for alike in ALIKE {
                if alike.iter().any(|c| overlaps(ranges, *c)) {
                    ranges.extend(alike.iter().map(|c| (*c, *c)));
                }
            }
        }
        Case::IgnoredInAscii => {
            for upper in b'A'..=b'Z' {
                let (upper, lower) = (u32::from(upper), u32::from(upper.to_ascii_lowercase()));
                if overlaps(ranges, upper) || overlaps(ranges, lower) {
                    ranges.extend([(upper, upper), (lower, lower)]);
                }
            }
        }
    }
}
