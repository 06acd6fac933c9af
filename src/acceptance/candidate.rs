//! What must hold of a candidate before it is checked, and still after: it is the head of the owned branch, checked
//! out there and clean, and lies on inputs that it has left as they were.

use std::path::Path;

use super::{AcceptanceError, Result, listed};
use crate::exchange::EVIDENCE;
use crate::git::{Checkout, Head, Oid, Repo, shown};
use crate::package::LoopId;
use crate::queue::LEGACY_QUEUE;

/// The owned worktree, and what a candidate in it must lie on.
pub(super) struct Candidate<'a> {
    repo: &'a Repo,
    checkout: Checkout,
    branch: &'a str,
    inputs: Oid,
    loop_id: &'a LoopId,
}

/// The repository as the worktree at `path` sees it.
///
/// # Errors
/// Where no worktree stands there: what Git would find further up is somebody else's.
pub(super) fn open_worktree(path: &Path) -> Result<Repo> {
    let wrong = |why: String| AcceptanceError::Worktree { path: path.to_owned(), why };
    let real = std::fs::canonicalize(path).map_err(|error| wrong(error.to_string()))?;
    let repo = Repo::at(&real)?;
    if repo.work_dir() != real {
        return Err(wrong(format!("is no worktree of its own, but a part of {}", repo.work_dir().display())));
    }
    Ok(repo)
}

impl<'a> Candidate<'a> {
    /// The candidate that the worktree of `repo` holds on the branch `branch`.
    pub(super) fn new(repo: &'a Repo, branch: &'a str, inputs: Oid, loop_id: &'a LoopId) -> Self {
        Self { repo, checkout: repo.checkout(repo.work_dir()), branch, inputs, loop_id }
    }

    /// The head of the owned branch.
    ///
    /// # Errors
    /// Where the branch is gone: then there is nothing that a result could be bound to.
    pub(super) fn head(&self) -> Result<Oid> {
        self.repo.resolve(&format!("refs/heads/{}", self.branch))?.ok_or_else(|| AcceptanceError::Worktree {
            path: self.repo.work_dir().to_owned(),
            why: format!("its branch {} is gone", self.branch),
        })
    }

    /// The commit that `source` names, or why it is no candidate that can be checked.
    ///
    /// # Errors
    /// Where Git cannot tell.
    pub(super) fn examine(&self, source: &str) -> Result<std::result::Result<Oid, Vec<String>>> {
        let head = self.head()?;
        let Some(commit) = self.repo.exact_commit(source)? else {
            let source: String = source.chars().take(80).collect();
            return Ok(Err(vec![format!("the source {source:?} is not the whole id of a commit of this repository")]));
        };
        let mut problems = Vec::new();
        if commit != head {
            problems.push(format!("the source {commit} is not the head of {}, which is {head}", self.branch));
        }
        problems.extend(self.elsewhere()?);
        if !self.repo.is_ancestor(self.inputs, commit)? {
            problems.push(format!("the source {commit} does not descend from its inputs {}", self.inputs));
        } else {
            if let Some(edited) = self.edited(commit)? {
                problems.push(format!("the source changes what it was given: {edited}"));
            }
            if let Some(holder) = self.with_evidence(commit)? {
                problems.push(format!("the commit {holder} holds {EVIDENCE}, which is evidence and never committed"));
            }
        }
        if let Some(dirty) = self.dirty()? {
            problems.push(format!("the worktree holds what is not committed: {dirty}"));
        }
        Ok(if problems.is_empty() { Ok(commit) } else { Err(problems) })
    }

    /// How the candidate is not what it was before its checks.
    ///
    /// # Errors
    /// Where Git cannot tell.
    pub(super) fn moved(&self, source: Oid) -> Result<Vec<String>> {
        let mut problems = Vec::new();
        let head = self.head()?;
        if head != source {
            problems.push(format!(
                "the candidate moved while its checks ran: {} is at {head}, no longer at {source}",
                self.branch
            ));
        }
        problems.extend(self.elsewhere()?);
        if let Some(dirty) = self.dirty()? {
            problems.push(format!("the candidate was changed while its checks ran: {dirty}"));
        }
        Ok(problems)
    }

    /// What is checked out instead of the owned branch.
    fn elsewhere(&self) -> Result<Option<String>> {
        let found = match self.repo.head()? {
            Head::Branch(name, _) | Head::Unborn(name) if name == self.branch => return Ok(None),
            Head::Branch(name, _) | Head::Unborn(name) => format!("on the branch {name}"),
            Head::Detached(_) => "detached".to_owned(),
        };
        Ok(Some(format!("HEAD is {found}, not on {}", self.branch)))
    }

