//! A push, judged commit by commit: everything that is new to the other side, in batches of bounded size. References
//! that hold no history of the project (notes, captures, recovery refs) are not looked into.

use std::collections::HashMap;
use std::ops::ControlFlow;

use super::judge::{Candidate, Judge};
use super::{HookError, Result, Violation};
use crate::git::{Oid, Repo, Revisions};
use crate::package::Identity;

/// After how many violations the rest is not looked at any more.
const ENOUGH: usize = 20;

/// How many commits are judged with what is known of the ones before.
const BATCH: usize = 2048;

/// References with these prefixes hold no history of the project.
const UNJUDGED: [&str; 3] = ["refs/notes/", "refs/devlyn/", "refs/stash"];

/// A reference that moves: where it was and where it goes, as far as there is anything.
struct Move {
    name: String,
    old: Option<Oid>,
    new: Option<Oid>,
}

/// What the push that Git describes on the standard input of `pre-push` does and may not; `remote` and `url` are the
/// hook's arguments.
///
/// # Errors
/// Where the input is none, or a commit cannot be read.
pub fn judge_push(repo: &Repo, remote: &str, url: &str, input: &[u8]) -> Result<Vec<Violation>> {
    let mut moves = Vec::new();
    for line in text(input)?.lines() {
        // <local ref> <local id> <remote ref> <remote id>; the first may be any revision, spaces and all.
        let mut fields = line.rsplitn(4, ' ');
        let (Some(old), Some(name), Some(new)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(unexpected(line));
        };
        let old = id(old, line)?.filter(|old| matches!(repo.commit(*old), Ok(Some(_))));
        moves.push(Move { name: name.to_owned(), old, new: id(new, line)? });
    }
    // A remote that has a name has told what it has when it was last fetched from or pushed to; another place that
    // `pushurl` names has not.
    let fetched = repo.config(&format!("remote.{remote}.url")).is_some();
    let pushed = repo.config_values(&format!("remote.{remote}.pushurl"));
    let named = fetched && (pushed.is_empty() || repo.config(&format!("remote.{remote}.url")).as_deref() == Some(url));
    judge(repo, &moves, if named { vec![format!("--remotes={remote}")] } else { Vec::new() })
}

/// What the push that Git describes on the standard input of `pre-receive` does and may not.
///
/// # Errors
/// As [`judge_push`].
pub fn judge_received(repo: &Repo, input: &[u8]) -> Result<Vec<Violation>> {
    let mut moves = Vec::new();
    for line in text(input)?.lines() {
        let fields: Vec<&str> = line.splitn(3, ' ').collect();
        let [old, new, name] = fields[..] else { return Err(unexpected(line)) };
        moves.push(Move { name: name.to_owned(), old: id(old, line)?, new: id(new, line)? });
    }
    judge(repo, &moves, judged_before())
}

/// What the move of one reference that the arguments of `update` describe does and may not.
///
/// # Errors
/// As [`judge_push`].
pub fn judge_update(repo: &Repo, name: &str, old: &str, new: &str) -> Result<Vec<Violation>> {
    let moved = Move { name: name.to_owned(), old: id(old, old)?, new: id(new, new)? };
    judge(repo, &[moved], judged_before())
}

/// The history that a server has judged when it came: not what it took without a look.
fn judged_before() -> Vec<String> {
    UNJUDGED.iter().map(|prefix| format!("--exclude={prefix}*")).chain(["--all".to_owned()]).collect()
}

fn judge(repo: &Repo, moves: &[Move], not: Vec<String>) -> Result<Vec<Violation>> {
    let moves: Vec<&Move> = moves.iter().filter(|moved| moved.new.is_some() && holds_history(&moved.name)).collect();
    if moves.is_empty() {
        return Ok(Vec::new());
    }
    let mut tips = Vec::new();
    for id in moves.iter().filter_map(|moved| moved.new) {
        tips.extend(repo.peeled_commit(id)?);
    }
    let mut revisions: Vec<String> = moves.iter().filter_map(|moved| moved.new).map(|id| id.to_string()).collect();
    revisions.extend(moves.iter().filter_map(|moved| moved.old).map(|id| format!("^{id}")));
    let branches: Vec<(&str, Oid)> =
        moves.iter().filter_map(|moved| Some((moved.name.strip_prefix("refs/heads/")?, moved.new?))).collect();
    let mut found = Vec::new();
    let revisions = Revisions { revisions, not, first_parent: false };
    judge_history(repo, &tips, &branches, &revisions, |_, more| {
        found.extend(more);
        if found.len() < ENOUGH { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })?;
    Ok(found)
}

/// Judges every commit of `revisions` and hands what it does to `each`. `branches` are the branches (short name and
/// end) that they are on: what their owner may not is asked of the commits since the branch was made.
pub(super) fn judge_history(
    repo: &Repo,
    tips: &[Oid],
    branches: &[(&str, Oid)],
    revisions: &Revisions,
    mut each: impl FnMut(Oid, Vec<Violation>) -> ControlFlow<()>,
) -> Result<()> {
    let mut judge = Judge::later(repo, tips);
    let mut owned: HashMap<Oid, Identity> = HashMap::new();
    for (branch, end) in branches {
        let Some((identity, baseline)) = judge.owner(branch) else { continue };
        if repo.commit(baseline)?.is_none() {
            continue;
        }
        let own =
            Revisions { revisions: vec![end.to_string(), format!("^{baseline}")], not: vec![], first_parent: true };
        repo.each_commit(&own, |id| -> Result<_> {
            owned.insert(id, identity.clone());
            Ok(ControlFlow::Continue(()))
        })?;
    }
    let mut judged = 0;
    repo.each_commit(revisions, |id| -> Result<_> {
        let Some(commit) = repo.commit(id)? else { return Ok(ControlFlow::Continue(())) };
        judged += 1;
        if judged % BATCH == 0 {
            judge = Judge::later(repo, tips);
        }
        // The history of a shallow clone ends at commits whose parents are not here.
        let mut parents = Vec::new();
        for parent in commit.parents {
            parents.extend(repo.commit(parent)?.map(|parent| parent.id));
        }
        let owner = owned.get(&id).cloned();
        Ok(each(id, judge.judge(&Candidate { commit: Some(id), parents: &parents, tree: commit.tree, owner })?))
    })
}

/// Whether a reference with this name leads to history of the project.
fn holds_history(name: &str) -> bool {
    !UNJUDGED.iter().any(|prefix| name.starts_with(prefix))
}

fn text(input: &[u8]) -> Result<&str> {
    std::str::from_utf8(input).map_err(|_| HookError::Input("the names of the pushed refs are no UTF-8".to_owned()))
}

fn unexpected(line: &str) -> HookError {
    HookError::Input(format!("Git described the push in a way that is not known here: {line:?}"))
}

/// The id in `text`, `None` where it is all zeroes.
fn id(text: &str, line: &str) -> Result<Option<Oid>> {
    let id: Oid = text.parse().map_err(|_| unexpected(line))?;
    Ok((!id.is_null()).then_some(id))
}
