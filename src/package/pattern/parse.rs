//! Reads a pattern as Python 3.11 reads it, and refuses what Python refuses.

mod escape;

use std::collections::HashMap;

use escape::Escape;

use super::syntax::{At, Case, Node, Style, Width};

/// Why a pattern is none, and where in it, in characters from 0.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub(super) offset: usize,
    pub(super) message: String,
}

type Read<T> = Result<T, Refusal>;

fn refuse<T>(offset: usize, message: impl Into<String>) -> Read<T> {
    Err(Refusal { offset, message: message.into() })
}

/// As deep as groups may nest: reading recurses, and so do those that come after.
const DEEPEST: usize = 100;

/// The tree of `source`.
pub(super) fn parse(source: &str) -> Read<Node> {
    let mut parser = Parser {
        chars: source.chars().collect(),
        at: 0,
        groups: vec![None],
        names: HashMap::new(),
        later: Vec::new(),
        behind: None,
        global: Flags::default(),
    };
    let node = parser.choice(Flags::default(), 0)?;
    if parser.peek().is_some() {
        return Err(parser.refusal("there is no ( for this )"));
    }
    match parser.later.iter().find(|(group, _)| *group >= parser.groups.len()) {
        Some((group, at)) => Err(Refusal { offset: *at, message: format!("there is no group {group}") }),
        None => Ok(node),
    }
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Flags {
    ascii: bool,
    ignore_case: bool,
    multi_line: bool,
    dot_all: bool,
    verbose: bool,
}

impl Flags {
    const fn case(self) -> Case {
        match (self.ignore_case, self.ascii) {
            (false, _) => Case::Exact,
            (true, false) => Case::Ignored,
            (true, true) => Case::IgnoredInAscii,
        }
    }

    const fn set(&mut self, flag: char, on: bool) {
        match flag {
            'a' => self.ascii = on,
            'u' => self.ascii = !on,
            'i' => self.ignore_case = on,
            'm' => self.multi_line = on,
            's' => self.dot_all = on,
            'x' => self.verbose = on,
            _ => {}
        }
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    /// The width of each group by number; nothing while it is open. The whole pattern is group 0.
    groups: Vec<Option<Width>>,
    names: HashMap<String, usize>,
    /// The groups that conditions name by number, with their places: they may open later.
    later: Vec<(usize, usize)>,
    /// Inside a look-behind: the number of groups when the outermost one began.
    behind: Option<usize>,
    /// The flags that hold for the whole pattern.
    global: Flags,
}

impl Parser {
    fn refusal(&self, message: impl Into<String>) -> Refusal {
        Refusal { offset: self.at, message: message.into() }
    }

    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn next(&mut self) -> Option<char> {
        let next = self.peek();
        self.at += usize::from(next.is_some());
        next
    }

    fn take(&mut self, wanted: char) -> bool {
        let there = self.peek() == Some(wanted);
        self.at += usize::from(there);
        there
    }

    /// At most `most` characters that are `wanted`.
    fn take_while(&mut self, most: usize, wanted: impl Fn(char) -> bool) -> String {
        let taken: String = self.chars[self.at..].iter().copied().take(most).take_while(|c| wanted(*c)).collect();
        self.at += taken.chars().count();
        taken
    }

    fn choice(&mut self, flags: Flags, depth: usize) -> Read<Node> {
        if depth > DEEPEST {
            return Err(self.refusal("groups nest too deep"));
        }
        let (mut flags, mut branches) = (flags, Vec::new());
        loop {
            branches.push(self.sequence(&mut flags, depth, depth == 0 && branches.is_empty())?);
            if !self.take('|') {
                break;
            }
        }
        Ok(if branches.len() == 1 { branches.remove(0) } else { Node::Choice(branches) })
    }

    /// What stands before the next `|` or `)`. `first`: global flags may stand here.
    fn sequence(&mut self, flags: &mut Flags, depth: usize, first: bool) -> Read<Node> {
        let mut nodes: Vec<Node> = Vec::new();
        while let Some(c) = self.peek().filter(|c| !matches!(c, '|' | ')')) {
            let start = self.at;
            self.at += 1;
            match c {
                ' ' | '\t' | '\n' | '\r' | '\u{b}' | '\u{c}' if flags.verbose => {}
                '#' if flags.verbose => while self.next().is_some_and(|c| c != '\n') {},
                '\\' => nodes.push(match self.escape(*flags)? {
                    Escape::Char(c) => Node::Literal(c, flags.case()),
                    Escape::Category(item) => Node::Set { negated: false, items: vec![item], case: Case::Exact },
                    Escape::Node(node) => node,
                }),
                '[' => nodes.push(self.set(*flags)?),
                '.' => nodes.push(Node::Any { line_end: flags.dot_all }),
                '^' => nodes.push(Node::At(if flags.multi_line { At::LineStart } else { At::TextStart })),
                '$' => nodes.push(Node::At(if flags.multi_line { At::LineEnd } else { At::LastLineEnd })),
                '(' => nodes.extend(self.group(flags, depth, first && nodes.is_empty())?),
                '*' | '+' | '?' | '{' => match self.bounds(c)? {
                    Some((min, max)) => {
                        let node = self.repeat(nodes.pop(), min, max, start)?;
                        nodes.push(node);
                    }
                    None => nodes.push(Node::Literal('{'.into(), flags.case())),
                },
                c => nodes.push(Node::Literal(c.into(), flags.case())),
            }
        }
        Ok(if nodes.len() == 1 { nodes.remove(0) } else { Node::Sequence(nodes) })
    }

    /// How often the quantifier repeats; nothing where a brace is only a brace.
    fn bounds(&mut self, quantifier: char) -> Read<Option<(u32, Option<u32>)>> {
        match quantifier {
            '?' => return Ok(Some((0, Some(1)))),
            '*' => return Ok(Some((0, None))),
            '+' => return Ok(Some((1, None))),
            _ => {}
        }
        let here = self.at;
        if self.peek() == Some('}') {
            return Ok(None);
        }
        let low = self.take_while(usize::MAX, |c| c.is_ascii_digit());
        let high = if self.take(',') { self.take_while(usize::MAX, |c| c.is_ascii_digit()) } else { low.clone() };
        if !self.take('}') {
            self.at = here;
            return Ok(None);
        }
        let number = |digits: &str| match digits {
            "" => Ok(None),
            digits => match digits.parse::<u32>() {
                Ok(number) if number < u32::MAX => Ok(Some(number)),
                _ => refuse(here, "this is repeated too often"),
            },
        };
        let (min, max) = (number(&low)?.unwrap_or(0), number(&high)?);
        if max.is_some_and(|max| max < min) {
            return refuse(here, "the least repetition is more than the most");
        }
        Ok(Some((min, max)))
    }

    fn repeat(&mut self, node: Option<Node>, min: u32, max: Option<u32>, start: usize) -> Read<Node> {
        let node = match node {
            None | Some(Node::At(_)) => return refuse(start, "there is nothing to repeat"),
            Some(Node::Repeat { .. }) => return refuse(start, "this is repeated already"),
            Some(node) => Box::new(node),
        };
        let style = if self.take('?') {
            Style::Lazy
        } else if self.take('+') {
            Style::Possessive
        } else {
            Style::Greedy
        };
        Ok(Node::Repeat { node, min, max, style })
    }

    fn group(&mut self, flags: &mut Flags, depth: usize, first: bool) -> Read<Option<Node>> {
        let start = self.at - 1;
        if !self.take('?') {
            return self.capture(None, *flags, depth, start).map(Some);
        }
        let kind = self.at;
        match self.next() {
            Some('P') if self.take('<') => {
                let name = self.name('>')?;
                self.capture(Some(name), *flags, depth, start).map(Some)
            }
            Some('P') if self.take('=') => {
                let name = self.name(')')?;
                let Some(group) = self.names.get(&name).copied() else {
                    return refuse(kind, format!("there is no group {name:?} before this"));
                };
                self.check_open(group, kind)?;
                Ok(Some(Node::Back(group, flags.case())))
            }
            Some(':') => self.closed(*flags, depth, start).map(|node| Some(Node::Group(None, Box::new(node)))),
            Some('>') => self.closed(*flags, depth, start).map(|node| Some(Node::Atomic(Box::new(node)))),
            Some('#') => {
                while let Some(c) = self.next() {
                    if c == ')' {
                        return Ok(None);
                    }
                }
                refuse(start, "the comment is never closed")
            }
            Some('=') => self.look(false, false, *flags, depth, start).map(Some),
            Some('!') => self.look(false, true, *flags, depth, start).map(Some),
            Some('<') if self.take('=') => self.look(true, false, *flags, depth, start).map(Some),
            Some('<') if self.take('!') => self.look(true, true, *flags, depth, start).map(Some),
            Some('(') => self.conditional(flags, depth, start).map(Some),
            Some('<') => refuse(kind, "Python names a group with (?P<name>…)"),
            Some(c) if c == '-' || "aiLmsux".contains(c) => self.flags(c, flags, depth, first, start),
            Some(c) => refuse(kind, format!("Python has no group that begins with (?{}", c.escape_debug())),
            None => refuse(start, "the pattern ends inside a group"),
        }
    }

    /// The inside of a group up to its end.
    fn closed(&mut self, flags: Flags, depth: usize, start: usize) -> Read<Node> {
        let node = self.choice(flags, depth + 1)?;
        if self.take(')') { Ok(node) } else { refuse(start, "this ( is never closed") }
    }

    fn capture(&mut self, name: Option<String>, flags: Flags, depth: usize, start: usize) -> Read<Node> {
        let number = self.groups.len();
        self.groups.push(None);
        if let Some(name) = name
            && self.names.insert(name.clone(), number).is_some()
        {
            return refuse(start, format!("the group name {name:?} is given twice"));
        }
        let node = self.closed(flags, depth, start)?;
        self.groups[number] = Some(node.width(&self.groups));
        Ok(Node::Group(Some(number), Box::new(node)))
    }

    fn look(&mut self, behind: bool, negated: bool, flags: Flags, depth: usize, start: usize) -> Read<Node> {
        let outer = self.behind;
        if behind {
            self.behind = outer.or(Some(self.groups.len()));
        }
        let node = self.closed(flags, depth, start)?;
        self.behind = outer;
        let (least, most) = node.width(&self.groups);
        let behind = match u32::try_from(least) {
            _ if !behind => None,
            Ok(width) if least == most => Some(width),
            _ => return refuse(start, "a look-behind must have one fixed width"),
        };
        Ok(Node::Look { behind, negated, node: Box::new(node) })
    }

    fn conditional(&mut self, flags: &mut Flags, depth: usize, start: usize) -> Read<Node> {
        if depth >= DEEPEST {
            return Err(self.refusal("groups nest too deep"));
        }
        let at = self.at;
        let name = self.until(')')?;
        let group = if is_name(&name) {
            match self.names.get(&name).copied() {
                Some(group) => group,
                None => return refuse(at, format!("there is no group {name:?} before this")),
            }
        } else {
            match name.parse::<usize>() {
                Ok(number) if number > 0 && name.bytes().all(|b| b.is_ascii_digit()) => {
                    self.later.push((number, at));
                    number
                }
                _ => return refuse(at, format!("{name:?} is neither a group's number nor its name")),
            }
        };
        self.check_behind(group, at)?;
        let mut inner = *flags;
        let yes = self.sequence(&mut inner, depth + 1, false)?;
        let no = if self.take('|') { self.sequence(&mut inner, depth + 1, false)? } else { Node::Sequence(Vec::new()) };
        if self.peek() == Some('|') {
            return Err(self.refusal("a condition has no more than two branches"));
        }
        if !self.take(')') {
            return refuse(start, "this ( is never closed");
        }
        Ok(Node::Conditional { group, yes: Box::new(yes), no: Box::new(no) })
    }

    fn flags(&mut self, c: char, flags: &mut Flags, depth: usize, first: bool, start: usize) -> Read<Option<Node>> {
        let (mut on, mut off, mut next) = (String::new(), String::new(), Some(c));
        while let Some(c) = next.filter(|c| "aiLmsux".contains(*c)) {
            on.push(c);
            next = self.next();
        }
        if next == Some(')') {
            self.check_flags(&on, "", start)?;
            if !first {
                return refuse(start, "flags for the whole pattern stand at its very beginning");
            }
            on.chars().for_each(|c| self.global.set(c, true));
            *flags = self.global;
            return Ok(None);
        }
        if next == Some('-') {
            next = self.next();
            while let Some(c) = next.filter(|c| "aiLmsux".contains(*c)) {
                off.push(c);
                next = self.next();
            }
            if off.is_empty() {
                return refuse(start, "no flag is taken away here");
            }
        }
        if next != Some(':') {
            return refuse(start, "these are no flags: Python has a, i, m, s, u and x");
        }
        self.check_flags(&on, &off, start)?;
        let mut inner = *flags;
        on.chars().for_each(|c| inner.set(c, true));
        off.chars().for_each(|c| inner.set(c, false));
        self.closed(inner, depth, start).map(|node| Some(Node::Group(None, Box::new(node))))
    }

    fn check_flags(&self, on: &str, off: &str, start: usize) -> Read<()> {
        if on.contains('L') || off.contains('L') {
            return refuse(start, "the flag L is for bytes only");
        }
        if on.contains('a') && on.contains('u') {
            return refuse(start, "the flags a and u exclude each other");
        }
        if off.contains(['a', 'u']) {
            return refuse(start, "the flags a and u cannot be taken away");
        }
        if on.chars().any(|c| off.contains(c)) {
            return refuse(start, "a flag is both set and taken away");
        }
        Ok(())
    }

    /// The text before `end`, which is gone past.
    fn until(&mut self, end: char) -> Read<String> {
        let start = self.at;
        let name = self.take_while(usize::MAX, |c| c != end);
        if name.is_empty() || !self.take(end) {
            return refuse(start, "a group's name is missing or never ends");
        }
        Ok(name)
    }

    fn name(&mut self, end: char) -> Read<String> {
        let start = self.at;
        let name = self.until(end)?;
        if is_name(&name) { Ok(name) } else { refuse(start, format!("{name:?} is no name for a group")) }
    }

    fn check_open(&self, group: usize, at: usize) -> Read<()> {
        if self.groups.get(group).copied().flatten().is_none() {
            return refuse(at, "a group cannot be referred to from inside itself");
        }
        self.check_behind(group, at)
    }

    fn check_behind(&self, group: usize, at: usize) -> Read<()> {
        match self.behind {
            Some(before) if group >= before => refuse(at, "a look-behind cannot refer to a group that it holds itself"),
            Some(_) if self.groups.get(group).copied().flatten().is_none() => {
                refuse(at, "a group cannot be referred to from inside itself")
            }
            _ => Ok(()),
        }
    }
}

/// Whether Python takes `text` for an identifier.
fn is_name(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|c| c == '_' || c.is_alphabetic()) && chars.all(|c| c == '_' || c.is_alphanumeric())
}