    /// The paths of the package and the queues that the candidate does not hold as its inputs do.
    fn edited(&self, source: Oid) -> Result<Option<String>> {
        let package = self.loop_id.directory();
        let mut same = true;
        for path in [package.as_str(), LEGACY_QUEUE] {
            same &= self.repo.entry(self.inputs, path)? == self.repo.entry(source, path)?;
        }
        if same {
            return Ok(None);
        }
        let below = format!("{package}/");
        let touched = |path: &[u8]| {
            path == LEGACY_QUEUE.as_bytes() || path == package.as_bytes() || path.starts_with(below.as_bytes())
        };
        let changes = self.repo.changes(self.inputs, source)?;
        let paths: Vec<String> =
            changes.iter().filter(|change| touched(&change.path)).map(|change| shown(change.path.as_ref())).collect();
        // What replaced a folder above them shows in none of their names.
        Ok(Some(if paths.is_empty() { package } else { listed(&paths) }))
    }

    /// A commit of the candidate, taken back since or not, that holds the folder of evidence as its inputs do not.
    fn with_evidence(&self, source: Oid) -> Result<Option<Oid>> {
        let given = self.repo.entry(self.inputs, EVIDENCE)?;
        for commit in self.repo.commits_between(self.inputs, source)? {
            let held = self.repo.entry(commit, EVIDENCE)?;
            if held.is_some() && held != given {
                return Ok(Some(commit));
            }
        }
        Ok(None)
    }

