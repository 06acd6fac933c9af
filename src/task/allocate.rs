//! Allocation: a branch, a worktree and a receipt that a task owns. Nothing that exists is ever adopted.

use std::path::{Component, Path, PathBuf};

use super::{Reconciled, Result, accept, reconcile, refuse};
use crate::forge::Target;
use crate::git::{Oid, Repo};
use crate::os::disk::flush_below;
use crate::os::tree::identity;
use crate::package::{Key, is_branch_name};
use crate::shell;
use crate::store::{
    Allocation, From, Layout, Lock, Receipt, ReceiptDir, StoreError, Verdict, is_there, make_dir, sync_dir,
};

/// Where the branch starts.
#[derive(Debug, Clone)]
pub enum Where {
    /// Work for a remote.
    Remote {
        /// The repository that the remote must be; needed where its host has names for such.
        repository: Option<String>,
        /// This commit; without one, the freshly fetched head of the base.
        start: Option<Oid>,
    },
    /// Local work, at this commit.
    Local(Oid),
    /// Local work, at the accepted source of the receipt at this path.
    From(PathBuf),
}

/// What is asked for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The task's identity.
    pub task: String,
    /// The branch to own.
    pub branch: String,
    /// The base branch's name.
    pub base: String,
    /// The remote's name.
    pub remote: String,
    /// Where the worktree shall stand.
    pub worktree: PathBuf,
    /// Where the branch starts.
    pub start: Where,
    /// Receipts that are not looked at for what became of them: something is wrong with them.
    pub except: Vec<ReceiptDir>,
    /// Somebody is at the terminal and can be asked for a password.
    pub attended: bool,
}

/// What was made.
#[derive(Debug)]
pub struct Allocated {
    /// The receipt's directory.
    pub dir: ReceiptDir,
    /// The receipt.
    pub receipt: Receipt,
    /// The commit that the worktree has checked out.
    pub start: Oid,
    /// Earlier tasks that were cleaned on the way.
    pub reconciled: Vec<Reconciled>,
}

/// Makes branch, worktree, scratch and receipt. The worktree begins at the commit that `begin` makes of the baseline: the
/// baseline itself, or inputs on it that nobody has written into yet.
///
/// # Errors
/// Where anything is in the way; then nothing was changed.
pub fn allocate(
    repo: &Repo,
    layout: &Layout,
    request: &Request,
    begin: &dyn Fn(Oid) -> Result<Oid>,
) -> Result<Allocated> {
    let key = check_names(request)?;
    check_branch(repo, &request.branch)?;
    prospective(repo, &request.worktree)?;
    let mut target = None;
    let (baseline, from) = match &request.start {
        Where::Local(baseline) => (*baseline, None),
        Where::From(path) => {
            let from = predecessor(repo, layout, path)?;
            (from.source_sha, Some(from))
        }
        Where::Remote { repository, start } => {
            let dir = layout.receipt_dir(&key);
            if is_there(dir.path())? {
                return occupied(&dir);
            }
            let (found, baseline) = remote_baseline(repo, request, repository.as_deref(), *start)?;
            target = Some(found);
            (baseline, None)
        }
    };
    let start = begin(baseline)?;
    // Two `git worktree add` at once race on files that Git shares between them.
    let lock = Lock::wait(&layout.worktree_lock())?;
    check_branch(repo, &request.branch)?;
    let worktree = prospective(repo, &request.worktree)?;
    let dir = layout.receipt_dir(&key);
    let receipt = Receipt {
        id: key.as_str().to_owned(),
        task: request.task.clone(),
        branch: request.branch.clone(),
        base: request.base.clone(),
        repository: target.as_ref().and_then(Target::repository),
        remote: Some(request.remote.clone()),
        remote_url: target.as_ref().map(|target| target.urls.clone()),
        recovery_ref: key.recovery_ref(),
        common_gitdir: layout.common().to_owned(),
        anchor: repo.work_dir().to_owned(),
        worktree,
        worktree_gitdir: None,
        worktree_identity: None,
        scratch_identity: None,
        linked: true,
        baseline,
        allocated_from: from,
        local_only: target.is_none(),
        allocation: Allocation::Allocating,
        acceptance: None,
        acceptance_digest: None,
        source_sha: None,
        publish_sha: None,
        files: None,
        product: None,
        queue: None,
        delivery: None,
        mode_override: None,
        pushed: false,
        pr_number: None,
        pr_url: None,
        merge: None,
        writers_released: false,
        scratch_cleanup: None,
        workspace_cleanup: None,
        status: None,
        other: std::collections::BTreeMap::new(),
    };
    for path in [&receipt.common_gitdir, &receipt.anchor, &receipt.worktree] {
        if path.to_str().is_none() {
            return refuse(format!("{} is not UTF-8, and a receipt can only name paths that are", path.display()));
        }
    }
    let receipt = own(repo, &dir, receipt, start)?;
    drop(lock);
    let reconciled = if target.is_some() {
        let except: Vec<ReceiptDir> = request.except.iter().cloned().chain([dir.clone()]).collect();
        reconcile::reconcile(repo, layout, &except, request.attended)
    } else {
        Vec::new()
    };
    Ok(Allocated { dir, receipt, start, reconciled })
}

