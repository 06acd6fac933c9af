//! What a request says of its task: in brief, for a person who decides about a merge. What a package or an executor
//! wrote is quoted short and without control characters, and proves nothing here.

use std::fmt::Write;

use crate::forge::Opening;
use crate::json::Value;
use crate::store::{Receipt, ReceiptDir, read_state};

/// The longest title, in characters.
const TITLE: usize = 120;
/// The longest text of an executor's, in characters.
const QUOTED: usize = 500;
/// How many assumptions are repeated.
const ASSUMPTIONS: usize = 20;

/// The request that delivers the task of `receipt`.
pub(super) fn opening(dir: &ReceiptDir, receipt: &Receipt) -> Opening {
    Opening {
        head: receipt.branch.clone(),
        base: receipt.base.clone(),
        title: title(dir, receipt),
        body: body(receipt),
    }
}

fn title(dir: &ReceiptDir, receipt: &Receipt) -> String {
    let packet = read_state(&dir.packet()).ok().flatten();
    let named = packet.as_ref().and_then(|(packet, _)| packet.get("title")?.as_str());
    let title = named.map_or_else(|| receipt.task.clone(), |named| format!("{}: {named}", receipt.task));
    let title = plain(&title, TITLE);
    // A task is called as its owner likes.
    if title.trim().is_empty() { receipt.branch.clone() } else { title }
}

fn body(receipt: &Receipt) -> String {
    let acceptance = receipt.acceptance.as_ref();
    let source = receipt.source_sha.map(|id| id.to_string()).unwrap_or_default();
    let mut text =
        format!("The accepted result of the task `{}`, made by git devlyn.\n\n- source: {source}\n", receipt.task);
    let mut line = |label: &str, value: String| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "- {label}: {value}");
    };
    let list = |key: &str| acceptance.and_then(|acceptance| acceptance.0.get(key)?.as_array().cloned());
    if let Some(checks) = list("commands") {
        let passed = checks.iter().filter(|check| check.get("passed") == Some(&Value::Bool(true))).count();
        line("checks", format!("{passed} of {} passed", checks.len()));
    } else if let Some(checks) = list("checks") {
        line("checks", format!("{} passed, by the word of its owner", checks.len()));
    }
    for review in list("reviews").unwrap_or_default() {
        let word = |key: &str| review.get(key).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        line("reviewed by", plain(&format!("{}/{}", word("engine"), word("model")), QUOTED));
    }
    let assumptions = acceptance.map(|acceptance| acceptance.texts("assumptions")).unwrap_or_default();
    for assumption in assumptions.iter().take(ASSUMPTIONS) {
        line("assumed", plain(assumption, QUOTED));
    }
    text
}

/// The text on one line, without control characters, at most `longest` characters long.
fn plain(text: &str, longest: usize) -> String {
    let squeezed = text.split(|c: char| c.is_whitespace() || c.is_control()).filter(|word| !word.is_empty());
    let line = squeezed.collect::<Vec<_>>().join(" ");
    if line.chars().count() <= longest {
        return line;
    }
    let mut cut: String = line.chars().take(longest.saturating_sub(1)).collect();
    cut.push('…');
    cut
}

#[cfg(test)]
mod tests {
    use super::plain;

    #[test]
    fn a_quoted_text_is_one_short_line() {
        assert_eq!(plain(" a\n\tb\u{1b}[2Jc\0d ", 50), "a b [2Jc d");
        assert_eq!(plain("abcdef", 4), "abc…");
    }
}
