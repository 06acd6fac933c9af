//! `owner/name`: a repository on GitHub, and the three ways of writing its address. Parses once, at the border.

use std::fmt;

/// A repository on GitHub.
#[derive(Debug, Clone)]
pub struct Slug {
    owner: String,
    name: String,
}

impl Slug {
    /// The repository that `owner/name` names.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (owner, name) = text.split_once('/')?;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_".contains(c);
        let good_owner = !owner.is_empty() && !owner.starts_with('-') && owner.chars().all(plain);
        let good_name = !name.is_empty()
            && !matches!(name, "." | "..")
            && !name.starts_with('-')
            && name.chars().all(|c| plain(c) || c == '.');
        (good_owner && good_name).then(|| Self { owner: owner.to_owned(), name: name.to_owned() })
    }

    /// The repository of an address `https://github.com/o/n(.git)`, `git@github.com:o/n(.git)` or
    /// `ssh://git@github.com/o/n(.git)`.
    #[must_use]
    pub fn of_url(url: &str) -> Option<Self> {
        let starts = ["https://github.com/", "git@github.com:", "ssh://git@github.com/"];
        let path = starts.iter().find_map(|start| url.strip_prefix(start))?;
        Self::parse(path.strip_suffix(".git").unwrap_or(path))
    }

    /// The owner.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// The name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}

/// GitHub does not tell names apart by case.
impl PartialEq for Slug {
    fn eq(&self, other: &Self) -> bool {
        self.owner.eq_ignore_ascii_case(&other.owner) && self.name.eq_ignore_ascii_case(&other.name)
    }
}

impl Eq for Slug {}

impl fmt::Display for Slug {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_address_is_one_of_three_or_none() {
        for good in [
            "https://github.com/o/n",
            "https://github.com/O/N.git",
            "git@github.com:o/n.git",
            "ssh://git@github.com/o/n",
        ] {
            assert_eq!(Slug::of_url(good), Slug::parse("o/n"), "{good}");
        }
        for bad in [
            "http://github.com/o/n",
            "https://github.com/o",
            "https://github.com/o/n/m",
            "https://github.com/o/n/",
            "https://github.com//n",
            "https://github.com/o/..",
            "https://github.com/o/.git",
            "https://github.com.example/o/n",
            "https://github.com@evil.example/o/n",
            "https://gitlab.com/o/n",
            "https://u:p@github.com/o/n",
            "ssh://github.com/o/n",
            "ssh://git@github.com.example/o/n",
            "ssh://git@github.com:22/o/n",
            "git@github.com:/o/n",
            "me@github.com:o/n",
            "git://github.com/o/n",
            "/srv/o/n",
            "https://github.com/o/n\n",
            "https://github.com/o/n?x",
            "https://github.com/-o/n",
            "",
        ] {
            assert_eq!(Slug::of_url(bad), None, "{bad}");
        }
        assert_eq!(Slug::of_url("https://github.com/o/n.git.git").unwrap().name(), "n.git");
    }

    proptest! {
        #[test]
        fn every_way_of_writing_names_the_same(owner in "[A-Za-z0-9][A-Za-z0-9-]{0,38}", name in "[A-Za-z0-9_][A-Za-z0-9._-]{0,40}") {
            prop_assume!(!name.ends_with(".git"));
            let slug = Slug::parse(&format!("{owner}/{name}")).unwrap();
            for start in ["https://github.com/", "git@github.com:", "ssh://git@github.com/"] {
                for end in ["", ".git"] {
                    let read = Slug::of_url(&format!("{start}{slug}{end}")).unwrap();
                    prop_assert_eq!(read.to_string(), slug.to_string());
                    let shouted = Slug::of_url(&format!("{start}{}{end}", slug.to_string().to_uppercase()));
                    prop_assert_eq!(shouted.as_ref(), Some(&slug));
                }
            }
        }

        #[test]
        fn nothing_with_a_secret_is_an_address(user in "[a-z]{1,8}", secret in "[!-~]{1,20}") {
            prop_assert_eq!(Slug::of_url(&format!("https://{user}:{secret}@github.com/o/n")), None);
            prop_assert_eq!(Slug::of_url(&format!("ssh://git:{secret}@github.com/o/n")), None);
        }

        #[test]
        fn anything_is_survived(text in "\\PC{0,60}") {
            if let Some(slug) = Slug::of_url(&text) {
                prop_assert_eq!(Slug::parse(&slug.to_string()), Some(slug));
            }
        }
    }
}