/// Where a remote leads, and the commit that work for it starts at.
fn remote_baseline(
    repo: &Repo,
    request: &Request,
    repository: Option<&str>,
    start: Option<Oid>,
) -> Result<(Target, Oid)> {
    let remote = repo.remote(&request.remote)?.attended(request.attended);
    let target = Target::of(&remote)?;
    match (repository, target.repository()) {
        (Some(asked), Some(found)) if !asked.eq_ignore_ascii_case(&found) => {
            return refuse(format!("the remote {} is {found}, and not the repository that was named", request.remote));
        }
        (None, Some(found)) => {
            return refuse(format!(
                "work for a remote names its repository, so that nothing goes to another one; the remote {} is {found}: \
                 give --repository {found}",
                request.remote
            ));
        }
        (Some(_), None) => {
            return refuse(format!("the remote {} has no repository by that name; leave it out", request.remote));
        }
        (Some(_), Some(_)) | (None, None) => {}
    }
    let baseline = match start {
        Some(start) => start,
        None => remote.fetch(&request.base)?,
    };
    Ok((target, baseline))
}

fn occupied<T>(dir: &ReceiptDir) -> Result<T> {
    refuse(format!("{} is there already; an allocation is never taken over", dir.path().display()))
}

/// Writes the receipt, makes the worktree at `start`, and writes the receipt again as owned.
fn own(repo: &Repo, dir: &ReceiptDir, mut receipt: Receipt, start: Oid) -> Result<Receipt> {
    let above = dir.path().parent().unwrap_or(dir.path());
    make_dir(above)?;
    if let Err(error) = std::fs::create_dir(dir.path()) {
        if error.kind() == std::io::ErrorKind::AlreadyExists {
            return occupied(dir);
        }
        return Err(StoreError::io(dir.path())(error).into());
    }
    std::fs::create_dir(dir.scratch()).map_err(StoreError::io(&dir.scratch()))?;
    receipt.scratch_identity = Some([pair(&dir.scratch())?, pair(dir.path())?]);
    receipt.write(dir)?;
    sync_dir(above)?;
    let parent = receipt.worktree.parent().unwrap_or(&receipt.worktree);
    if let Err(error) = std::fs::create_dir_all(parent).map_err(StoreError::io(parent)) {
        withdraw(dir);
        return Err(error.into());
    }
    let checkout = match repo.add_worktree(&receipt.worktree, &receipt.branch, receipt.baseline, start) {
        Ok(checkout) => checkout,
        Err(error) => {
            let nothing =
                !is_there(&receipt.worktree)? && repo.resolve(&format!("refs/heads/{}", receipt.branch))?.is_none();
            if nothing {
                withdraw(dir);
                return Err(error.into());
            }
            return refuse(format!(
                "{error}; where a post-checkout hook failed, put it right; `git devlyn recover {}` shows and removes what \
                 was made",
                shell::line([&receipt.task])
            ));
        }
    };
    let git_dir = checkout.git_dir()?;
    receipt.worktree_identity = Some([pair(&receipt.worktree)?, pair(&git_dir)?]);
    checkout.unlock()?;
    // Git flushes no worktree, and whoever reads the receipt takes it for whole.
    flush_below(&[&receipt.worktree, &git_dir]).map_err(|error| StoreError::io(&error.path)(error.source))?;
    receipt.worktree_gitdir = Some(git_dir);
    receipt.allocation = Allocation::Owned;
    receipt.write(dir)?;
    Ok(receipt)
}

