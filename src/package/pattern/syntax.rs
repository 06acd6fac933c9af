//! What a pattern of Python says, as a tree. Never how it is matched.

/// A part of a pattern.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Node {
    /// One character, by its code point: Python also has surrogates, which no text holds.
    Literal(u32, Case),
    /// `.`
    Any {
        /// Whether it takes a line end too.
        line_end: bool,
    },
    /// `[…]`, and a category outside of one.
    Set { negated: bool, items: Vec<Item>, case: Case },
    /// A place between characters.
    At(At),
    /// `(…)` with its number, or `(?:…)`.
    Group(Option<usize>, Box<Self>),
    /// One behind the other.
    Sequence(Vec<Self>),
    /// `a|b`
    Choice(Vec<Self>),
    /// `a{min,max}`; without `max` there is no end.
    Repeat { node: Box<Self>, min: u32, max: Option<u32>, style: Style },
    /// Look-around; behind by so many characters.
    Look { behind: Option<u32>, negated: bool, node: Box<Self> },
    /// `(?>…)`
    Atomic(Box<Self>),
    /// `\1`
    Back(usize, Case),
    /// `(?(1)yes|no)`
    Conditional { group: usize, yes: Box<Self>, no: Box<Self> },
}

/// How letters are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Case {
    /// As they are.
    Exact,
    /// Upper and lower case alike.
    Ignored,
    /// Those of ASCII alike, all others as they are.
    IgnoredInAscii,
}

/// A member of a set.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// The code points from one to another, both included.
    Range(u32, u32),
    /// `\d`, `\s`, `\w` and their opposites.
    Category { class: Class, negated: bool, ascii: bool },
}

/// What a category holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Class {
    Digit,
    Space,
    Word,
}

/// A place between characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    /// `^` and `\A`
    TextStart,
    /// `^` with `m`
    LineStart,
    /// `\Z`
    TextEnd,
    /// `$`: the text's end, or before the line end that ends it.
    LastLineEnd,
    /// `$` with `m`
    LineEnd,
    /// `\b`, or `\B` where `negated`
    Boundary { negated: bool, ascii: bool },
}

/// How eagerly a repetition takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Style {
    Greedy,
    Lazy,
    Possessive,
}

/// How many characters a part can take: at least, at most.
pub(super) type Width = (u64, u64);

impl Node {
    /// How many characters the part can take; `groups` are the widths of the groups by number.
    pub(super) fn width(&self, groups: &[Option<Width>]) -> Width {
        match self {
            Self::Literal(..) | Self::Any { .. } | Self::Set { .. } => (1, 1),
            Self::At(_) | Self::Look { .. } => (0, 0),
            Self::Group(_, node) | Self::Atomic(node) => node.width(groups),
            Self::Sequence(nodes) => nodes
                .iter()
                .map(|node| node.width(groups))
                .fold((0, 0), |(least, most), (l, m)| (u64::saturating_add(least, l), u64::saturating_add(most, m))),
            Self::Choice(nodes) => nodes
                .iter()
                .map(|node| node.width(groups))
                .reduce(|(least, most), (l, m)| (least.min(l), most.max(m)))
                .unwrap_or((0, 0)),
            Self::Repeat { node, min, max, .. } => {
                let (least, most) = node.width(groups);
                let most = if most == 0 { 0 } else { max.map_or(u64::MAX, |max| most.saturating_mul(max.into())) };
                (least.saturating_mul((*min).into()), most)
            }
            Self::Back(group, _) => groups.get(*group).copied().flatten().unwrap_or((0, 0)),
            Self::Conditional { yes, no, .. } => {
                let (yes, no) = (yes.width(groups), no.width(groups));
                (yes.0.min(no.0), yes.1.max(no.1))
            }
        }
    }
}
