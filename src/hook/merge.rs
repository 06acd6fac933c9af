//! A queue file in a merge, judged against all parents: every row is one that some parent has, and what one of them
//! has settled stays settled. Never reads anything.

use super::facts::QueueVersion;
use super::violation::{Rule, Violation};
use crate::package::LoopId;
use crate::queue::{Line, Mark, Row, parse_line};

const REMEDY: &str = "take each row from one side, a settled one before a pending one: a merge driver, or an editor, \
                      and `git add <file>`";

/// What is wrong with the merged queue file `new`, where `known` are the parents' versions of it.
pub(super) fn judge_merged(loop_id: &LoopId, known: &[&QueueVersion], new: Option<&QueueVersion>) -> Option<Violation> {
    let fault = |what: String| Violation::new(Rule::H3, loop_id.queue_file(), what, REMEDY);
    let settled: Vec<(&[u8], Row)> = known.iter().flat_map(|version| settled_rows(&version.data)).collect();
    let Some(new) = new else {
        // A side that does not have the file yet may prevail over one on which nothing was settled.
        let (_, row) = settled.first()?;
        return Some(fault("the merge drops rows that one side has settled".to_owned()).row(&row.identity));
    };
    if known.iter().all(|version| version.kind != new.kind) {
        return Some(fault("the queue file became another kind of file".to_owned()));
    }
    let lines: Vec<&[u8]> = new.data.split(|byte| *byte == b'\n').collect();
    let sides: Vec<Vec<&[u8]>> = known
        .iter()
        .map(|version| version.data.split(|byte| *byte == b'\n').collect::<Vec<_>>())
        .filter(|side| side.len() == lines.len())
        .collect();
    if sides.is_empty() {
        return Some(fault("the merged file has more or fewer lines than on any side".to_owned()));
    }
    for (index, line) in lines.iter().enumerate() {
        if sides.iter().all(|side| side[index] != *line) {
            let what = "the row is none that any side of the merge has".to_owned();
            let row = row_of(line).map_or_else(|| format!("line {}", index + 1), |row| row.identity.to_string());
            return Some(fault(what).row(row));
        }
    }
    for (_, row) in &settled {
        let same = |(_, other): &&(&[u8], Row)| other.identity == row.identity;
        // Two sides that settled the same row in different ways cannot both prevail.
        if !settled.iter().filter(same).any(|(line, _)| lines.contains(line)) {
            let what = format!("the row of {} is settled on one side and not after the merge", row.identity);
            return Some(fault(what).row(&row.identity));
        }
    }
    None
}

/// The row of a loop on `line`.
pub(super) fn row_of(line: &[u8]) -> Option<Row> {
    match std::str::from_utf8(line).ok().and_then(parse_line) {
        Some(Line::Loop(row)) => Some(row),
        _ => None,
    }
}

fn settled_rows(data: &[u8]) -> Vec<(&[u8], Row)> {
    let lines = data.split(|byte| *byte == b'\n');
    lines.filter_map(|line| Some((line, row_of(line)?))).filter(|(_, row)| row.mark != Mark::Pending).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::git::EntryKind;
    use crate::package::Identity;
    use crate::queue::{Failure, QueueFile, with_mark};

    /// The queue file of five tasks with these marks: none, accepted, failed.
    fn version(marks: &[u8; 5]) -> QueueVersion {
        let identity = |n: usize| Identity::parse(&format!("inv.t{n}")).unwrap();
        let rows = (0..5).map(|n| Row::pending(identity(n), format!("Task {n}"))).collect();
        let failure = Failure { reason: "failed: no".to_owned(), receipt: None };
        let start = QueueFile { claim: None, rows }.to_bytes();
        let data = marks.iter().enumerate().fold(start, |data, (n, mark)| match mark {
            0 => data,
            1 => with_mark(&data, &identity(n), None).unwrap(),
            _ => with_mark(&data, &identity(n), Some(&failure)).unwrap(),
        });
        QueueVersion { kind: EntryKind::File, data }
    }

    proptest! {
        #[test]
        fn a_merge_takes_each_row_from_a_side_and_a_settled_one_first(
            one in prop::array::uniform5(0u8..3), two in prop::array::uniform5(0u8..3), new in prop::array::uniform5(0u8..3),
        ) {
            let loop_id = LoopId::new("inv").unwrap();
            let (left, right, merged) = (version(&one), version(&two), version(&new));
            let lawful = (0..5).all(|n| {
                let settled: Vec<u8> = [one[n], two[n]].into_iter().filter(|mark| *mark != 0).collect();
                if settled.is_empty() { new[n] == 0 } else { settled.contains(&new[n]) }
            });
            let found = judge_merged(&loop_id, &[&left, &right], Some(&merged));
            prop_assert_eq!(found.is_none(), lawful, "{:?}", found);
            let gone = judge_merged(&loop_id, &[&left, &right], None);
            prop_assert_eq!(gone.is_none(), one == [0; 5] && two == [0; 5]);
        }
    }
}
