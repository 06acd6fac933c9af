//! Who makes our commits: asked of `git` itself, because it is stricter than any second reading of its rules.

use super::{Author, GitError, Repo, Result};

impl Repo {
    /// The committer that Git would write now.
    ///
    /// # Errors
    /// [`GitError::Identity`] where Git does not know who that is.
    pub fn author(&self) -> Result<&Author> {
        if let Some(author) = self.author.get() {
            return Ok(author);
        }
        let output = self.git().args(["var", "GIT_COMMITTER_IDENT"]).output()?;
        if output.code != Some(0) {
            let said = String::from_utf8_lossy(&output.stderr).lines().last().unwrap_or_default().to_owned();
            return Err(GitError::Identity(said.trim_start_matches("fatal: ").to_owned()));
        }
        let mut author = parse(&output.line()).ok_or_else(|| GitError::Identity(output.line()))?;
        // A drain goes on for hours: only who asks for one moment, as with `git commit`, gets it for every commit.
        author.moment = author.moment.filter(|_| std::env::var_os("GIT_COMMITTER_DATE").is_some());
        Ok(self.author.get_or_init(|| author))
    }
}

/// `Name <address> 1700000000 +0100`.
fn parse(line: &str) -> Option<Author> {
    let (name, rest) = line.split_once('<')?;
    let (email, time) = rest.rsplit_once('>')?;
    let (moment, zone) = time.trim_start().split_once(' ')?;
    let number: i32 = zone.parse().ok()?;
    let offset = (number / 100 * 60 + number % 100) * 60;
    let moment = moment.parse().ok();
    Some(Author { name: name.trim_end().to_owned(), email: email.to_owned(), offset, moment })
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn an_identity_is_read_with_its_zone() {
        let author = parse("A. B <a@b.example> 1700000000 -0330").unwrap();
        assert_eq!((author.name.as_str(), author.email.as_str(), author.offset), ("A. B", "a@b.example", -12_600));
        assert!(parse("nobody").is_none());
    }
}
