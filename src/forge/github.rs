//! GitHub through `gh`, the user's own login: `repo view`, `pr list`, `pr create`, `pr view` and `pr merge`, each bound
//! to the exact repository, and nothing else. Its exit status is never proof of anything.

use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde::Deserialize;

use super::{Forge, ForgeError, MergeRequest, Opening, RepositoryView, Result, Said, Slug, State};
use crate::git::{Oid, without_secrets};
use crate::json::{self, Map, Value};
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

    /// The value that a look answers.
    fn look(&self, args: &[&str]) -> Result<Value> {
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
        json::parse(&answer.stdout).map_err(|error| none(format!("answered no JSON ({error})")))
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
        let number = text.split_whitespace().find_map(|word| self.number_of(word));
        Ok(Said { complaint, number })
    }

    /// The number of the request of this repository with that address.
    fn number_of(&self, url: &str) -> Option<u64> {
        let path = url.strip_prefix("https://github.com/")?;
        let (slug, number) = path.rsplit_once("/pull/")?;
        let number = number.parse().ok().filter(|number| *number > 0)?;
        (Slug::parse(slug)? == self.slug).then_some(number)
    }

    /// The request that `value` describes.
    fn request(&self, args: &[&str], value: Value) -> Result<MergeRequest> {
        let misshapen = |why: String| no_answer(args, format!("answered another thing than was asked ({why})"));
        let Value::Object(raw) = value else { return Err(misshapen("no object".to_owned())) };
        let shown: Shown =
            serde_json::from_value(Value::Object(raw.clone())).map_err(|error| misshapen(error.to_string()))?;
        if self.number_of(&shown.url) != Some(shown.number) {
            return Err(misshapen(format!("a request at {}", without_secrets(&shown.url))));
        }
        let state = match shown.state.as_str() {
            "OPEN" => State::Open,
            "CLOSED" => State::Closed,
            "MERGED" => State::Merged,
            other => return Err(misshapen(format!("the state {other:?}"))),
        };
        let of_ours = |login: &str, name: &str| {
            login.eq_ignore_ascii_case(self.slug.owner()) && name.eq_ignore_ascii_case(self.slug.name())
        };
        let own = !shown.is_cross_repository
            && shown.head_repository_owner.zip(shown.head_repository).is_some_and(|(o, r)| of_ours(&o.login, &r.name));
        Ok(MergeRequest {
            number: shown.number,
            url: shown.url,
            state,
            head: shown.head_ref_name,
            commit: shown.head_ref_oid,
            base: shown.base_ref_name,
            own,
            auto_merge: shown.auto_merge_request.is_some(),
            merge_commit: shown.merge_commit.map(|commit| commit.oid),
            raw,
        })
    }
}

impl Forge for GitHub {
    fn repository(&self) -> Result<RepositoryView> {
        let named = self.named();
        let args = ["repo", "view", &named, "--json", "defaultBranchRef,mergeCommitAllowed,nameWithOwner"];
        let shown: ShownRepository = serde_json::from_value(self.look(&args)?)
            .map_err(|error| no_answer(&args, format!("answered another thing than was asked ({error})")))?;
        if Slug::parse(&shown.name_with_owner) != Some(self.slug.clone()) {
            return Err(no_answer(&args, format!("answered of {:?}; was it renamed?", shown.name_with_owner)));
        }
        Ok(RepositoryView { default_branch: shown.default_branch_ref.name, merge_commits: shown.merge_commit_allowed })
    }

    fn find(&self, head: &str) -> Result<Vec<MergeRequest>> {
        let named = self.named();
        let args =
            ["pr", "list", "--repo", &named, "--head", head, "--state", "all", "--limit", "100", "--json", FIELDS];
        let Value::Array(rows) = self.look(&args)? else {
            return Err(no_answer(&args, "answered another thing than was asked (no list)".to_owned()));
        };
        let found: Result<Vec<_>> = rows.into_iter().map(|row| self.request(&args, row)).collect();
        // A fork may have a branch of any name.
        Ok(found?.into_iter().filter(|request| request.own && request.head == head).collect())
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
        let request = self.request(&args, self.look(&args)?)?;
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

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ShownRepository {
    name_with_owner: String,
    default_branch_ref: Named,
    merge_commit_allowed: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Shown {
    number: u64,
    url: String,
    state: String,
    head_ref_name: String,
    head_ref_oid: Oid,
    base_ref_name: String,
    is_cross_repository: bool,
    head_repository: Option<Named>,
    head_repository_owner: Option<Owner>,
    merge_commit: Option<Commit>,
    auto_merge_request: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Owner {
    login: String,
}

#[derive(Deserialize)]
struct Commit {
    oid: Oid,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::json;

    fn ours() -> GitHub {
        GitHub::new(Slug::parse("test/project").unwrap())
    }

    fn shown() -> Value {
        json!({
            "number": 7, "url": "https://github.com/Test/Project/pull/7", "state": "OPEN", "headRefName": "devlyn/x/t1",
            "headRefOid": "a".repeat(40), "baseRefName": "main", "isCrossRepository": false,
            "headRepository": {"id": "R", "name": "project"}, "headRepositoryOwner": {"id": "U", "login": "test"},
            "mergeCommit": null, "mergedAt": null, "autoMergeRequest": null
        })
    }

    #[test]
    fn a_request_is_read_whole_or_not_at_all() {
        let read = ours().request(&["pr", "view"], shown()).unwrap();
        assert_eq!((read.number, read.state, read.own, read.auto_merge), (7, State::Open, true, false));
        for (key, value) in [
            ("url", json!("https://github.com/test/other/pull/7")),
            ("url", json!("https://github.com/test/project/pull/8")),
            ("url", json!("https://evil.example/test/project/pull/7")),
            ("state", json!("DRAFT")),
            ("headRefOid", json!("abc")),
            ("number", json!("7")),
            ("isCrossRepository", json!(null)),
            ("mergeCommit", json!({})),
        ] {
            let mut bad = shown();
            bad[key] = value;
            ours().request(&["pr", "view"], bad).unwrap_err();
        }
        for bad in [json!(null), json!([]), json!({}), json!(7)] {
            ours().request(&["pr", "view"], bad).unwrap_err();
        }
    }

    #[test]
    fn a_branch_of_another_repository_is_not_ours() {
        for (key, value) in [
            ("isCrossRepository", json!(true)),
            ("headRepository", json!({"name": "other"})),
            ("headRepositoryOwner", json!({"login": "stranger"})),
            ("headRepository", json!(null)),
        ] {
            let mut other = shown();
            other[key] = value;
            assert!(!ours().request(&["pr", "view"], other).unwrap().own, "{key}");
        }
    }

    #[test]
    fn the_number_of_a_new_request_is_read_from_its_address() {
        assert_eq!(ours().number_of("https://github.com/test/project/pull/12"), Some(12));
        for bad in ["https://github.com/test/project/pull/", "https://github.com/test/project/pull/0", "12", "x/pull/1"]
        {
            assert_eq!(ours().number_of(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_it_said_is_short_and_on_one_line() {
        assert_eq!(said(b"a\n\n  b https://u:p@h/x\n"), "a; b https://***@h/x");
        assert_eq!(said(b""), "it said nothing");
        assert_eq!(said(&[b'x'; 5000]).chars().count(), REPEATED);
    }
}
