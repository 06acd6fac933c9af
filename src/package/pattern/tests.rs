//! The same as Python, and always an end.

use proptest::prelude::*;

use super::*;

mod table;

fn machine(pattern: &Pattern, text: &str) -> Option<bool> {
    let words = [false, true].map(|ascii| Set::new(&class::word(ascii)));
    machine::search(&pattern.0.program, &words, text).ok()
}

#[test]
fn patterns_find_what_python_finds() {
    for (source, found, absent) in table::FOUND {
        let pattern = Pattern::compile(source).unwrap_or_else(|error| panic!("{source:?}: {error}"));
        for (texts, wanted) in [(found, true), (absent, false)] {
            for text in *texts {
                assert_eq!(pattern.search(text), Ok(wanted), "{source:?} in {text:?}");
                assert_eq!(machine(&pattern, text), Some(wanted), "{source:?} in {text:?}, by the machine");
            }
        }
    }
}

#[test]
fn what_python_refuses_is_refused() {
    for source in table::REFUSED {
        assert!(matches!(Pattern::compile(source), Err(PatternError::Invalid { .. })), "{source:?}");
    }
    assert!(Pattern::compile(&"(".repeat(100_000)).is_err());
    assert!(Pattern::compile(&("(".repeat(101) + &")".repeat(101))).is_err());
    assert!(Pattern::compile(&"a".repeat(300_000)).is_err());
    let error = Pattern::compile("ab(c").unwrap_err();
    assert_eq!(error.to_string(), "this ( is never closed (at character 3)");
}

#[test]
fn a_pattern_that_runs_away_is_given_up_by_name() {
    let text = "x".repeat(5000) + "\n";
    let source = r"(x+x+)+\1y";
    let error = Pattern::compile(source).unwrap().search(&text).unwrap_err();
    assert_eq!(error, PatternError::RanAway(source.to_owned()));
    assert!(error.to_string().contains(&format!("{source:?}")));
    // Regular, and so never slow.
    assert_eq!(Pattern::compile("(x+x+)+y").unwrap().search(&text), Ok(false));
}

#[test]
fn a_long_text_is_no_runaway() {
    let text = "+    let value = compute(\"some text\") + other.call(); // a note\n".repeat(4000);
    for source in [
        r"(?<!un)safe\b",
        r"(?=.*QQ)x",
        r"(?m)^\+.*QQ$",
        r"(\w+) \1 QQ",
        r"(?!x).QQ",
        r"(?:(?!QQ).){3}ZZ",
        r"(?s)^(?!.*QQ).*ZZ",
    ] {
        assert_eq!(Pattern::compile(source).unwrap().search(&text), Ok(false), "{source:?}");
    }
}

#[test]
fn what_the_linear_engine_declines_the_machine_takes() {
    let pattern = Pattern::compile(r"\bनमस्ते\b").unwrap();
    // The last letter is a mark, which is no part of a word in Python.
    assert_eq!((pattern.search("नमस्ते "), pattern.search("नमस्तेx")), (Ok(false), Ok(true)));
    assert_eq!(Pattern::compile(r"\B").unwrap().search(""), Ok(false));
    assert_eq!(Pattern::compile(r"(?s).{50000}x").unwrap().search(&("é".repeat(50_000) + "x")), Ok(true));
}

fn pieces(of: &'static [&'static str], most: usize) -> impl Strategy<Value = String> {
    prop::collection::vec(prop::sample::select(of), 0..most).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn both_engines_find_the_same(
        source in pieces(
            &["a", "b", "é", "İ", ".", "[^a]", "\\w", "\\W", "\\b", "\\s", "^", "$", "(?:", "(?i:", "(?m:", "(", ")", "|", "*", "+?", "?", "{1,2}"],
            10,
        ),
        text in pieces(&["a", "b", "A", "é", "i", "\n", " ", "_", "\u{301}"], 8),
    ) {
        if let Ok(pattern) = Pattern::compile(&source)
            && let Some(found) = pattern.regular().and_then(|regular| regular.is_found_in(&text))
        {
            prop_assert_eq!(machine(&pattern, &text), Some(found), "{:?} in {:?}", source, text);
        }
    }

    #[test]
    fn nothing_panics(
        source in pieces(
            &["(", ")", "(?", "P<n>", "P=n", "<=", "<!", "=", "!", ">", "#", "[", "]", "^", "-", "\\", "1", "x", "\\d", "{", "2", ",", "}", "*", "+", "?", "|", "(1)", "i", ":", "é", "\0"],
            14,
        ),
        any in ".{0,12}",
        text in "[ab1x\né]{0,6}",
    ) {
        for source in [&source, &any] {
            if let Ok(pattern) = Pattern::compile(source) {
                let _ = pattern.search(&text);
            }
        }
    }
}
