//! Patterns that are regular, for an engine that looks at each byte of a text once.
//!
//! Only whether there is a match is asked, never where: so it does not matter how eagerly a repetition takes, and
//! what is looked ahead at in the end may as well be taken. The engine may decline a text: its automaton is built as
//! the text needs it, and one that grows too much is given up.

use regex_automata::hybrid::dfa::{self, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::{Input, MatchKind};
use regex_syntax::hir::{Class, Dot, Hir, Look, Repetition};

use super::class;
use super::syntax::{At, Node, Style};

/// As large as the compiled pattern may be, as large as its automaton may grow, both in bytes, and how often the
/// automaton may be built anew in one text. What is larger, the other engine takes.
const LARGEST: usize = 1 << 20;
const MEMORY: usize = 2 << 20;
const REBUILDS: usize = 4;

/// A regular pattern.
#[derive(Debug, Clone)]
pub(super) struct Regular(DFA);

impl Regular {
    /// The pattern, where it is regular and not too large.
    pub(super) fn new(node: &Node) -> Option<Self> {
        let hir = convert(node, true)?;
        let config = thompson::Config::new().nfa_size_limit(Some(LARGEST)).which_captures(WhichCaptures::None);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(&hir).ok()?;
        let config = dfa::Config::new()
            .match_kind(MatchKind::LeftmostFirst)
            .unicode_word_boundary(true)
            .cache_capacity(MEMORY)
            .skip_cache_capacity_check(true)
            .minimum_cache_clear_count(Some(REBUILDS));
        DFA::builder().configure(config).build_from_nfa(nfa).ok().map(Self)
    }

    /// Whether it is found in `text`; nothing where the engine declines: the automaton grew too much, or there is a
    /// `\b` in the pattern and a character beyond ASCII in the text.
    pub(super) fn is_found_in(&self, text: &str) -> Option<bool> {
        // In an empty text Python finds no `\B`, and this engine does.
        if text.is_empty() {
            return None;
        }
        let mut cache = self.0.create_cache();
        self.0.try_search_fwd(&mut cache, &Input::new(text).earliest(true)).ok().map(|found| found.is_some())
    }
}

/// `last`: nothing of the pattern stands behind the node.
fn convert(node: &Node, last: bool) -> Option<Hir> {
    Some(match node {
        Node::Any { line_end } => Hir::dot(if *line_end { Dot::AnyChar } else { Dot::AnyCharExceptLF }),
        Node::Literal(..) | Node::Set { .. } => Hir::class(Class::Unicode(class::of_node(node)?)),
        Node::At(at) => return place(*at, last),
        Node::Group(_, node) => return convert(node, last),
        Node::Look { behind: None, negated: false, node } if last => return convert(node, true),
        Node::Sequence(nodes) => {
            let end = nodes.len().saturating_sub(1);
            let parts = nodes.iter().enumerate().map(|(i, node)| convert(node, last && i == end));
            Hir::concat(parts.collect::<Option<_>>()?)
        }
        Node::Choice(nodes) => Hir::alternation(nodes.iter().map(|node| convert(node, last)).collect::<Option<_>>()?),
        Node::Repeat { node, min, max, style: Style::Greedy | Style::Lazy } => {
            let sub = Box::new(convert(node, false)?);
            Hir::repetition(Repetition { min: *min, max: *max, greedy: true, sub })
        }
        Node::Repeat { style: Style::Possessive, .. }
        | Node::Look { .. }
        | Node::Atomic(_)
        | Node::Back(..)
        | Node::Conditional { .. } => return None,
    })
}

fn place(at: At, last: bool) -> Option<Hir> {
    let look = match at {
        At::TextStart => Look::Start,
        At::LineStart => Look::StartLF,
        At::TextEnd => Look::End,
        At::LineEnd => Look::EndLF,
        At::LastLineEnd if last => {
            let sub = Box::new(Hir::literal(*b"\n"));
            let line_end = Hir::repetition(Repetition { min: 0, max: Some(1), greedy: true, sub });
            return Some(Hir::concat(vec![line_end, Hir::look(Look::End)]));
        }
        At::LastLineEnd => return None,
        At::Boundary { negated: false, ascii: true } => Look::WordAscii,
        // The engine finds it inside of other letters as well.
        At::Boundary { negated: true, ascii: true } => return None,
        At::Boundary { negated: false, ascii: false } => Look::WordUnicode,
        At::Boundary { negated: true, ascii: false } => Look::WordUnicodeNegate,
    };
    Some(Hir::look(look))
}
