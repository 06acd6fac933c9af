//! What is agreed on before anything leaves this machine: the mode, the remote, the base. Reads the configuration and the
//! receipt, and changes nothing.

use super::{Result, TaskError, refuse};
use crate::forge::{RepositoryView, Target};
use crate::git::{Oid, Remote, Repo};
use crate::store::{Mode, Receipt};

/// The commit that merged the task, where one is on record.
#[must_use]
pub fn merge_commit(receipt: &Receipt) -> Option<Oid> {
    receipt.merge.as_ref()?.get("mergeCommit")?.get("oid")?.as_str()?.parse().ok()
}

/// How the task's request is brought to its end: as asked, as persisted, as configured, `auto`.
///
/// # Errors
/// Where the configuration holds anything but `auto` or `pr`, whatever was asked.
pub(super) fn mode(repo: &Repo, receipt: &Receipt, asked: Option<Mode>) -> Result<Mode> {
    // The repository's own configuration only: a mode is an agreement of those who work in it.
    let output = repo.git().args(["config", "--local", "-z", "--get", "devlyn.completionMode"]).output()?;
    let configured = match (output.code, output.stdout.strip_suffix(b"\0")) {
        (Some(0), Some(b"auto")) => Some(Mode::Auto),
        (Some(0), Some(b"pr")) => Some(Mode::Pr),
        (Some(1), _) => None,
        (Some(0), value) => {
            let value = String::from_utf8_lossy(value.unwrap_or_default()).into_owned();
            return refuse(format!(
                "devlyn.completionMode is {value:?}, and only auto and pr are modes; set one with `git config --local \
                 devlyn.completionMode auto`"
            ));
        }
        _ => return refuse(format!("devlyn.completionMode cannot be read: {}", output.line())),
    };
    Ok(asked.or(receipt.mode_override).or(configured).unwrap_or(Mode::Auto))
}

/// The remote of the receipt, which must still lead where it led at the allocation.
///
/// # Errors
/// Where it does not, or holds a secret.
pub(super) fn target_of<'a>(repo: &'a Repo, receipt: &Receipt, attended: bool) -> Result<(Remote<'a>, Target)> {
    let Some(name) = &receipt.remote else { return refuse("its receipt names no remote") };
    let remote = repo.remote(name)?.attended(attended);
    let target = Target::of(&remote)?;
    let same = match (&receipt.repository, target.repository()) {
        (Some(recorded), Some(found)) => recorded.eq_ignore_ascii_case(&found),
        (None, None) => receipt.remote_url.as_ref() == Some(&target.urls),
        (Some(_), None) | (None, Some(_)) => false,
    };
    if !same {
        let recorded = receipt.repository.as_deref().or(receipt.remote_url.as_ref().map(|urls| urls.literal.as_str()));
        return refuse(format!(
            "the remote {name} led to {} when the task was allocated and leads elsewhere now; put it back",
            recorded.unwrap_or("nothing")
        ));
    }
    Ok((remote, target))
}

/// Whether requests may go to `base`.
///
/// # Errors
/// Where it is not the repository's default branch.
pub fn base_is_default(view: &RepositoryView, base: &str) -> Result<()> {
    if view.default_branch == base {
        return Ok(());
    }
    Err(TaskError::Refused(format!(
        "{base} is not the default branch of the repository, which is {}; requests go to the default branch only",
        view.default_branch
    )))
}
