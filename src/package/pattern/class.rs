//! Which characters a part of a pattern takes, exactly as Python has it.

use std::sync::LazyLock;

use regex_syntax::hir::{ClassUnicode, ClassUnicodeRange};
use regex_syntax::{Parser, hir};

use super::syntax::{Case, Class, Item, Node};

/// What no text holds: the halves of a surrogate pair.
const SURROGATES: (u32, u32) = (0xd800, 0xdfff);

/// Characters that Python compares alike when case is ignored, and simple case folding does not.
const ALIKE: [&[char]; 1] = [&['I', 'i', 'İ', 'ı']];

/// The characters that `node` takes, where it always takes exactly one.
pub(super) fn of_node(node: &Node) -> Option<ClassUnicode> {
    match node {
        Node::Literal(c, case) => Some(of_items(&[Item::Range(*c, *c)], *case)),
        Node::Any { line_end: true } => Some(all()),
        Node::Any { line_end: false } => {
            let mut class = from_ranges(&[('\n', '\n')]);
            class.negate();
            Some(class)
        }
        Node::Set { negated, items, case } => {
            let mut class = of_items(items, *case);
            if *negated {
                class.negate();
            }
            Some(class)
        }
        Node::At(_)
        | Node::Group(..)
        | Node::Sequence(_)
        | Node::Choice(_)
        | Node::Repeat { .. }
        | Node::Look { .. }
        | Node::Atomic(_)
        | Node::Back(..)
        | Node::Conditional { .. } => None,
    }
}

/// Every character.
pub(super) fn all() -> ClassUnicode {
    from_ranges(&[('\0', char::MAX)])
}

/// What Python takes for part of a word.
pub(super) fn word(ascii: bool) -> ClassUnicode {
    category(Class::Word, ascii)
}

fn from_ranges(ranges: &[(char, char)]) -> ClassUnicode {
    ClassUnicode::new(ranges.iter().map(|(low, high)| ClassUnicodeRange::new(*low, *high)))
}

fn of_items(items: &[Item], case: Case) -> ClassUnicode {
    let mut class = ClassUnicode::empty();
    for item in items {
        if let Item::Range(low, high) = item {
            let (before, behind) = ((*high).min(SURROGATES.0 - 1), (*low).max(SURROGATES.1 + 1));
            for (low, high) in [(*low, before), (behind, *high)] {
                if let (Some(low), Some(high)) = (char::from_u32(low), char::from_u32(high))
                    && low <= high
                {
                    class.push(ClassUnicodeRange::new(low, high));
                }
            }
        }
    }
    fold(&mut class, case);
    // A category holds what it holds, whatever the case.
    for item in items {
        if let Item::Category { class: kind, negated, ascii } = item {
            let mut members = category(*kind, *ascii);
            if *negated {
                members.negate();
            }
            class.union(&members);
        }
    }
    class
}

fn fold(class: &mut ClassUnicode, case: Case) {
    match case {
        Case::Exact => {}
        Case::Ignored => {
            // Without tables for it there is nothing to fold by; they are compiled in.
            let _ = class.try_case_fold_simple();
            for alike in ALIKE {
                let holds = |c: &char| class.iter().any(|range| range.start() <= *c && *c <= range.end());
                if alike.iter().any(holds) {
                    class.union(&from_ranges(&alike.iter().map(|c| (*c, *c)).collect::<Vec<_>>()));
                }
            }
        }
        Case::IgnoredInAscii => {
            let mut letters = class.clone();
            letters.intersect(&from_ranges(&[('A', 'Z'), ('a', 'z')]));
            for range in letters.iter() {
                for c in range.start()..=range.end() {
                    let other = if c.is_ascii_uppercase() { c.to_ascii_lowercase() } else { c.to_ascii_uppercase() };
                    class.push(ClassUnicodeRange::new(other, other));
                }
            }
        }
    }
}

fn category(class: Class, ascii: bool) -> ClassUnicode {
    /// Decimal digits; white space as `str.isspace` has it; letters, whatever has a numeric value, and `_`.
    static UNICODE: LazyLock<[ClassUnicode; 3]> =
        LazyLock::new(|| [r"\d", r"[\s\x1C-\x1F]", r"[\p{L}\p{N}_]"].map(read));
    let index = match class {
        Class::Digit => 0,
        Class::Space => 1,
        Class::Word => 2,
    };
    if ascii {
        match class {
            Class::Digit => from_ranges(&[('0', '9')]),
            Class::Space => from_ranges(&[('\t', '\r'), (' ', ' ')]),
            Class::Word => from_ranges(&[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')]),
        }
    } else {
        UNICODE[index].clone()
    }
}

/// The class that a set in the engine's own language holds.
fn read(text: &str) -> ClassUnicode {
    match Parser::new().parse(text).map(hir::Hir::into_kind) {
        Ok(hir::HirKind::Class(hir::Class::Unicode(class))) => class,
        // Only what is written here is read, and all of that is a class.
        _ => ClassUnicode::empty(),
    }
}

/// A class that a character is quickly looked up in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Set {
    ascii: u128,
    ranges: Vec<(char, char)>,
}

impl Set {
    pub(super) fn new(class: &ClassUnicode) -> Self {
        let ranges: Vec<_> = class.iter().map(|range| (range.start(), range.end())).collect();
        let holds = |byte: &u8| ranges.iter().any(|(low, high)| (*low..=*high).contains(&char::from(*byte)));
        let ascii = (0..128).filter(holds).fold(0, |bits, byte| bits | 1 << byte);
        Self { ascii, ranges }
    }

    pub(super) fn holds_byte(&self, byte: u8) -> bool {
        self.ascii >> (byte & 127) & 1 == 1
    }

    pub(super) fn holds(&self, c: char) -> bool {
        match u8::try_from(u32::from(c)) {
            Ok(byte) if byte < 128 => self.holds_byte(byte),
            _ => {
                let after = self.ranges.partition_point(|(low, _)| *low <= c);
                after > 0 && c <= self.ranges[after - 1].1
            }
        }
    }

    /// The one character in it, where there is just one and it is of ASCII.
    pub(super) fn only_byte(&self) -> Option<u8> {
        match self.ranges[..] {
            [(low, high)] if low == high => u8::try_from(u32::from(low)).ok().filter(u8::is_ascii),
            _ => None,
        }
    }
}
