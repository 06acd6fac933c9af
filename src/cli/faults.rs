//! Faults of a package as a person reads them: the place, the line, and what to write instead.
//!
//! Pure: it gets the texts and gives one back. Whatever a file holds, a terminal never obeys it.

use std::fmt::Write;

use super::text::is_hidden;
use crate::package::Fault;

/// As many cells of a source line as are shown, and as many of them before the place where a long line is cut.
const WIDEST: usize = 100;
const BEFORE: usize = 60;

/// The faults, one below the other, each with its line where `sources` has the file. ANSI sequences only with
/// `colour`.
#[must_use]
pub fn render(faults: &[Fault], sources: &dyn Fn(&str) -> Option<String>, colour: bool) -> String {
    let paint = Paint(colour);
    let mut out = String::new();
    // Faults come file by file, so that one text at a time is enough.
    let mut source: Option<(&str, Option<String>)> = None;
    for fault in faults {
        if source.as_ref().is_none_or(|(file, _)| *file != fault.file) {
            source = Some((&fault.file, sources(&fault.file)));
        }
        let text = source.as_ref().and_then(|(_, text)| text.as_deref());
        let place = format!("{}:{}:{}:", visible(&fault.file), fault.line, fault.column);
        let _ = writeln!(out, "{} {}", paint.bold(&place), paint.red(&visible(&fault.message)));
        let number = fault.line.to_string();
        let gutter = " ".repeat(number.len());
        let line = text.and_then(|text| text.split('\n').nth(fault.line.saturating_sub(1)));
        if let Some((shown, caret)) = line.and_then(|line| excerpt(line, fault.column)) {
            let bar = paint.blue("|");
            let _ = writeln!(out, "{gutter} {bar}\n{} {bar} {shown}", paint.blue(&number));
            let _ = writeln!(out, "{gutter} {bar} {}{}", " ".repeat(caret), paint.red("^"));
        }
        if !fault.help.is_empty() {
            let _ = writeln!(out, "{gutter} {} {}", paint.blue("="), format_args!("help: {}", visible(&fault.help)));
        }
        out.push('\n');
    }
    out.truncate(out.trim_end_matches('\n').len() + usize::from(!out.is_empty()));
    out
}

/// The line as it is shown, and the cell that the column is at. Nothing where there is nothing to see.
fn excerpt(line: &str, column: usize) -> Option<(String, usize)> {
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.trim().is_empty() {
        return None;
    }
    // No more is looked at than can be shown, however long the line is.
    let skipped = column.saturating_sub(1).saturating_sub(BEFORE);
    let (mut shown, mut cells, mut caret) = (String::new(), 0, None);
    if skipped > 0 {
        shown.push('…');
        cells = 1;
    }
    for (index, c) in line.chars().enumerate().skip(skipped) {
        if index + 1 == column {
            caret = Some(cells);
        }
        let piece = visible_char(c);
        let wide: usize = piece.chars().map(cells_of).sum();
        if cells + wide > WIDEST && caret.is_some() {
            shown.push('…');
            break;
        }
        shown.push_str(&piece);
        cells += wide;
    }
    let caret = caret.unwrap_or(cells);
    shown.truncate(shown.trim_end().len());
    Some((shown, caret))
}

/// The text in as few cells as show everything that a terminal would obey or hide.
fn visible(text: &str) -> String {
    text.chars().map(visible_char).collect()
}

fn visible_char(c: char) -> String {
    match c {
        '\t' => "    ".to_owned(),
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or('?').to_string(),
        '\x7f' => '\u{2421}'.to_string(),
        c if is_hidden(c) => c.escape_unicode().to_string(),
        c => c.to_string(),
    }
}

