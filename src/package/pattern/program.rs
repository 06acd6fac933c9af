//! A pattern as steps for the machine, for what is not regular: look-around, back-references, conditions.

use std::collections::BTreeSet;

use super::class::{self, Set};
use super::syntax::{At, Case, Node, Style};

/// One step. A target is the index of another step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Takes one character that is in the set.
    One(Set),
    /// Takes characters that are in the set, as many as it may.
    Run {
        set: Set,
        min: u32,
        max: u32,
        style: Style,
    },
    /// Asks for a place.
    At(At),
    /// Goes on at the one, and at the other if that fails.
    Split(usize, usize),
    Jump(usize),
    /// Notes where it is.
    Save(usize),
    /// Begins a loop, whose turns are counted in a slot and whose last beginning is noted in the next.
    Begin(usize),
    /// Goes on with another turn or behind the loop.
    Loop {
        slot: usize,
        min: u32,
        max: u32,
        lazy: bool,
        body: usize,
        after: usize,
    },
    /// Begins what is tried on its own; where it must not succeed, failing goes on at the target.
    Enter {
        mark: usize,
        unless: Option<usize>,
    },
    /// Ends what was tried on its own, in the way that was asked for.
    Leave {
        mark: usize,
        leave: Leave,
    },
    /// Goes back by characters.
    Back(u32),
    /// Takes what a group took.
    Same(usize, Case),
    /// Goes on if the group took something, else at the target.
    If(usize, usize),
    /// It is found.
    Found,
}

/// How a part that was tried on its own ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Leave {
    /// Whatever it took is taken, and nothing else is tried in it.
    Atomic,
    /// As before, but nothing is taken.
    Look,
    /// It must not have succeeded.
    Fail,
}

/// A program.
#[derive(Debug, Clone)]
pub(super) struct Program {
    pub(super) steps: Vec<Step>,
    /// How many slots it needs: two for each group, then those of the loops.
    pub(super) slots: usize,
    pub(super) marks: usize,
    /// What a match can begin with; nothing where it can be anything, or be empty.
    pub(super) first: Option<Set>,
    /// Whether a match can begin at the text's start only.
    pub(super) anchored: bool,
}

/// As many steps as a program may have: `(((a{99}b){99}c){99}d)` is short to write.
const LONGEST: usize = 1 << 18;

/// No end, as the most turns of a loop.
pub(super) const ENDLESS: u32 = u32::MAX;

impl Program {
    /// The program of `node`; nothing where it is too long.
    pub(super) fn new(node: &Node) -> Option<Self> {
        let mut referred = BTreeSet::new();
        find_references(node, &mut referred);
        let mut builder = Builder { steps: Vec::new(), slots: 2 * referred.len(), marks: 0, referred };
        builder.node(node);
        builder.steps.push(Step::Found);
        let mut first = class::all();
        first.negate();
        let may_be_empty = begins(node, &mut first);
        let first = (!may_be_empty).then(|| Set::new(&first));
        let anchored = is_anchored(node);
        let Builder { steps, slots, marks, .. } = builder;
        (steps.len() <= LONGEST).then_some(Self { steps, slots, marks, first, anchored })
    }
}

/// The groups that something refers to: no other is noted.
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

/// Adds what a match of `node` can begin with; whether it may take nothing.
fn begins(node: &Node, first: &mut regex_syntax::hir::ClassUnicode) -> bool {
    match node {
        Node::Literal(..) | Node::Any { .. } | Node::Set { .. } => {
            first.union(&class::of_node(node).unwrap_or_else(class::all));
            false
        }
        Node::At(_) | Node::Look { .. } => true,
        Node::Group(_, node) | Node::Atomic(node) => begins(node, first),
        Node::Sequence(nodes) => nodes.iter().all(|node| begins(node, first)),
        Node::Choice(nodes) => nodes.iter().map(|node| begins(node, first)).fold(false, |any, empty| any | empty),
        Node::Repeat { node, min, .. } => begins(node, first) | (*min == 0),
        Node::Back(..) => {
            first.union(&class::all());
            true
        }
        Node::Conditional { yes, no, .. } => begins(yes, first) | begins(no, first),
    }
}

fn is_anchored(node: &Node) -> bool {
    match node {
        Node::At(at) => *at == At::TextStart,
        Node::Group(_, node) | Node::Atomic(node) => is_anchored(node),
        Node::Sequence(nodes) => nodes.first().is_some_and(is_anchored),
        Node::Choice(nodes) => nodes.iter().all(is_anchored),
        Node::Literal(..)
        | Node::Any { .. }
        | Node::Set { .. }
        | Node::Repeat { .. }
        | Node::Look { .. }
        | Node::Back(..)
        | Node::Conditional { .. } => false,
    }
}

struct Builder {
    steps: Vec<Step>,
    slots: usize,
    marks: usize,
    referred: BTreeSet<usize>,
}

impl Builder {
    fn push(&mut self, step: Step) -> usize {
        // One step too many is kept, so that it can be seen that there were.
        if self.steps.len() <= LONGEST {
            self.steps.push(step);
        }
        self.steps.len() - 1
    }

