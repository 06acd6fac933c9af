//! What Git takes for the name of a branch. Never asks whether there is one.

/// Whether Git accepts `name` as the short name of a branch, as `git check-ref-format --branch` decides it; forms
/// that stand for another branch (`@`, `@{-1}`, `HEAD`) are no names.
#[must_use]
pub fn is_branch_name(name: &str) -> bool {
    let forbidden = |c: char| c.is_ascii_control() || " ~^:?*[\\".contains(c);
    let component = |part: &str| !part.is_empty() && !part.starts_with('.') && !part.ends_with(".lock");
    !name.starts_with('-')
        && !matches!(name, "@" | "HEAD")
        && !name.ends_with('.')
        && !name.contains("..")
        && !name.contains("@{")
        && !name.contains(forbidden)
        && name.split('/').all(component)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_that_git_takes() {
        for good in [
            "main",
            "release/1.0",
            "주요",
            "feature.x",
            "a@b",
            "@x",
            "x@",
            "a-",
            "a/-b",
            "lock",
            ".lockx/a".trim_start_matches('.'),
            "a{b}",
            "HEAD/x",
            "x/HEAD",
            "a.lock.b",
            "\u{a0}",
            "\u{85}",
        ] {
            assert!(is_branch_name(good), "{good:?}");
        }
        for bad in [
            "",
            "@",
            "HEAD",
            "-a",
            "a..b",
            "my branch",
            "main.lock",
            "a.lock/b",
            "x/",
            "/x",
            "a//b",
            ".a",
            "a/.b",
            "a.",
            "a/b.",
            "a@{b",
            "@{-1}",
            "a~b",
            "a^b",
            "a:b",
            "a?b",
            "a*b",
            "a[b",
            "a\\b",
            "a\nb",
            "a\tb",
            "a\u{7f}b",
            "a\0b",
        ] {
            assert!(!is_branch_name(bad), "{bad:?}");
        }
    }
}
