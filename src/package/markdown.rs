//! The little of Markdown that a package is made of: sections, fenced blocks, frontmatter, list items.
//!
//! Never more than that: no inline markup, no nesting. Lines are the text's own, so that places stay right whatever
//! the line endings are; CRLF is read as LF.

use std::collections::HashSet;
use std::ops::Range;

use super::diagnostics::Faults;

/// A text in lines, with what stands in them.
#[derive(Debug)]
pub(crate) struct Document<'a> {
    pub(crate) lines: Vec<Line<'a>>,
    pub(crate) sections: Vec<Section<'a>>,
    pub(crate) blocks: Vec<Block>,
}

/// A line without its end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Line<'a> {
    /// The byte it begins at.
    pub(crate) at: usize,
    pub(crate) text: &'a str,
    /// Whether it belongs to a fenced block, fences included.
    pub(crate) fenced: bool,
}

/// A heading `## <name>` and what follows it. Lines are counted from 0.
#[derive(Debug, Clone)]
pub(crate) struct Section<'a> {
    pub(crate) name: &'a str,
    pub(crate) heading: usize,
    pub(crate) body: Range<usize>,
}

/// A fenced block. Lines are counted from 0.
#[derive(Debug, Clone)]
pub(crate) struct Block {
    pub(crate) opening: usize,
    pub(crate) body: Range<usize>,
    pub(crate) json: bool,
    pub(crate) closed: bool,
}

/// The text in `bytes`; a fault where they are no UTF-8.
pub(crate) fn utf8<'a>(bytes: &'a [u8], faults: &mut Faults) -> Option<&'a str> {
    std::str::from_utf8(bytes)
        .map_err(|error| faults.push(error.valid_up_to(), "not UTF-8 from here on", "save the file as UTF-8"))
        .ok()
}

impl<'a> Document<'a> {
    pub(crate) fn new(text: &'a str) -> Self {
        let (mut lines, mut sections, mut blocks) = (Vec::new(), Vec::<Section<'a>>::new(), Vec::<Block>::new());
        let (mut at, mut open) = (0, false);
        for (number, whole) in text.split('\n').enumerate() {
            let line = whole.strip_suffix('\r').unwrap_or(whole);
            let fence = line.starts_with("```");
            match blocks.last_mut().filter(|_| open) {
                Some(block) if fence => (block.closed, open) = (true, false),
                Some(block) => block.body.end = number + 1,
                None if fence => {
                    let info = &line[3..];
                    let json = info.starts_with("json") && info.split_whitespace().next() == Some("json");
                    let body = number + 1..number + 1;
                    blocks.push(Block { opening: number, body, json, closed: false });
                    open = true;
                }
                None => {
                    if let Some(name) = line.strip_prefix("## ") {
                        let body = number + 1..number + 1;
                        sections.push(Section { name: name.trim(), heading: number, body });
                    }
                }
            }
            if let Some(section) = sections.last_mut() {
                section.body.end = number + 1;
            }
            lines.push(Line { at, text: line, fenced: fence || open });
            at += whole.len() + 1;
        }
        Self { lines, sections, blocks }
    }

    /// The first section `name`.
    pub(crate) fn section(&self, name: &str) -> Option<&Section<'a>> {
        self.sections.iter().find(|section| section.name == name)
    }

    /// The byte that a line begins at; the text's end where there is no such line.
    pub(crate) fn at(&self, line: usize) -> usize {
        self.lines.get(line).or(self.lines.last()).map_or(0, |line| line.at)
    }

    /// The lines of `range` outside `without`, joined by LF and trimmed.
    pub(crate) fn text(&self, range: Range<usize>, without: Option<&Range<usize>>) -> String {
        let lines: Vec<&str> = (range.start..range.end.min(self.lines.len()))
            .filter(|number| without.is_none_or(|without| !without.contains(number)))
            .map(|number| self.lines[number].text)
            .collect();
        lines.join("\n").trim().to_owned()
    }

