//! Runs a program over a text, turning back where it fails, and never for ever: its steps are counted.
//!
//! The count and nothing else decides when it gives up, so that a verdict is the same on every machine.

use super::class::Set;
use super::program::{ENDLESS, Leave, Program, Step};
use super::syntax::{At, Case, Style};

/// How many steps a search may take, and how many more for each byte of the text.
const STEPS: u64 = 30_000_000;
const STEPS_A_BYTE: u64 = 8;
/// How many characters are passed over at the price of a step.
const CHEAP: u64 = 4;
/// How many bytes are compared at that price.
const SAME: u64 = 64;
/// How many places to turn back to are remembered, in 16 bytes each.
const MOST: usize = 8 << 20;

/// A slot that holds nothing.
const NONE: u32 = u32::MAX;

/// The search was given up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct RanAway;

/// What to do when a step fails: the last one first.
#[derive(Debug, Clone, Copy)]
enum Frame {
    /// Go on elsewhere.
    Branch { step: u32, at: u32 },
    /// Put a slot back.
    Slot { slot: u32, value: u32 },
    /// Give back a character of a run, as long as there is one.
    Give { step: u32, least: u32, at: u32 },
    /// Take another character of a run, as long as it may.
    Take { step: u32, at: u32, left: u32 },
}

/// Whether `program` finds anything in `text`.
pub(super) fn search(program: &Program, word: &[Set; 2], text: &str) -> Result<bool, RanAway> {
    if text.len() >= NONE as usize {
        return Err(RanAway);
    }
    let mut machine = Machine {
        program,
        word,
        text,
        slots: vec![NONE; program.slots],
        marks: vec![(0, 0); program.marks],
        frames: Vec::new(),
        left: STEPS + STEPS_A_BYTE * text.len() as u64,
    };
    let last = if program.anchored { 0 } else { text.len() };
    let mut start = 0;
    loop {
        if let Some(first) = &program.first {
            let passed = machine.pass(first, start, last);
            machine.pay(passed as u64 / CHEAP)?;
            start += passed;
        }
        if start > last || program.first.is_some() && start == text.len() {
            return Ok(false);
        }
        if machine.run(start)? {
            return Ok(true);
        }
        start += text[start..].chars().next().map_or(1, char::len_utf8);
        if start > last {
            return Ok(false);
        }
    }
}

struct Machine<'a> {
    program: &'a Program,
    /// What is part of a word: in Unicode, in ASCII.
    word: &'a [Set; 2],
    text: &'a str,
    slots: Vec<u32>,
    /// Where each part that is tried on its own began: how many frames there were, and the place.
    marks: Vec<(usize, usize)>,
    frames: Vec<Frame>,
    left: u64,
}

