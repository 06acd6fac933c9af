//! Whether a branch landed on its base without a host that could tell: by ancestry, or by patches that are the same but
//! for where they stand. Reads only, and where it is not sure it says no.

use std::collections::BTreeMap;

use gix::bstr::BString;

use crate::git::{GitError, Oid, Repo, Result};

/// The text of a patch that is compared, in bytes; what is longer is not recognised.
const LONGEST: usize = 64 << 20;

/// How a branch landed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Landing {
    /// The commit on the base that brought it.
    pub commit: Oid,
    /// `ancestry`, `squash` or `rebase`.
    pub by: &'static str,
}

/// How the commit `tip` of a branch landed on a base whose head is `base`; `None` where that cannot be seen.
///
/// # Errors
/// Where Git cannot tell.
pub fn landed(repo: &Repo, base: Oid, tip: Oid) -> Result<Option<Landing>> {
    if repo.is_ancestor(tip, base)? {
        let range = [&format!("{tip}..{base}") as &str, "--first-parent", "--ancestry-path", "--reverse"];
        let commit = listed(repo, &range)?.first().map_or(tip, |(commit, _)| *commit);
        return Ok(Some(Landing { commit, by: "ancestry" }));
    }
    let merge_base = repo.git().args(["merge-base", &base.to_string(), &tip.to_string()]).output()?;
    if merge_base.code != Some(0) {
        return Ok(None);
    }
    let fork: Oid = merge_base.line().parse().map_err(GitError::Object)?;
    let mut candidates = Candidates::new(repo, fork, base)?;
    if let Some(commit) = candidates.find(fork, tip)? {
        return Ok(Some(Landing { commit, by: "squash" }));
    }
    let mut last = None;
    for (commit, parents) in listed(repo, &["--reverse", &format!("{fork}..{tip}")])? {
        let [parent] = parents[..] else { return Ok(None) };
        if repo.changes(parent, commit)?.is_empty() {
            continue;
        }
        last = candidates.find(parent, commit)?;
        if last.is_none() {
            return Ok(None);
        }
    }
    Ok(last.map(|commit| Landing { commit, by: "rebase" }))
}

/// What a patch makes of each path that it changes.
type Outcomes = BTreeMap<BString, Option<Oid>>;

/// The commits of a base that may hold what is looked for.
struct Candidates<'a> {
    repo: &'a Repo,
    /// Each with its parent and with what it makes of the paths that it changes.
    commits: Vec<(Oid, Oid, Outcomes)>,
}

impl<'a> Candidates<'a> {
    fn new(repo: &'a Repo, fork: Oid, base: Oid) -> Result<Self> {
        let mut commits = Vec::new();
        for (commit, parents) in listed(repo, &["--first-parent", "--no-merges", &format!("{fork}..{base}")])? {
            if let [parent] = parents[..] {
                commits.push((commit, parent, outcomes(repo, parent, commit)?));
            }
        }
        Ok(Self { repo, commits })
    }

    /// The commit whose patch is the one from `old` to `new`.
    fn find(&mut self, old: Oid, new: Oid) -> Result<Option<Oid>> {
        let wanted = outcomes(self.repo, old, new)?;
        if wanted.is_empty() {
            return Ok(None);
        }
        let mut patch = None;
        for (commit, parent, found) in &self.commits {
            if !found.keys().eq(wanted.keys()) {
                continue;
            }
            let wanted_patch = match &patch {
                Some(patch) => patch,
                None => patch.insert(essence(self.repo, old, new)?),
            };
            let Some((text, binary)) = wanted_patch else { return Ok(None) };
            // The text does not show what is in a binary file.
            if (!binary || *found == wanted)
                && essence(self.repo, *parent, *commit)?.is_some_and(|(found, _)| found == *text)
            {
                return Ok(Some(*commit));
            }
        }
        Ok(None)
    }
}

fn outcomes(repo: &Repo, old: Oid, new: Oid) -> Result<Outcomes> {
    Ok(repo.changes(old, new)?.into_iter().map(|change| (change.path, change.new)).collect())
}

/// A patch without what tells where it stands, and whether it changes a binary file; `None` where it is too long.
fn essence(repo: &Repo, old: Oid, new: Oid) -> Result<Option<(Vec<u8>, bool)>> {
    let patch = repo.patch(old, new, LONGEST)?;
    if patch.cut {
        return Ok(None);
    }
    let (mut text, mut binary) = (Vec::with_capacity(patch.text.len()), false);
    for line in patch.text.split_inclusive(|byte| *byte == b'\n') {
        binary |= line.starts_with(b"Binary files ");
        if line.starts_with(b"@@ ") {
            text.extend_from_slice(b"@@\n");
        } else if !line.starts_with(b"index ") {
            text.extend_from_slice(line);
        }
    }
    Ok(Some((text, binary)))
}

