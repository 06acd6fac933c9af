//! Text for people: tables, marks, and nothing that a terminal would obey but our own colours.

use std::io::IsTerminal;

/// A colour that a word may have on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colour {
    /// Done, proven.
    Green,
    /// Failed.
    Red,
    /// Waits.
    Yellow,
    /// What to look at first.
    Bold,
}

/// Whether standard output shows colours.
pub(super) fn colours() -> bool {
    std::io::stdout().is_terminal()
        && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
        && std::env::var_os("TERM").is_some_and(|term| term != "dumb")
}

/// The word in the colour, where colours are shown.
pub(super) fn painted(word: &str, colour: Colour, colours: bool) -> String {
    if !colours {
        return word.to_owned();
    }
    let code = match colour {
        Colour::Green => "32",
        Colour::Red => "31",
        Colour::Yellow => "33",
        Colour::Bold => "1",
    };
    format!("\u{1b}[{code}m{word}\u{1b}[m")
}

/// The colour of a result's word.
pub(super) fn of_result(result: &str) -> Colour {
    match result {
        "accepted" => Colour::Green,
        "failed" | "blocked" => Colour::Red,
        _ => Colour::Yellow,
    }
}

/// The text with everything visible that a terminal would obey or hide, but for line feeds.
pub(super) fn visible(text: &str) -> String {
    text.chars()
        .flat_map(|c| if c != '\n' && is_hidden(c) { c.escape_default().collect::<Vec<_>>() } else { vec![c] })
        .collect()
}

/// Whether a terminal obeys the character, or shows nothing of it: controls, marks that turn the direction of a text,
/// and marks that nobody sees.
pub(super) const fn is_hidden(c: char) -> bool {
    matches!(c,
        '\0'..='\x1f'
        | '\x7f'..='\u{9f}'
        | '\u{ad}'
        | '\u{61c}'
        | '\u{200b}'..='\u{200f}'
        | '\u{2028}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}'
        | '\u{feff}'
        | '\u{e0000}'..='\u{e007f}')
}

/// `1 task`, `2 tasks`.
pub(super) fn counted(number: usize, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_stranger_wrote_moves_no_cursor() {
        assert_eq!(visible("a\u{1b}[2J\rb\n"), "a\\u{1b}[2J\\rb\n");
        assert_eq!(visible("done\u{202e}\u{200b}한é"), "done\\u{202e}\\u{200b}한é");
        assert_eq!(painted("x", Colour::Red, false), "x");
    }
}