impl Machine<'_> {
    fn pay(&mut self, steps: u64) -> Result<(), RanAway> {
        self.left = self.left.checked_sub(steps).ok_or(RanAway)?;
        Ok(())
    }

    /// How many bytes from `start` on, at most to `last`, begin no match.
    fn pass(&self, first: &Set, start: usize, last: usize) -> usize {
        let mut at = start;
        while at < last {
            let byte = self.text.as_bytes()[at];
            let (holds, length) = if byte < 128 {
                (first.holds_byte(byte), 1)
            } else {
                self.next(at).map_or((false, 1), |(c, length)| (first.holds(c), length))
            };
            if holds {
                break;
            }
            at += length;
        }
        at - start
    }

    /// The character at `at` and its length.
    fn next(&self, at: usize) -> Option<(char, usize)> {
        let c = self.text[at..].chars().next()?;
        Some((c, c.len_utf8()))
    }

    fn before(&self, at: usize) -> Option<(char, usize)> {
        let c = self.text[..at].chars().next_back()?;
        Some((c, c.len_utf8()))
    }

    /// How long the character at `at` is, where it is in `set`.
    fn takes(&self, set: &Set, at: usize) -> Option<usize> {
        match self.text.as_bytes().get(at) {
            Some(byte @ 0..128) => set.holds_byte(*byte).then_some(1),
            Some(_) => self.next(at).filter(|(c, _)| set.holds(*c)).map(|(_, length)| length),
            None => None,
        }
    }

    fn push(&mut self, frame: Frame) -> Result<(), RanAway> {
        if self.frames.len() >= MOST {
            return Err(RanAway);
        }
        self.frames.push(frame);
        Ok(())
    }

    /// Changes a slot, so that turning back puts it back.
    fn set(&mut self, slot: usize, value: u32) -> Result<(), RanAway> {
        let old = std::mem::replace(&mut self.slots[slot], value);
        self.push(Frame::Slot { slot: small(slot), value: old })
    }

    /// Whether there is a match that begins at `start`.
    fn run(&mut self, start: usize) -> Result<bool, RanAway> {
        self.frames.clear();
        self.slots.fill(NONE);
        let (mut step, mut at) = (0, start);
        loop {
            self.pay(1)?;
            match self.step(step, at)? {
                Next::At(next, place) => (step, at) = (next, place),
                Next::Fail => match self.turn_back()? {
                    Some(next) => (step, at) = next,
                    None => return Ok(false),
                },
                Next::Found => return Ok(true),
            }
        }
    }

    fn step(&mut self, step: usize, at: usize) -> Result<Next, RanAway> {
        let program = self.program;
        Ok(match &program.steps[step] {
            Step::One(set) => self.takes(set, at).map_or(Next::Fail, |length| Next::At(step + 1, at + length)),
            Step::Run { set, min, max, style } => return self.take_run(step, at, set, *min, *max, *style),
            Step::At(place) => Next::go_if(self.is_at(*place, at), step + 1, at),
            Step::Split(first, second) => {
                self.push(Frame::Branch { step: small(*second), at: small(at) })?;
                Next::At(*first, at)
            }
            Step::Jump(target) => Next::At(*target, at),
            Step::Save(slot) => {
                self.set(*slot, small(at))?;
                Next::At(step + 1, at)
            }
            Step::Begin(slot) => {
                self.set(*slot, 0)?;
                self.set(slot + 1, NONE)?;
                Next::At(step + 1, at)
            }
            Step::Loop { slot, min, max, lazy, body, after } => {
                let count = self.slots[*slot];
                if count < *min {
                    self.set(*slot, count + 1)?;
                    return Ok(Next::At(*body, at));
                }
                let more = (count < *max || *max == ENDLESS) && self.slots[slot + 1] != small(at);
                match (more, lazy) {
                    (false, _) => Next::At(*after, at),
                    (true, false) => {
                        self.push(Frame::Branch { step: small(*after), at: small(at) })?;
                        self.turn(*slot, count, at)?;
                        Next::At(*body, at)
                    }
                    (true, true) => {
                        self.push(Frame::Take { step: small(step), at: small(at), left: count })?;
                        Next::At(*after, at)
                    }
                }
            }
            Step::Enter { mark, unless } => {
                self.marks[*mark] = (self.frames.len(), at);
                if let Some(target) = unless {
                    self.push(Frame::Branch { step: small(*target), at: small(at) })?;
                }
                Next::At(step + 1, at)
            }
            Step::Leave { mark, leave } => return self.leave(*mark, *leave, step, at),
            Step::Back(width) => {
                let mut place = at;
                for _ in 0..*width {
                    match self.before(place) {
                        Some((_, length)) => place -= length,
                        None => return Ok(Next::Fail),
                    }
                }
                Next::At(step + 1, place)
            }
            Step::Same(group, case) => return self.take_same(step, at, *group, *case),
            Step::If(group, target) => {
                let taken = self.group(*group).is_some();
                Next::At(if taken { step + 1 } else { *target }, at)
            }
            Step::Found => Next::Found,
        })
    }

    /// Notes that another turn of a loop begins.
    fn turn(&mut self, slot: usize, count: u32, at: usize) -> Result<(), RanAway> {
        self.set(slot, count.saturating_add(1).min(NONE - 1))?;
        self.set(slot + 1, small(at))
    }

    fn group(&self, group: usize) -> Option<(usize, usize)> {
        let (start, end) = (self.slots[2 * group], self.slots[2 * group + 1]);
        (start != NONE && end != NONE).then_some((start as usize, end as usize))
    }

    fn take_run(
        &mut self,
        step: usize,
        at: usize,
        set: &Set,
        min: u32,
        max: u32,
        style: Style,
    ) -> Result<Next, RanAway> {
        let most = if style == Style::Lazy { min } else { max };
        let (mut end, mut taken, mut least) = (at, 0, at);
        while taken < most || most == ENDLESS {
            let Some(length) = self.takes(set, end) else { break };
            end += length;
            taken = u32::saturating_add(taken, 1);
            if taken == min {
                least = end;
            }
        }
        self.pay(u64::from(taken) / CHEAP)?;
        if taken < min {
            return Ok(Next::Fail);
        }
        match style {
            Style::Greedy if end > least => {
                self.push(Frame::Give { step: small(step), least: small(least), at: small(end) })?;
            }
            Style::Lazy if max > min => {
                let left = if max == ENDLESS { ENDLESS } else { max - min };
                self.push(Frame::Take { step: small(step), at: small(end), left })?;
            }
            Style::Greedy | Style::Lazy | Style::Possessive => {}
        }
        Ok(Next::At(step + 1, end))
    }

    fn take_same(&mut self, step: usize, at: usize, group: usize, case: Case) -> Result<Next, RanAway> {
        let Some((start, end)) = self.group(group) else { return Ok(Next::Fail) };
        let text = self.text;
        let wanted = &text[start..end];
        if case == Case::Exact {
            self.pay(wanted.len().min(text.len() - at) as u64 / SAME)?;
            return Ok(Next::go_if(text[at..].starts_with(wanted), step + 1, at + wanted.len()));
        }
        self.pay(wanted.len().min(text.len() - at) as u64)?;
        let lower = |c: char| match case {
            Case::IgnoredInAscii => c.to_ascii_lowercase(),
            Case::Exact | Case::Ignored => c.to_lowercase().next().unwrap_or(c),
        };
        let mut rest = text[at..].chars();
        let same = wanted.chars().all(|c| rest.next().is_some_and(|other| lower(c) == lower(other)));
        Ok(Next::go_if(same, step + 1, text.len() - rest.as_str().len()))
    }

    fn leave(&mut self, mark: usize, leave: Leave, step: usize, at: usize) -> Result<Next, RanAway> {
        let (height, began) = self.marks[mark];
        self.pay((self.frames.len() - height.min(self.frames.len())) as u64 / CHEAP)?;
        match leave {
            Leave::Fail => {
                while self.frames.len() > height {
                    if let Some(Frame::Slot { slot, value }) = self.frames.pop() {
                        self.slots[slot as usize] = value;
                    }
                }
                Ok(Next::Fail)
            }
            Leave::Atomic | Leave::Look => {
                // What was noted stays noted, and is put back when something before it is tried again.
                let mut kept = height;
                for i in height..self.frames.len() {
                    if matches!(self.frames[i], Frame::Slot { .. }) {
                        self.frames[kept] = self.frames[i];
                        kept += 1;
                    }
                }
                self.frames.truncate(kept);
                Ok(Next::At(step + 1, if leave == Leave::Look { began } else { at }))
            }
        }
    }

    /// The last place that something else can be tried at.
    fn turn_back(&mut self) -> Result<Option<(usize, usize)>, RanAway> {
        let program = self.program;
        while let Some(frame) = self.frames.pop() {
            match frame {
                Frame::Slot { slot, value } => self.slots[slot as usize] = value,
                Frame::Branch { step, at } => return Ok(Some((step as usize, at as usize))),
                Frame::Give { step, least, at } => {
                    let after = step as usize + 1;
                    // What must come next is looked for here, rather than tried at each place.
                    let wanted = match program.steps.get(after) {
                        Some(Step::One(set)) => set.only_byte(),
                        _ => None,
                    };
                    let (mut place, least) = (at as usize, least as usize);
                    while place > least {
                        place -= self.before(place).map_or(1, |(_, length)| length);
                        if wanted.is_none_or(|byte| self.text.as_bytes().get(place) == Some(&byte)) {
                            break;
                        }
                    }
                    self.pay((at as usize - place) as u64 / CHEAP)?;
                    if place > least {
                        self.frames.push(Frame::Give { step, least: small(least), at: small(place) });
                    }
                    return Ok(Some((after, place)));
                }
                Frame::Take { step, at, left } => match &program.steps[step as usize] {
                    Step::Run { set, .. } => {
                        let Some(length) = self.takes(set, at as usize) else { continue };
                        let place = at as usize + length;
                        let left = if left == ENDLESS { ENDLESS } else { left - 1 };
                        if left > 0 {
                            self.frames.push(Frame::Take { step, at: small(place), left });
                        }
                        return Ok(Some((step as usize + 1, place)));
                    }
                    Step::Loop { slot, body, .. } => {
                        self.turn(*slot, left, at as usize)?;
                        return Ok(Some((*body, at as usize)));
                    }
                    _ => {}
                },
            }
        }
        Ok(None)
    }

    fn is_at(&self, place: At, at: usize) -> bool {
        let bytes = self.text.as_bytes();
        match place {
            At::TextStart => at == 0,
            At::LineStart => at == 0 || bytes[at - 1] == b'\n',
            At::TextEnd => at == bytes.len(),
            At::LastLineEnd => at == bytes.len() || at + 1 == bytes.len() && bytes[at] == b'\n',
            At::LineEnd => at == bytes.len() || bytes[at] == b'\n',
            At::Boundary { negated, ascii } => {
                let word = &self.word[usize::from(ascii)];
                let before = self.before(at).is_some_and(|(c, _)| word.holds(c));
                let behind = self.next(at).is_some_and(|(c, _)| word.holds(c));
                // Python finds no `\B` in an empty text.
                (before != behind) != negated && !bytes.is_empty()
            }
        }
    }
}

/// Where a search goes on.
enum Next {
    At(usize, usize),
    Fail,
    Found,
}

impl Next {
    const fn go_if(good: bool, step: usize, at: usize) -> Self {
        if good { Self::At(step, at) } else { Self::Fail }
    }
}

/// A place in a text or a program; all are known to be small enough.
const fn small(number: usize) -> u32 {
    if number < NONE as usize { number as u32 } else { NONE }
}
