//! A fault of a package: what is wrong, where, and what to write instead. Never prints.

use std::fmt;

use serde::Serialize;

/// One thing that is wrong in a file of a package.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize)]
pub struct Fault {
    /// The file, relative to the repository's root.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1, in characters.
    pub column: usize,
    /// What is wrong, in one line.
    pub message: String,
    /// What to write instead, in one line.
    pub help: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}: {}", self.file, self.line, self.column, self.message)
    }
}

/// More faults of one file than anybody reads; the rest is counted, so that a hostile file costs no memory.
const MOST: usize = 1000;

/// The faults of one file, gathered while it is read. A place is a byte offset until all are known: lines and
/// columns are then counted in one walk over the text.
#[derive(Debug)]
pub(crate) struct Faults {
    file: String,
    found: Vec<(usize, String, String)>,
    left_out: usize,
}

impl Faults {
    pub(crate) const fn new(file: String) -> Self {
        Self { file, found: Vec::new(), left_out: 0 }
    }

    /// Notes a fault at the byte `at` of the file.
    pub(crate) fn push(&mut self, at: usize, message: impl Into<String>, help: impl Into<String>) {
        if self.found.len() < MOST {
            self.found.push((at, message.into(), help.into()));
        } else {
            self.left_out += 1;
        }
    }

    /// How many were noted so far.
    pub(crate) const fn len(&self) -> usize {
        self.found.len() + self.left_out
    }

    /// The faults, topmost first; those of one place in the order in which they were found. `text` is the file.
    pub(crate) fn into_sorted(mut self, text: &[u8]) -> Vec<Fault> {
        self.found.sort_by_key(|(at, ..)| *at);
        if let Some((at, ..)) = self.found.last().filter(|_| self.left_out > 0) {
            let message = format!("{} more faults are left out", self.left_out);
            self.found.push((*at, message, "mend those above first".to_owned()));
        }
        let (mut line, mut column, mut seen) = (1, 1, 0);
        self.found
            .into_iter()
            .map(|(at, message, help)| {
                let at = at.clamp(seen, text.len());
                for byte in &text[seen..at] {
                    match byte {
                        b'\n' => (line, column) = (line + 1, 1),
                        // The later bytes of a character in UTF-8.
                        0x80..0xc0 => {}
                        _ => column += 1,
                    }
                }
                seen = at;
                Fault { file: self.file.clone(), line, column, message, help }
            })
            .collect()
    }
}

/// A word of a stranger, fit for a message: in quotes, control characters escaped, not too long.
pub(crate) fn quoted(word: &str) -> String {
    const LONGEST: usize = 60;
    match word.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &word[..end]),
        None => format!("{word:?}"),
    }
}

/// `a, b or c`, each in quotes.
pub(crate) fn one_of(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [word] => quoted(word),
        [first @ .., last] => {
            let first: Vec<String> = first.iter().map(|word| quoted(word)).collect();
            format!("{} or {}", first.join(", "), quoted(last))
        }
    }
}

/// What to do about a key that is none of `known`: the nearest one where it looks like a slip.
pub(crate) fn instead_of(key: &str, known: &[&str]) -> String {
    known
        .iter()
        .map(|word| (distance(key, word), word))
        .min()
        .filter(|(distance, word)| *distance <= 2 && distance * 2 < word.len())
        .map_or_else(
            || format!("take it out; the keys are {}", known.join(", ")),
            |(_, word)| format!("write {word:?}"),
        )
}

/// How many letters to add, drop or change to make `a` of `b`; exact only for short words.
fn distance(a: &str, b: &str) -> usize {
    if a.len().abs_diff(b.len()) > 2 {
        return usize::MAX;
    }
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = i;
        row[0] = i + 1;
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_sorted_and_placed_in_characters() {
        let mut faults = Faults::new("docs/specs/inv/meta.md".into());
        faults.push(13, "later", "");
        faults.push(7, "first", "write it");
        faults.push(7, "second", "");
        faults.push(99, "beyond", "");
        let texts: Vec<String> =
            faults.into_sorted("a\r\n한 x\nb".as_bytes()).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "docs/specs/inv/meta.md:2:3: first",
                "docs/specs/inv/meta.md:2:3: second",
                "docs/specs/inv/meta.md:3:2: later",
                "docs/specs/inv/meta.md:3:2: beyond"
            ]
        );
    }

    #[test]
    fn what_nobody_reads_is_counted() {
        let mut faults = Faults::new("f".into());
        (0..5000).for_each(|i| faults.push(i, "x", ""));
        let faults = faults.into_sorted(&[b'a'; 5000]);
        assert_eq!((faults.len(), faults[1000].message.as_str()), (1001, "4000 more faults are left out"));
    }

    #[test]
    fn a_slip_gets_the_word_that_was_meant() {
        let known = ["verification_commands", "pure_design", "id"];
        assert_eq!(instead_of("verification_comands", &known), "write \"verification_commands\"");
        assert_eq!(instead_of("od", &known), "take it out; the keys are verification_commands, pure_design, id");
        assert_eq!(one_of(&["a", "b", "c"]), "\"a\", \"b\" or \"c\"");
        assert_eq!(quoted(&"\u{1b}".repeat(70)), format!("\"{}\"…", "\\u{1b}".repeat(60)));
    }
}
