//! Escapes and sets, as Python reads them.

use super::super::syntax::{At, Class, Item, Node};
use super::{Flags, Parser, Read, refuse};

/// What an escape stands for.
pub(super) enum Escape {
    Char(u32),
    Category(Item),
    Node(Node),
}

impl Parser {
    /// What follows a backslash outside of a set.
    pub(super) fn escape(&mut self, flags: Flags) -> Read<Escape> {
        let start = self.at - 1;
        let at = match self.peek() {
            Some('A') => At::TextStart,
            Some('Z') => At::TextEnd,
            Some('b') => At::Boundary { negated: false, ascii: flags.ascii },
            Some('B') => At::Boundary { negated: true, ascii: flags.ascii },
            Some(digit @ '1'..='9') => return self.number(digit, flags, start),
            _ => return self.shared_escape(flags, start),
        };
        self.at += 1;
        Ok(Escape::Node(Node::At(at)))
    }

    /// `\1` to `\99`, or three octal digits.
    fn number(&mut self, digit: char, flags: Flags, start: usize) -> Read<Escape> {
        let octal = |c: Option<char>| c.and_then(|c| c.to_digit(8));
        let ahead = |n: usize| self.chars.get(self.at + n).copied();
        if let (Some(a), Some(b), Some(c)) = (octal(Some(digit)), octal(ahead(1)), octal(ahead(2))) {
            self.at += 3;
            return self.octal(a * 64 + b * 8 + c, start);
        }
        let digits = self.take_while(2, |c| c.is_ascii_digit());
        let group = digits.parse().unwrap_or(usize::MAX);
        if group >= self.groups.len() {
            return refuse(start, format!("there is no group {digits} before this"));
        }
        self.check_open(group, start)?;
        Ok(Escape::Node(Node::Back(group, flags.case())))
    }

    fn octal(&self, value: u32, start: usize) -> Read<Escape> {
        if value > 0o377 { refuse(start, "an octal escape goes up to \\377") } else { Ok(Escape::Char(value)) }
    }

    /// The escapes that mean the same in a set and outside of one.
    fn shared_escape(&mut self, flags: Flags, start: usize) -> Read<Escape> {
        let Some(c) = self.next() else { return refuse(start, "the pattern ends in a backslash") };
        let category =
            |class| Ok(Escape::Category(Item::Category { class, negated: c.is_uppercase(), ascii: flags.ascii }));
        match c {
            'd' | 'D' => category(Class::Digit),
            's' | 'S' => category(Class::Space),
            'w' | 'W' => category(Class::Word),
            'a' => Ok(Escape::Char(7)),
            'f' => Ok(Escape::Char(12)),
            'n' => Ok(Escape::Char(10)),
            'r' => Ok(Escape::Char(13)),
            't' => Ok(Escape::Char(9)),
            'v' => Ok(Escape::Char(11)),
            'x' => self.hex(2, start),
            'u' => self.hex(4, start),
            'U' => self.hex(8, start),
            '0' => {
                let digits = self.take_while(2, |c| c.is_digit(8));
                Ok(Escape::Char(u32::from_str_radix(&digits, 8).unwrap_or(0)))
            }
            'N' => refuse(start, "\\N{…} is not read here: write the character, or its number as \\uXXXX"),
            c if c.is_ascii_alphanumeric() => refuse(start, format!("Python has no escape \\{c}")),
            c => Ok(Escape::Char(c.into())),
        }
    }

    fn hex(&mut self, digits: usize, start: usize) -> Read<Escape> {
        let written = self.take_while(digits, |c| c.is_ascii_hexdigit());
        match u32::from_str_radix(&written, 16) {
            Ok(value) if written.len() == digits && value <= char::MAX.into() => Ok(Escape::Char(value)),
            _ => refuse(start, format!("this escape needs {digits} hex digits of a character that is there")),
        }
    }

    /// A set behind its `[`.
    pub(super) fn set(&mut self, flags: Flags) -> Read<Node> {
        let start = self.at - 1;
        let negated = self.take('^');
        let mut items = Vec::new();
        loop {
            let here = self.at;
            let from = match self.next() {
                None => return refuse(start, "this [ is never closed"),
                Some(']') if !items.is_empty() => break,
                Some(c) => self.member(c, flags)?,
            };
            if !self.take('-') {
                items.push(from);
                continue;
            }
            let to = match self.next() {
                None => return refuse(start, "this [ is never closed"),
                Some(']') => {
                    items.extend([from, Item::Range('-'.into(), '-'.into())]);
                    break;
                }
                Some(c) => self.member(c, flags)?,
            };
            match (from, to) {
                (Item::Range(low, _), Item::Range(high, _)) if low <= high => items.push(Item::Range(low, high)),
                _ => return refuse(here, "this is no range: it ends before it begins, or an end is no character"),
            }
        }
        Ok(Node::Set { negated, items, case: flags.case() })
    }

    /// A member of a set that begins with `c`.
    fn member(&mut self, c: char, flags: Flags) -> Read<Item> {
        let char = |c: u32| Item::Range(c, c);
        if c != '\\' {
            return Ok(char(c.into()));
        }
        let start = self.at - 1;
        if self.take('b') {
            return Ok(char(8));
        }
        if self.peek().is_some_and(|c| c.is_digit(8)) {
            let digits = self.take_while(3, |c| c.is_digit(8));
            let escape = self.octal(u32::from_str_radix(&digits, 8).unwrap_or(u32::MAX), start)?;
            return if let Escape::Char(c) = escape { Ok(char(c)) } else { refuse(start, "no character") };
        }
        match self.shared_escape(flags, start)? {
            Escape::Char(c) => Ok(char(c)),
            Escape::Category(item) => Ok(item),
            Escape::Node(_) => refuse(start, "this stands for no character"),
        }
    }
}
