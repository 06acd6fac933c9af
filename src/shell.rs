//! Command lines as a person would type them: words quoted for a POSIX shell. Never runs one.

use std::ffi::OsStr;

/// The words as one line that a POSIX shell splits into exactly them.
#[must_use]
pub fn line<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> String {
    words.into_iter().map(|word| quoted(&word.as_ref().to_string_lossy())).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn only_what_must_be_is_quoted() {
        assert_eq!(line(["git", "--receipt", "/a b/c", "it's", ""]), r"git --receipt '/a b/c' 'it'\''s' ''");
    }
}
