//! The order in which intents and loops are seen (formats, "Queue rows").

use std::collections::HashMap;

use super::{Claim, LegacyRow};
use crate::package::LoopId;

/// A loop that wants a place in the order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// The loop.
    pub loop_id: LoopId,
    /// Its add sequence; none where it has no record here.
    pub sequence: Option<u64>,
    /// The legacy row that it takes the place of.
    pub claim: Option<Claim>,
}

/// A place in the order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Slot {
    /// The legacy row with this index.
    Legacy(usize),
    /// The rows of the loop with this index.
    Loop(usize),
}

/// Legacy rows in file order, each that exactly one loop claims as that loop; a row that several claim is hidden.
/// Then the other loops with a record by sequence, then those without one by id.
#[must_use]
pub fn order(legacy: &[LegacyRow], loops: &[Claimant]) -> Vec<Slot> {
    let mut claims: HashMap<&Claim, Vec<usize>> = HashMap::new();
    for (index, claimant) in loops.iter().enumerate() {
        if let Some(claim) = &claimant.claim {
            claims.entry(claim).or_default().push(index);
        }
    }
    let mut placed = vec![false; loops.len()];
    let mut slots = Vec::with_capacity(legacy.len() + loops.len());
    for (index, row) in legacy.iter().enumerate() {
        match claims.get(&row.claim).map(Vec::as_slice) {
            None => slots.push(Slot::Legacy(index)),
            Some([only]) => {
                placed[*only] = true;
                slots.push(Slot::Loop(*only));
            }
            Some(_) => {}
        }
    }
    let mut rest: Vec<usize> = (0..loops.len()).filter(|index| !placed[*index]).collect();
    rest.sort_by_key(|index| (loops[*index].sequence.unwrap_or(u64::MAX), loops[*index].loop_id.clone()));
    slots.extend(rest.into_iter().map(Slot::Loop));
    slots
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::parse_legacy;

    #[test]
    fn replaced_rows_stand_in_place_and_doubly_claimed_ones_are_hidden() {
        let legacy = parse_legacy(b"- [ ] one\n- [ ] two\n- [ ] six\n").unwrap();
        let claimant = |name: &str, sequence, line: Option<&str>| Claimant {
            loop_id: LoopId::new(name).unwrap(),
            sequence,
            claim: line.map(|line| Claim { line: line.into(), occurrence: 1 }),
        };
        let loops = [
            claimant("zz", None, None),
            claimant("mm", Some(2), None),
            claimant("x1", Some(1), Some("- [ ] one")),
            claimant("x2", None, Some("- [ ] one")),
            claimant("s6", None, Some("- [ ] six")),
            claimant("aa", None, Some("- [ ] none")),
        ];
        let seen: Vec<String> = order(&legacy, &loops)
            .into_iter()
            .map(|slot| match slot {
                Slot::Legacy(index) => legacy[index].text.clone(),
                Slot::Loop(index) => loops[index].loop_id.to_string(),
            })
            .collect();
        assert_eq!(seen, ["two", "s6", "x1", "mm", "aa", "x2", "zz"]);
    }
}