/// Takes back what a refused allocation wrote, all of which is its own.
fn withdraw(dir: &ReceiptDir) {
    let _ = std::fs::remove_file(dir.receipt());
    let _ = std::fs::remove_dir(dir.scratch());
    let _ = std::fs::remove_dir(dir.path());
}

fn pair(path: &Path) -> Result<(u64, u64)> {
    Ok(identity(path).map_err(StoreError::io(path))?)
}

/// The accepted result at `path` that a new task may start from.
fn predecessor(repo: &Repo, layout: &Layout, path: &Path) -> Result<From> {
    let dir = Receipt::addressed(layout, path)?;
    let _lock = Lock::at_once(&dir.lock())?;
    let receipt = Receipt::owned(layout, &dir)?;
    let (Some(Verdict::Accepted), Some(source), Some(publish)) =
        (receipt.verdict(), receipt.source_sha, receipt.publish_sha)
    else {
        return refuse(format!("{} has no accepted result to start from", dir.receipt().display()));
    };
    if repo.resolve(&receipt.recovery_ref)? != Some(publish) || !repo.is_ancestor(source, publish)? {
        return refuse(format!("{} is not where {} says", receipt.recovery_ref, dir.receipt().display()));
    }
    accept::intact(repo, &dir, &receipt)?;
    Ok(From { receipt: receipt.id, source_sha: source })
}

fn check_names(request: &Request) -> Result<Key> {
    if request.task.trim().is_empty() {
        return refuse("a task has a name");
    }
    for name in [&request.branch, &request.base] {
        if !is_branch_name(name) {
            return refuse(format!("{name:?} is no branch name that Git takes"));
        }
    }
    if request.branch == request.base || matches!(request.branch.as_str(), "main" | "master") {
        return refuse(format!("{} is a base branch; a task owns a branch of its own", request.branch));
    }
    Ok(Key::of_branch(&request.branch))
}

/// The branch must be free, and so must every name that Git cannot keep beside it.
fn check_branch(repo: &Repo, branch: &str) -> Result<()> {
    let taken = |name: &str| {
        let beside = if name == branch { String::new() } else { format!(", and Git keeps no {branch} beside it") };
        let away = shell::line(["git", "branch", "-m", name]);
        refuse(format!(
            "the branch {name} is there already{beside}; nothing that exists is taken over: move it away with \
             `{away} <another name>`"
        ))
    };
    for (at, _) in branch.match_indices('/').chain([(branch.len(), "")]) {
        let name = &branch[..at];
        if repo.resolve(&format!("refs/heads/{name}"))?.is_some() {
            return taken(name);
        }
    }
    match repo.refs_below(&format!("refs/heads/{branch}/"))?.keys().next() {
        Some(name) => taken(name.trim_start_matches("refs/heads/")),
        None => Ok(()),
    }
}

/// Where a worktree would stand, absolute and without links, if nothing is in its way.
///
/// # Errors
/// Where it exists, or lies inside or around a registered worktree or the repository's own files.
pub fn prospective(repo: &Repo, path: &Path) -> Result<PathBuf> {
    let path = std::path::absolute(path).map_err(StoreError::io(path))?;
    if is_there(&path)? {
        return refuse(format!("{} is there already; a worktree is made in a place of its own", path.display()));
    }
    let nearest = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(&path);
    let real = std::fs::canonicalize(nearest).map_err(StoreError::io(nearest))?;
    if !real.is_dir() {
        return refuse(format!("{} is no directory, so nothing can stand below it", real.display()));
    }
    let rest = path.strip_prefix(nearest).unwrap_or(Path::new(""));
    if rest.components().any(|part| part == Component::ParentDir) {
        return refuse(format!("{} passes `..` behind a directory that is not there", path.display()));
    }
    let path = real.join(rest);
    for other in repo.worktree_paths()?.into_iter().chain([repo.common_dir().to_owned()]) {
        if path.starts_with(&other) || other.starts_with(&path) {
            return refuse(format!("{} lies inside or around {}", path.display(), other.display()));
        }
    }
    Ok(path)
}