    fn dirty(&self) -> Result<Option<String>> {
        let mut paths: Vec<String> = self.checkout.dirty()?.iter().map(|path| shown(path.as_ref())).collect();
        // What is taken out of the index and still there is told twice.
        paths.dedup();
        if let Some(hidden) = self.checkout.hidden(self.repo)? {
            paths.push(format!("{} (Git was told not to look at it)", shown(hidden.as_ref())));
        }
        Ok((!paths.is_empty()).then(|| listed(&paths)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::json::json;

    /// What is wrong with the head of the branch as a candidate.
    fn problems(bench: &Bench) -> Vec<String> {
        examined(bench, &bench.head().to_string()).err().unwrap_or_default()
    }

    fn examined(bench: &Bench, source: &str) -> std::result::Result<Oid, Vec<String>> {
        let (repo, packet) = (open_worktree(&bench.tree()).unwrap(), bench.packet());
        let candidate = Candidate::new(&repo, &packet.branch, packet.inputs_sha, &packet.task.loop_id);
        candidate.examine(source).unwrap()
    }

    #[track_caller]
    fn assert_one(problems: &[String], facts: &[&str]) {
        assert_eq!(problems.len(), 1, "{problems:?}");
        assert!(facts.iter().all(|fact| problems[0].contains(fact)), "{problems:?}");
    }

    #[test]
    fn the_clean_head_of_the_owned_branch_is_one_and_so_are_the_inputs() {
        let bench = Bench::new(&json!({}));
        assert_eq!(examined(&bench, &bench.inputs().to_string()), Ok(bench.inputs()));
        bench.write(&[("ignored/a", "x"), (".devlyn/notes.txt", "x")]);
        let head = bench.commit(&[("t1.txt", "done")]);
        assert_eq!(examined(&bench, &head.to_string()), Ok(head));
        assert_one(&examined(&bench, &bench.inputs().to_string()).unwrap_err(), &["is not the head"]);
        let tree = bench.git(&["rev-parse", "HEAD^{tree}"]).line();
        for source in [&"f".repeat(40), &head.to_string()[..12], "HEAD", &tree, "", &"f".repeat(64)] {
            assert_one(&examined(&bench, source).unwrap_err(), &["not the whole id of a commit"]);
        }
    }

    #[test]
    fn what_is_not_committed_is_named() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "done")]);
        bench.write(&[("left over.txt", "x"), ("build/out/a.txt", "x"), ("old.txt", "edited")]);
        assert_one(&problems(&bench), &["left over.txt", "build/out/a.txt", "old.txt"]);
        bench.git(&["clean", "-fdq"]);
        bench.git(&["add", "-A"]);
        bench.git(&["update-index", "--force-remove", "t1.txt"]);
        assert_one(&problems(&bench), &["old.txt", "t1.txt"]);
        for number in 0..30 {
            bench.write(&[(format!("{number:02}").as_str(), "x")]);
        }
        assert_one(&problems(&bench), &["00, 01", "and 12 more"]);
    }

    #[test]
    fn what_git_was_told_not_to_look_at_is_not_committed() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "done")]);
        for (hide, show) in [("--assume-unchanged", "--no-assume-unchanged"), ("--skip-worktree", "--no-skip-worktree")]
        {
            bench.git(&["update-index", hide, "t1.txt"]);
            assert_one(&problems(&bench), &["t1.txt (Git was told not to look at it)"]);
            bench.git(&["update-index", show, "t1.txt"]);
            assert_eq!(problems(&bench), [""; 0]);
        }
    }

    #[test]
    fn a_folder_that_a_sparse_index_leaves_out_hides_nothing() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("t1.txt", "done"), ("left/out/a.txt", "x")]);
        bench.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "docs"]);
        assert_eq!(problems(&bench), [""; 0]);
        // What is ignored may stand in it, and what is not is named.
        bench.write(&[("left/out/ignored/a", "x")]);
        bench.git(&["config", "core.excludesFile", bench.tree().join(".devlyn/excluded").to_str().unwrap()]);
        bench.write(&[(".devlyn/excluded", "ignored/\n")]);
        assert_eq!(problems(&bench), [""; 0]);
        bench.write(&[("left/out/new.txt", "x")]);
        assert_one(&problems(&bench), &["left/out/new.txt"]);
    }

    #[test]
    fn head_is_on_the_owned_branch() {
        let bench = Bench::new(&json!({}));
        bench.git(&["checkout", "-q", "--detach"]);
        assert_one(&problems(&bench), &["HEAD is detached, not on devlyn/inv/t1"]);
        bench.git(&["checkout", "-q", "-b", "elsewhere"]);
        assert_one(&problems(&bench), &["HEAD is on the branch elsewhere"]);
    }

    #[test]
    fn it_descends_from_its_inputs() {
        let bench = Bench::new(&json!({}));
        bench.git(&["reset", "-q", "--hard", "HEAD~"]);
        bench.commit(&[("t1.txt", "done")]);
        assert_one(&problems(&bench), &["does not descend from its inputs"]);
    }

    #[test]
    fn evidence_is_in_no_commit_of_it_even_where_a_later_one_takes_it_back() {
        let bench = Bench::new(&json!({}));
        bench.write(&[(".devlyn/smuggled", "x")]);
        bench.git(&["add", "-f", ".devlyn/smuggled"]);
        bench.commit(&[("t1.txt", "done")]);
        assert_one(&problems(&bench), &["holds .devlyn, which is evidence"]);
        bench.git(&["rm", "-q", "-r", "--cached", ".devlyn"]);
        bench.git(&["commit", "-q", "-m", "Take it back"]);
        assert_one(&problems(&bench), &["holds .devlyn, which is evidence"]);
    }

    #[test]
    fn package_and_queues_stay_as_they_were_given() {
        for path in [
            "docs/specs/inv/meta.md",
            "docs/specs/inv/t1/spec.md",
            "docs/specs/inv/queue.md",
            "docs/specs/inv/more.md",
            "docs/specs/queue.md",
        ] {
            let bench = Bench::new(&json!({}));
            bench.commit(&[(path, "weaker"), ("docs/specs/other/meta.md", "x"), ("docs/specs/inventory.md", "x")]);
            assert_one(&problems(&bench), &[path]);
            assert!(!problems(&bench)[0].contains("other") && !problems(&bench)[0].contains("inventory"));
        }
        let bench = Bench::new(&json!({}));
        bench.git(&["rm", "-q", "docs/specs/inv/t1/spec.expected.json"]);
        bench.commit(&[]);
        assert_one(&problems(&bench), &["docs/specs/inv/t1/spec.expected.json"]);
        let bench = Bench::new(&json!({}));
        bench.git(&["rm", "-q", "-r", "docs"]);
        bench.commit(&[("docs", "a file now")]);
        assert_one(&problems(&bench), &["docs/specs/inv/meta.md"]);
        let bench = Bench::new(&json!({}));
        bench.git(&["update-index", "--chmod=+x", "docs/specs/inv/queue.md"]);
        bench.git(&["commit", "-q", "-m", "mode"]);
        bench.git(&["checkout", "-q", "--", "."]);
        assert_one(&problems(&bench), &["docs/specs/inv/queue.md"]);
    }

    #[test]
    fn a_worktree_that_is_gone_is_not_looked_for_further_up() {
        let bench = Bench::new(&json!({}));
        let inner = bench.tree().join("inner");
        crate::store::make_dir(&inner).unwrap();
        assert!(matches!(open_worktree(&inner), Err(AcceptanceError::Worktree { .. })));
        assert!(matches!(open_worktree(&bench.tree().join("none")), Err(AcceptanceError::Worktree { .. })));
    }
}
