//! GitHub through `gh`, the user's own login: `repo view`, `pr list`, `pr create`, `pr view` and `pr merge`, each bound
//! to the exact repository, and nothing else. Its exit status is never proof of anything.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use super::answer::{number_of, read_repository, read_request, read_requests};
use super::{Forge, ForgeError, MergeRequest, Opening, RepositoryView, Result, Said, Slug};
use crate::git::{Oid, without_secrets};
use crate::os::process::{Answer, Environment, Tool};

/// How long an answer may take.
const LIMIT: Duration = Duration::from_secs(120);
/// How much of what it said is repeated, in characters.
const REPEATED: usize = 600;
/// What is asked of a request.
const FIELDS: &str = "autoMergeRequest,baseRefName,headRefName,headRefOid,headRepository,headRepositoryOwner,\
                      isCrossRepository,mergeCommit,mergedAt,number,state,url";

/// A repository on GitHub.
#[derive(Debug, Clone)]
pub struct GitHub {
    slug: Slug,
    tool: Tool,
}

impl GitHub {
    /// The repository `slug`.
    #[must_use]
    pub fn new(slug: Slug) -> Self {
        // Whatever the caller set for a person at a terminal must not change an answer, make it wait for one, or lead it
        // to another host.
        let environment = Environment::inherited()
            .with("GH_PROMPT_DISABLED", "1")
            .with("GH_NO_UPDATE_NOTIFIER", "1")
            .with("GH_NO_EXTENSION_UPDATE_NOTIFIER", "1")
            .with("GH_HOST", "github.com")
            .with("GH_REPO", "")
            .with("GH_DEBUG", "")
            .with("DEBUG", "")
            .with("GH_FORCE_TTY", "")
            .with("GH_PAGER", "cat")
            .with("CLICOLOR_FORCE", "0")
            .with("NO_COLOR", "1")
            .with("LC_ALL", "C");
        // In no repository, so that none but the named one can be meant.
        let tool = Tool { program: "gh".into(), cwd: PathBuf::from("/"), environment, limit: LIMIT };
        Self { slug, tool }
    }

    /// The repository with its host, as every call names it.
    fn named(&self) -> String {
        format!("github.com/{}", self.slug)
    }

    fn run(&self, args: &[&str]) -> Result<Answer> {
        self.tool.ask(args).map_err(|error| {
            let why = if error.kind() == io::ErrorKind::NotFound {
                "it is not on PATH".to_owned()
            } else {
                error.to_string()
            };
            ForgeError::NoTool { tool: "gh", why }
        })
    }

    /// What `read` makes of the answer to a look.
    fn look<T>(&self, args: &[&str], read: impl FnOnce(&Slug, &[u8]) -> Result<T, String>) -> Result<T> {
        let answer = self.run(args)?;
        let none = |why: String| no_answer(args, why);
        if answer.ended {
            return Err(none(format!("gave no answer in time: {}", said(&answer.stderr))));
        }
        if answer.code != Some(0) {
            return Err(none(format!("failed: {}", said(&answer.stderr))));
        }
        if answer.cut {
            return Err(none("answered more than can be read".to_owned()));
        }
        read(&self.slug, &answer.stdout).map_err(|why| none(format!("answered {why}")))
    }

    /// Tells it to do something.
    fn tell(&self, args: &[&str]) -> Result<Said> {
        let answer = self.run(args)?;
        let complaint = match (answer.ended, answer.code) {
            (true, _) => Some(format!("gh did not end in time: {}", said(&answer.stderr))),
            (false, Some(0)) => None,
            (false, _) => Some(said(&answer.stderr)),
        };
        let text = String::from_utf8_lossy(&answer.stdout);
        let number = text.split_whitespace().find_map(|word| number_of(&self.slug, word));
        Ok(Said { complaint, number })
    }
}

impl Forge for GitHub {
    fn repository(&self) -> Result<RepositoryView> {
        let named = self.named();
        let args = ["repo", "view", &named, "--json", "defaultBranchRef,mergeCommitAllowed,nameWithOwner"];
        self.look(&args, read_repository)
    }

    fn find(&self, head: &str) -> Result<Vec<MergeRequest>> {
        let named = self.named();
        let args =
            ["pr", "list", "--repo", &named, "--head", head, "--state", "all", "--limit", "100", "--json", FIELDS];
        let found = self.look(&args, read_requests)?;
        // A fork may have a branch of any name.
        Ok(found.into_iter().filter(|request| request.own && request.head == head).collect())
    }

    fn open(&self, opening: &Opening) -> Result<Said> {
        let named = self.named();
        self.tell(&[
            "pr",
            "create",
            "--repo",
            &named,
            "--head",
            &opening.head,
            "--base",
            &opening.base,
            "--title",
            &opening.title,
            "--body",
            &opening.body,
        ])
    }

    fn view(&self, number: u64) -> Result<MergeRequest> {
        let (named, wanted) = (self.named(), number.to_string());
        let args = ["pr", "view", &wanted, "--repo", &named, "--json", FIELDS];
        let request = self.look(&args, read_request)?;
        if request.number != number {
            return Err(no_answer(&args, format!("answered of the request {}", request.number)));
        }
        Ok(request)
    }

    fn merge(&self, number: u64, commit: Oid) -> Result<Said> {
        let (named, number, commit) = (self.named(), number.to_string(), commit.to_string());
        self.tell(&["pr", "merge", &number, "--repo", &named, "--auto", "--merge", "--match-head-commit", &commit])
    }

    fn cancel(&self, number: u64) -> Result<Said> {
        let (named, number) = (self.named(), number.to_string());
        self.tell(&["pr", "merge", &number, "--repo", &named, "--disable-auto"])
    }
}

fn no_answer(args: &[&str], why: String) -> ForgeError {
    // The two words that name the command; the rest is long, and of no use to whoever reads it.
    ForgeError::NoAnswer { asked: format!("gh {}", args.iter().take(2).copied().collect::<Vec<_>>().join(" ")), why }
}

/// What a tool said on standard error: on one line, short, without secrets.
fn said(stderr: &[u8]) -> String {
    let text = without_secrets(&String::from_utf8_lossy(stderr));
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let line: String = lines.join("; ").chars().take(REPEATED).collect();
    if line.is_empty() { "it said nothing".to_owned() } else { line }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_it_said_is_short_and_on_one_line() {
        assert_eq!(said(b"a\n\n  b https://u:p@h/x\n"), "a; b https://***@h/x");
        assert_eq!(said(b""), "it said nothing");
        assert_eq!(said(&[b'x'; 5000]).chars().count(), REPEATED);
    }
}