/// The commits that `git rev-list` lists, each with its parents.
fn listed(repo: &Repo, args: &[&str]) -> Result<Vec<(Oid, Vec<Oid>)>> {
    let output = repo.git().args(["rev-list", "--parents"]).args(args).run()?;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines()
        .map(|line| {
            let ids: Result<Vec<Oid>, String> = line.split(' ').map(str::parse).collect();
            let mut ids = ids.map_err(GitError::Object)?;
            let parents = ids.split_off(1.min(ids.len()));
            let commit = ids.pop().ok_or_else(|| GitError::Object("an empty line in a list of commits".to_owned()))?;
            Ok((commit, parents))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Git;

    struct Place {
        temp: tempfile::TempDir,
        repo: Repo,
    }

    impl Place {
        fn new() -> Self {
            let temp = tempfile::tempdir().unwrap();
            let init = Git::new(temp.path()).args(["init", "-q", "-b", "main"]);
            init.run().unwrap();
            let repo = Repo::at(temp.path()).unwrap();
            let place = Self { temp, repo };
            place.put("shared.txt", &(0..40).map(|n| format!("{n}\n")).collect::<String>());
            place.commit("base");
            place
        }

        fn git(&self, args: &[&str]) -> String {
            let git = self.repo.git().config("user.name=x").config("user.email=x@y").args(args);
            git.run().unwrap().line()
        }

        fn put(&self, name: &str, text: &str) {
            crate::store::write_bytes(&self.temp.path().join(name), text.as_bytes()).unwrap();
        }

        fn commit(&self, message: &str) -> Oid {
            self.git(&["add", "-A"]);
            self.git(&["commit", "-q", "--allow-empty", "-m", message]);
            self.head()
        }

        fn head(&self) -> Oid {
            self.git(&["rev-parse", "HEAD"]).parse().unwrap()
        }

        /// A task branch of two commits, and a base that went on in the same file.
        fn task(&self) -> Oid {
            self.git(&["checkout", "-q", "-b", "task"]);
            self.put("new.txt", "new\n");
            self.commit("one");
            self.put(
                "shared.txt",
                &(0..40).map(|n| format!("{n}\n")).collect::<String>().replace("\n30\n", "\nthirty\n"),
            );
            let tip = self.commit("two");
            self.git(&["checkout", "-q", "main"]);
            self.put("shared.txt", &format!("first\n{}", (0..40).map(|n| format!("{n}\n")).collect::<String>()));
            self.commit("meanwhile");
            tip
        }

        fn landed(&self, tip: Oid) -> Option<Landing> {
            landed(&self.repo, self.head(), tip).unwrap()
        }
    }

    #[test]
    fn what_did_not_land_is_not_taken_for_landed() {
        let place = Place::new();
        let tip = place.task();
        assert_eq!(place.landed(tip), None);
        place.put("new.txt", "other\n");
        place.commit("another one");
        assert_eq!(place.landed(tip), None);
    }

    #[test]
    fn a_merge_commit_is_found_behind_what_came_later() {
        let place = Place::new();
        let tip = place.task();
        place.git(&["merge", "-q", "--no-ff", "--no-edit", "task"]);
        let merge = place.head();
        place.put("later.txt", "later\n");
        place.commit("later");
        assert_eq!(place.landed(tip), Some(Landing { commit: merge, by: "ancestry" }));
    }

    #[test]
    fn a_branch_that_the_base_was_moved_to_brought_itself() {
        let place = Place::new();
        place.git(&["checkout", "-q", "-b", "task"]);
        place.put("new.txt", "new\n");
        let tip = place.commit("one");
        place.git(&["checkout", "-q", "main"]);
        place.git(&["merge", "-q", "--ff-only", "task"]);
        assert_eq!(place.landed(tip), Some(Landing { commit: tip, by: "ancestry" }));
    }

    #[test]
    fn a_squash_and_a_rebase_are_the_same_patches_elsewhere() {
        let place = Place::new();
        let tip = place.task();
        let before = place.head();
        place.git(&["merge", "-q", "--squash", "task"]);
        let squash = place.commit("squashed");
        assert_eq!(place.landed(tip), Some(Landing { commit: squash, by: "squash" }));
        place.git(&["reset", "-q", "--hard", &before.to_string()]);
        place.git(&["cherry-pick", "main..task"]);
        let rebased = place.head();
        assert_eq!(place.landed(tip), Some(Landing { commit: rebased, by: "rebase" }));
        place.git(&["reset", "-q", "--hard", "HEAD^"]);
        assert_eq!(place.landed(tip), None, "only its first commit is there");
    }

    #[test]
    fn a_binary_file_is_the_same_only_with_the_same_bytes() {
        let place = Place::new();
        place.git(&["checkout", "-q", "-b", "task"]);
        place.put("image", "\0one\n");
        let tip = place.commit("one");
        place.git(&["checkout", "-q", "main"]);
        place.put("image", "\0two\n");
        place.commit("looks alike");
        assert_eq!(place.landed(tip), None);
        place.git(&["reset", "-q", "--hard", "HEAD^"]);
        place.put("between", "x\n");
        place.commit("between");
        place.put("image", "\0one\n");
        let same = place.commit("is the same");
        assert_eq!(place.landed(tip).unwrap().commit, same);
    }
}