    /// The place that a group has among those that are noted.
    fn place_of(&self, group: usize) -> usize {
        self.referred.range(..group).count()
    }

    fn here(&self) -> usize {
        self.steps.len()
    }

    fn node(&mut self, node: &Node) {
        match node {
            Node::Literal(..) | Node::Any { .. } | Node::Set { .. } => {
                if let Some(class) = class::of_node(node) {
                    self.push(Step::One(Set::new(&class)));
                }
            }
            Node::At(at) => {
                self.push(Step::At(*at));
            }
            Node::Group(Some(number), node) if self.referred.contains(number) => {
                let slot = 2 * self.place_of(*number);
                self.push(Step::Save(slot));
                self.node(node);
                self.push(Step::Save(slot + 1));
            }
            Node::Group(_, node) => self.node(node),
            Node::Sequence(nodes) => nodes.iter().for_each(|node| self.node(node)),
            Node::Choice(nodes) => self.choice(nodes),
            Node::Repeat { node, min, max, style } => self.repeat(node, *min, max.unwrap_or(ENDLESS), *style),
            Node::Look { behind, negated, node } => {
                let leave = if *negated { Leave::Fail } else { Leave::Look };
                self.apart(leave, |builder| {
                    if let Some(width) = behind {
                        builder.push(Step::Back(*width));
                    }
                    builder.node(node);
                });
            }
            Node::Atomic(node) => self.apart(Leave::Atomic, |builder| builder.node(node)),
            Node::Back(group, case) => {
                self.push(Step::Same(self.place_of(*group), *case));
            }
            Node::Conditional { group, yes, no } => {
                let branch = self.push(Step::If(self.place_of(*group), 0));
                self.node(yes);
                let end = self.push(Step::Jump(0));
                self.aim(branch);
                self.node(no);
                self.aim(end);
            }
        }
    }

    /// Sets the open target of a step to the step that comes next.
    fn aim(&mut self, step: usize) {
        let here = self.here();
        match self.steps.get_mut(step) {
            Some(
                Step::Split(_, target) | Step::Jump(target) | Step::If(_, target) | Step::Loop { after: target, .. },
            ) => {
                *target = here;
            }
            Some(Step::Enter { unless: Some(target), .. }) => *target = here,
            _ => {}
        }
    }

    fn choice(&mut self, nodes: &[Node]) {
        let mut ends = Vec::new();
        let last = nodes.len().saturating_sub(1);
        for (i, node) in nodes.iter().enumerate() {
            if i == last {
                self.node(node);
            } else {
                let split = self.push(Step::Split(0, 0));
                if let Some(Step::Split(first, _)) = self.steps.get_mut(split) {
                    *first = split + 1;
                }
                self.node(node);
                ends.push(self.push(Step::Jump(0)));
                self.aim(split);
            }
        }
        ends.into_iter().for_each(|end| self.aim(end));
    }

    /// A part that is tried on its own.
    fn apart(&mut self, leave: Leave, inside: impl FnOnce(&mut Self)) {
        let mark = self.marks;
        self.marks += 1;
        let enter = self.push(Step::Enter { mark, unless: (leave == Leave::Fail).then_some(0) });
        inside(self);
        self.push(Step::Leave { mark, leave });
        self.aim(enter);
    }

    fn repeat(&mut self, node: &Node, min: u32, max: u32, style: Style) {
        if let Some(class) = class::of_node(node) {
            self.push(Step::Run { set: Set::new(&class), min, max, style });
            return;
        }
        let empty = begins(node, &mut class::all());
        match style {
            // Python never goes back into a single turn of it either.
            Style::Possessive => self.apart(Leave::Atomic, |builder| {
                builder.turns(min, max, false, empty, |builder| {
                    builder.apart(Leave::Atomic, |builder| builder.node(node));
                });
            }),
            Style::Greedy | Style::Lazy => {
                self.turns(min, max, style == Style::Lazy, empty, |builder| builder.node(node));
            }
        }
    }

    fn turns(&mut self, min: u32, max: u32, lazy: bool, empty: bool, inside: impl FnOnce(&mut Self)) {
        let start = self.here();
        match (min, max) {
            // These need no count, and so no memory of it; but where a turn can take nothing, they might never end.
            (0, 1 | ENDLESS) if !empty => {
                let split = self.push(Step::Split(start + 1, start + 1));
                inside(self);
                if max == ENDLESS {
                    self.push(Step::Jump(start));
                }
                let here = self.here();
                if let Some(Step::Split(first, second)) = self.steps.get_mut(split) {
                    *(if lazy { first } else { second }) = here;
                }
                return;
            }
            (1, ENDLESS) if !empty => {
                inside(self);
                let behind = self.here() + 1;
                self.push(if lazy { Step::Split(behind, start) } else { Step::Split(start, behind) });
                return;
            }
            _ => {}
        }
        let slot = self.slots;
        self.slots += 2;
        self.push(Step::Begin(slot));
        let body = self.here() + 1;
        let repeat = self.push(Step::Loop { slot, min, max, lazy, body, after: 0 });
        inside(self);
        self.push(Step::Jump(repeat));
        self.aim(repeat);
    }
}