/// How many cells of a terminal a character takes, near enough to put a caret below it.
const fn cells_of(c: char) -> usize {
    match c {
        '\u{300}'..='\u{36f}' | '\u{fe00}'..='\u{fe0f}' | '\u{20d0}'..='\u{20ff}' => 0,
        '\u{1100}'..='\u{115f}'
        | '\u{2e80}'..='\u{303e}'
        | '\u{3041}'..='\u{a4cf}'
        | '\u{ac00}'..='\u{d7a3}'
        | '\u{f900}'..='\u{faff}'
        | '\u{fe30}'..='\u{fe6f}'
        | '\u{ff00}'..='\u{ff60}'
        | '\u{ffe0}'..='\u{ffe6}'
        | '\u{1f300}'..='\u{1faff}'
        | '\u{20000}'..='\u{3fffd}' => 2,
        _ => 1,
    }
}

struct Paint(bool);

impl Paint {
    fn with(&self, code: &str, text: &str) -> String {
        if self.0 { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }

    fn bold(&self, text: &str) -> String {
        self.with("1", text)
    }

    fn red(&self, text: &str) -> String {
        self.with("1;31", text)
    }

    fn blue(&self, text: &str) -> String {
        self.with("1;34", text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fault(line: usize, column: usize) -> Fault {
        Fault {
            file: "docs/specs/inv/meta.md".into(),
            line,
            column,
            message: "unknown delivery \"push\"".into(),
            help: "write \"auto\", \"pr\" or \"local-only\"".into(),
        }
    }

    fn shown(text: &str, line: usize, column: usize) -> String {
        render(&[fault(line, column)], &|_| Some(text.to_owned()), false)
    }

    #[test]
    fn a_fault_is_shown_in_its_line() {
        let text = "\n".repeat(30) + "  \"delivery\": \"push\",\r\n";
        assert_eq!(
            shown(&text, 31, 15),
            "\
docs/specs/inv/meta.md:31:15: unknown delivery \"push\"
   |
31 |   \"delivery\": \"push\",
   |               ^
   = help: write \"auto\", \"pr\" or \"local-only\"
"
        );
    }

    #[test]
    fn without_a_line_there_is_only_the_place_and_the_help() {
        let expected = "\
docs/specs/inv/meta.md:1:1: unknown delivery \"push\"
  = help: write \"auto\", \"pr\" or \"local-only\"
";
        assert_eq!(render(&[fault(1, 1)], &|_| None, false), expected);
        assert_eq!(shown("\n", 1, 1), expected);
        assert_eq!(render(&[], &|_| None, true), "");
        let two = render(&[fault(1, 1), fault(1, 1)], &|_| None, false);
        assert_eq!(two, format!("{expected}\n{expected}"));
    }

    #[test]
    fn what_a_file_holds_is_seen_and_not_obeyed() {
        let text = shown("\t한\x1b[31m\u{202e}x", 1, 9);
        assert!(text.contains(&format!("1 |     한␛[31m\\u{{202e}}x\n  | {:19}^\n", "")), "{text}");
        let mut hostile = fault(1, 1);
        hostile.message = "\x1b]0;\x07".into();
        assert!(!render(&[hostile], &|_| None, false).contains('\x1b'));
    }

    #[test]
    fn a_long_line_is_cut_around_the_place() {
        let text = "a".repeat(500) + "X" + &"b".repeat(100_000);
        let shown = shown(&text, 1, 501);
        let lines: Vec<&str> = shown.lines().collect();
        assert!(lines.iter().all(|line| line.chars().count() < 110), "{shown}");
        let caret = lines[3].chars().position(|c| c == '^').unwrap();
        assert_eq!(lines[2].chars().nth(caret), Some('X'));
        assert!(lines[2].starts_with("1 | …a") && lines[2].ends_with("b…"));
    }

    #[test]
    fn colour_is_only_where_it_is_wanted() {
        let text = render(&[fault(1, 1)], &|_| Some("x".into()), true);
        assert!(text.starts_with("\x1b[1mdocs/specs/inv/meta.md:1:1:\x1b[0m \x1b[1;31munknown"));
        assert_eq!(text.matches("\x1b[0m").count() * 2, text.matches("\x1b[").count());
    }
}