    /// Notes what is wrong with the sections: a required one that is missing or empty, any that is there twice.
    pub(crate) fn check_sections(&self, required: &[&str], faults: &mut Faults) {
        let mut seen = HashSet::new();
        for section in &self.sections {
            let at = self.at(section.heading);
            if !seen.insert(section.name) {
                let message = format!("the section {:?} is there twice", format!("## {}", section.name));
                faults.push(at, message, "put both texts under one heading");
            } else if required.contains(&section.name) && self.is_blank(&section.body) {
                let message = format!("the section \"## {}\" is empty", section.name);
                faults.push(at, message, "write what belongs there, or \"None.\" where nothing does");
            }
        }
        let unclosed = self.blocks.iter().find(|block| !block.closed).map(|block| block.opening + 1);
        for name in required.iter().filter(|name| !seen.contains(*name)) {
            let help = match unclosed {
                Some(line) => format!("close the fenced block of line {line}: headings inside it are text"),
                None => format!("add a line \"## {name}\" and its text"),
            };
            faults.push(0, format!("the section \"## {name}\" is missing"), help);
        }
    }

    fn is_blank(&self, range: &Range<usize>) -> bool {
        self.lines.get(range.clone()).is_none_or(|lines| lines.iter().all(|line| line.text.trim().is_empty()))
    }
}

/// A value of the frontmatter and the byte it begins at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Entry<'a> {
    /// Where the line begins.
    pub(crate) line_at: usize,
    /// Where the value begins.
    pub(crate) at: usize,
    pub(crate) key: &'a str,
    pub(crate) value: Value<'a>,
}

/// What a line of the frontmatter says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    Text(&'a str),
    /// The items of `[…]`, each with its place.
    List(Vec<(usize, &'a str)>),
}

/// The entries between the first line `---` and the next; faults where lines are no entries. Nothing where there is
/// no frontmatter at all, which is a fault too.
pub(crate) fn frontmatter<'a>(document: &Document<'a>, faults: &mut Faults) -> Option<Vec<Entry<'a>>> {
    let lines = &document.lines;
    if lines.first().is_none_or(|line| line.text != "---") {
        let help = "make --- the whole first line, then one \"key: value\" a line, then --- again";
        faults.push(0, "there is no frontmatter", help);
        return None;
    }
    let Some(end) = lines.iter().skip(1).position(|line| line.text == "---") else {
        faults.push(0, "the frontmatter is never closed", "write a line of just --- below its last key");
        return None;
    };
    let (mut entries, mut seen) = (Vec::new(), HashSet::new());
    for line in &lines[1..=end] {
        let pair = line.text.split_once(':');
        let pair = pair.filter(|(key, _)| !key.is_empty() && key.bytes().all(|b| b == b'_' || b.is_ascii_lowercase()));
        let Some((key, rest)) = pair else {
            let help = "write \"key: value\", the key in a-z and _";
            faults.push(line.at, "this line of the frontmatter is no key with a value", help);
            continue;
        };
        if !seen.insert(key) {
            faults.push(line.at, format!("the key {key:?} is given twice"), "keep one of the two lines");
            continue;
        }
        let value = rest.trim();
        let at = line.at + key.len() + 1 + (rest.len() - rest.trim_start().len());
        let value = match value.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            Some(inner) => Value::List(items(inner, at + 1)),
            None => Value::Text(unquoted(value)),
        };
        entries.push(Entry { line_at: line.at, at, key, value });
    }
    Some(entries)
}

fn items(inner: &str, mut at: usize) -> Vec<(usize, &str)> {
    if inner.trim().is_empty() {
        return Vec::new();
    }
    let item = |piece| {
        let place = at + (str::len(piece) - piece.trim_start().len());
        at += piece.len() + 1;
        (place, unquoted(piece.trim()))
    };
    inner.split(',').map(item).collect()
}

fn unquoted(text: &str) -> &str {
    ['"', '\'']
        .into_iter()
        .find_map(|quote| text.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote)))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_end_at_the_next_heading_outside_fences() {
        let text = "# T\r\n## One\r\na\r\n```\r\n## No\r\n```\r\n### Deeper\r\n## Two  \r\n##No\n## Three";
        let document = Document::new(text);
        let found: Vec<_> = document.sections.iter().map(|s| (s.name, s.heading, s.body.clone())).collect();
        assert_eq!(found, [("One", 1, 2..7), ("Two", 7, 8..9), ("Three", 9, 10..10)]);
        assert_eq!(document.text(2..7, Some(&(3..6))), "a\n### Deeper");
        assert_eq!(&text[document.at(7)..][..6], "## Two");
        assert_eq!(document.text(document.section("Three").unwrap().body.clone(), None), "");
    }

    #[test]
    fn blocks_open_and_close_at_three_backticks() {
        let document = Document::new("```json\n{}\n```\n````json\n```x\n```json a\n1");
        let found: Vec<_> = document.blocks.iter().map(|b| (b.opening, b.body.clone(), b.json, b.closed)).collect();
        assert_eq!(found, [(0, 1..2, true, true), (3, 4..4, false, true), (5, 6..7, true, false)]);
    }

    #[test]
    fn missing_empty_and_doubled_sections_are_found_where_they_are() {
        let text = "## A\n \n## B\nb\n## A\n## B\n```\n";
        let mut faults = Faults::new("f".into());
        Document::new(text).check_sections(&["A", "B", "C"], &mut faults);
        let texts: Vec<String> = faults.into_sorted(text.as_bytes()).iter().map(ToString::to_string).collect();
        assert_eq!(
            texts,
            [
                "f:1:1: the section \"## A\" is empty",
                "f:1:1: the section \"## C\" is missing",
                "f:5:1: the section \"## A\" is there twice",
                "f:6:1: the section \"## B\" is there twice"
            ]
        );
    }

    #[test]
    fn frontmatter_is_keys_with_texts_or_lists() {
        let text = "---\r\ntitle: A: b\nq: \"[x] y\"\nl: [\"R1\", 'R2' , R3]\ne: []\nempty:\nkind:x\n---\n";
        let mut faults = Faults::new("f".into());
        let entries = frontmatter(&Document::new(text), &mut faults).unwrap();
        let values: Vec<_> = entries.iter().map(|e| (e.key, e.value.clone())).collect();
        let l = text.find("[\"R1").unwrap();
        assert_eq!(
            values,
            [
                ("title", Value::Text("A: b")),
                ("q", Value::Text("[x] y")),
                ("l", Value::List(vec![(l + 1, "R1"), (l + 7, "R2"), (l + 14, "R3")])),
                ("e", Value::List(vec![])),
                ("empty", Value::Text("")),
                ("kind", Value::Text("x")),
            ]
        );
        assert_eq!(&text[entries[0].at..][..4], "A: b");
        assert_eq!(faults.len(), 0);
    }

    #[test]
    fn what_is_no_frontmatter_is_a_fault() {
        for text in ["", "\n---\nid: a\n---\n", "---\nid: a\n", "---", "--- \n---\n", "\u{feff}---\nid: a\n---\n"] {
            let mut faults = Faults::new("f".into());
            assert_eq!((frontmatter(&Document::new(text), &mut faults), faults.len()), (None, 1), "{text:?}");
        }
        for line in ["just words", "Owner: someone", "o-k: 1", "id: b", "", "# x", ": x"] {
            let text = format!("---\nid: a\n{line}\n---\n");
            let mut faults = Faults::new("f".into());
            assert_eq!(frontmatter(&Document::new(&text), &mut faults).unwrap().len(), 1, "{line:?}");
            assert_eq!(faults.into_sorted(text.as_bytes())[0].line, 3, "{line:?}");
        }
    }
}
