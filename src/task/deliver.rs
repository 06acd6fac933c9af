//! Delivery of an accepted task: published, requested, merged by its repository's own rules. Each step looks at the world
//! first, does what is missing, and writes into the receipt what it did before the next one begins.

use std::time::Duration;

use super::policy::{base_is_default, merge_commit, mode, target_of};
use super::{Completion, Result, refuse, summary};
use crate::forge::{Forge, MergeRequest, RepositoryView, Said, State, Target, landed};
use crate::git::{Oid, Remote, Repo};
use crate::json::{Value, json};
use crate::os::tree;
use crate::store::{Delivery, Mode, Receipt, ReceiptDir, unchanged};

/// How often a host is looked at before what was done there is taken for undone: it may answer what was.
const LOOKS: u32 = 3;
/// How long it gets between two looks.
const PAUSE: Duration = Duration::from_millis(300);

/// Where a delivery stands.
#[derive(Debug)]
pub(super) struct Outcome {
    /// `PR`, `PENDING` or `COMPLETE`.
    pub(super) delivery: Delivery,
    /// Why a merge was refused.
    pub(super) merge_refused: Option<String>,
    /// The head of the base on the remote, where it was fetched just now.
    pub(super) base: Option<Oid>,
}

impl Outcome {
    fn of(delivery: Delivery) -> Self {
        Self { delivery, merge_refused: None, base: None }
    }
}

/// Takes the delivery of a bound, accepted task as far as it goes.
///
/// # Errors
/// Where something is not as it must be; what was done is on record.
pub(super) fn deliver(repo: &Repo, dir: &ReceiptDir, receipt: &mut Receipt, asked: &Completion) -> Result<Outcome> {
    let Some(publish) = receipt.publish_sha else {
        return refuse("nothing is bound that could be published; accept a result first");
    };
    if receipt.delivery == Some(Delivery::Complete) && merge_commit(receipt).is_some() {
        return Ok(Outcome::of(Delivery::Complete));
    }
    let mode = mode(repo, receipt, asked.mode)?;
    let (remote, target) = target_of(repo, receipt, asked.attended)?;
    if asked.mode.is_some() && receipt.mode_override != asked.mode {
        receipt.mode_override = asked.mode;
        receipt.write(dir)?;
    }
    let mut task = Task { repo, dir, receipt, remote, publish };
    match target.forge() {
        Some(forge) => task.by_request(forge.as_ref(), mode),
        None => task.by_anybody(),
    }
}

/// Whether what an earlier task published was merged; asks, and changes nothing of it.
///
/// # Errors
/// Where nobody could be asked.
pub(super) fn is_merged(remote: &Remote<'_>, target: &Target, receipt: &Receipt) -> Result<bool> {
    match (target.forge(), receipt.pr_number, receipt.publish_sha) {
        (Some(forge), Some(number), _) => Ok(forge.view(number)?.state == State::Merged),
        (None, _, Some(publish)) => Ok(landed(remote.repo(), remote.fetch(&receipt.base)?, publish)?.is_some()),
        (Some(_), None, _) | (None, _, None) => Ok(false),
    }
}

/// A task on its way.
struct Task<'a> {
    repo: &'a Repo,
    dir: &'a ReceiptDir,
    receipt: &'a mut Receipt,
    remote: Remote<'a>,
    publish: Oid,
}

impl Task<'_> {
    fn by_request(&mut self, forge: &dyn Forge, mode: Mode) -> Result<Outcome> {
        let known = match self.receipt.pr_number {
            Some(number) => Some(self.own(forge.view(number)?)?),
            None => self.find(forge)?,
        };
        match &known {
            Some(request) if request.state == State::Merged => return self.merged(request),
            Some(request) if request.state == State::Closed => return closed(request),
            Some(_) | None => {}
        }
        let mut view = None;
        let request = match known {
            Some(request) => {
                self.evidence_unchanged()?;
                self.still_published()?;
                request
            }
            None => {
                view = Some(self.deliverable(forge)?);
                self.evidence_unchanged()?;
                self.publish()?;
                self.open(forge)?
            }
        };
        self.record(&request)?;
        match (request.state, mode) {
            (State::Merged, _) => self.merged(&request),
            (State::Closed, _) => closed(&request),
            (State::Open, Mode::Pr) => self.leave_to_a_person(forge, &request),
            (State::Open, Mode::Auto) if request.auto_merge => self.settled(Delivery::Pending),
            (State::Open, Mode::Auto) => {
                let view = match view {
                    Some(view) => view,
                    None => self.deliverable(forge)?,
                };
                self.ask_for_merge(forge, &view, &request)
            }
        }
    }

    /// What must hold before anything is published.
    fn deliverable(&self, forge: &dyn Forge) -> Result<RepositoryView> {
        let view = forge.repository()?;
        base_is_default(&view, &self.receipt.base)?;
        if self.receipt.branch == view.default_branch {
            return refuse(format!("{} is the default branch; a task publishes its own", view.default_branch));
        }
        Ok(view)
    }

    /// The request, where it is the task's own: of its branch and its base, at its commit.
    fn own(&self, request: MergeRequest) -> Result<MergeRequest> {
        let receipt = &self.receipt;
        let why = if !request.own {
            "is of a branch of another repository".to_owned()
        } else if request.head != receipt.branch {
            format!("is of the branch {:?}, and not of {}", request.head, receipt.branch)
        } else if request.base != receipt.base {
            format!("goes to {:?}, and not to {}", request.base, receipt.base)
        } else if request.commit != self.publish {
            format!("is at {}, and not at the accepted {}; nothing but that is merged", request.commit, self.publish)
        } else {
            return Ok(request);
        };
        Err(crate::forge::ForgeError::Other { url: request.url, why }.into())
    }

    /// The task's request, where there is one that no receipt names yet.
    fn find(&self, forge: &dyn Forge) -> Result<Option<MergeRequest>> {
        // What was published before may have a request that the host does not list at once.
        let looks = if self.receipt.pushed { 2 } else { 1 };
        for look in 0..looks {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            if let Some(request) = self.pick(forge.find(&self.receipt.branch)?)? {
                return Ok(Some(request));
            }
        }
        Ok(None)
    }

    /// The task's own among the requests of its branch. An older one of another commit that has ended is none of ours.
    fn pick(&self, mut requests: Vec<MergeRequest>) -> Result<Option<MergeRequest>> {
        let ours = |request: &MergeRequest| request.base == self.receipt.base && request.commit == self.publish;
        let rank = |request: &MergeRequest| match request.state {
            State::Merged => 0,
            State::Open => 1,
            State::Closed => 2,
        };
        requests.sort_by_key(|request| (!ours(request), rank(request), std::cmp::Reverse(request.number)));
        match requests.into_iter().find(|request| ours(request) || request.state == State::Open) {
            Some(request) if request.state == State::Closed => closed(&request),
            Some(request) => self.own(request).map(Some),
            None => Ok(None),
        }
    }

    /// Until it is merged, the worktree is the task's and holds the evidence as it was bound.
    fn evidence_unchanged(&self) -> Result<()> {
        let receipt = &self.receipt;
        let place = &receipt.worktree;
        let recorded = receipt.worktree_identity.map(|[id, _]| id);
        if recorded.is_none() || tree::identity(place).ok() != recorded {
            return refuse(format!("{} is not the worktree that was allocated; bring that one back", place.display()));
        }
        Ok(unchanged(place, &receipt.files.clone().unwrap_or_default())?)
    }

    fn still_published(&mut self) -> Result<()> {
        let branch = &self.receipt.branch;
        match self.remote.head(branch)? {
            Some(at) if at == self.publish => {
                self.receipt.pushed = true;
                Ok(())
            }
            Some(at) => self.moved(at),
            None => self.vanished(),
        }
    }

    fn moved(&self, at: Oid) -> Result<()> {
        refuse(format!(
            "{} on {} is at {at}, and not at the accepted {}; it is never overwritten",
            self.receipt.branch,
            self.remote.name(),
            self.publish
        ))
    }

    fn vanished(&self) -> Result<()> {
        refuse(format!(
            "{} was published to {} and is gone there; it is not published again",
            self.receipt.branch,
            self.remote.name()
        ))
    }

    /// Publishes the accepted commit where it is not published yet.
    fn publish(&mut self) -> Result<()> {
        let branch = self.receipt.branch.clone();
        match self.remote.head(&branch)? {
            Some(at) if at == self.publish => {}
            Some(at) => return self.moved(at),
            None if self.receipt.pushed => return self.vanished(),
            None => {
                let published = self.remote.publish(&branch, self.publish);
                // A connection may break after its effect, so the remote is asked and not the command.
                match (self.remote.head(&branch)?, published) {
                    (Some(at), _) if at == self.publish => {}
                    (Some(at), _) => return self.moved(at),
                    (None, Err(error)) => return Err(error.into()),
                    (None, Ok(())) => return refuse(format!("{branch} was published and is not there")),
                }
            }
        }
        self.receipt.pushed = true;
        Ok(self.receipt.write(self.dir)?)
    }

    /// Opens the request and returns it as the host shows it.
    fn open(&self, forge: &dyn Forge) -> Result<MergeRequest> {
        let said = forge.open(&summary::opening(self.dir, self.receipt))?;
        for look in 0..LOOKS {
            if look > 0 {
                std::thread::sleep(PAUSE);
            }
            if let Some(request) = self.pick(forge.find(&self.receipt.branch)?)? {
                return Ok(request);
            }
            if let Some(number) = said.number {
                return self.own(forge.view(number)?);
            }
        }
        refuse(format!("no request could be opened: {}", complaint(said)))
    }

    fn record(&mut self, request: &MergeRequest) -> Result<()> {
        let url = Some(&request.url);
        if self.receipt.pr_number != Some(request.number) || self.receipt.pr_url.as_ref() != url {
            self.receipt.pr_number = Some(request.number);
            self.receipt.pr_url = url.cloned();
            self.receipt.delivery = Some(Delivery::Pr);
            self.receipt.write(self.dir)?;
        }
        Ok(())
    }

    fn settled(&mut self, delivery: Delivery) -> Result<Outcome> {
        self.receipt.delivery = Some(delivery);
        self.receipt.write(self.dir)?;
        Ok(Outcome::of(delivery))
    }

    fn leave_to_a_person(&mut self, forge: &dyn Forge, request: &MergeRequest) -> Result<Outcome> {
        if !request.auto_merge {
            return self.settled(Delivery::Pr);
        }
        let said = forge.cancel(request.number)?;
        let seen = self.watch(forge, request.number, |request| !request.auto_merge)?;
        if seen.state == State::Merged {
            return self.merged(&seen);
        }
        if seen.auto_merge {
            return refuse(format!("the pending merge of {} could not be taken back: {}", seen.url, complaint(said)));
        }
        self.settled(Delivery::Pr)
    }

    fn ask_for_merge(&mut self, forge: &dyn Forge, view: &RepositoryView, request: &MergeRequest) -> Result<Outcome> {
        if !view.merge_commits {
            let refused = "the repository allows no merge commits, so a person merges it by the way that it allows";
            let outcome = self.settled(Delivery::Pr)?;
            return Ok(Outcome { merge_refused: Some(refused.to_owned()), ..outcome });
        }
        let said = forge.merge(request.number, self.publish)?;
        let seen = self.watch(forge, request.number, |request| request.auto_merge || request.state != State::Open)?;
        match seen.state {
            State::Merged => self.merged(&seen),
            State::Closed => closed(&seen),
            State::Open if seen.auto_merge => self.settled(Delivery::Pending),
            State::Open => {
                let outcome = self.settled(Delivery::Pr)?;
                Ok(Outcome { merge_refused: Some(complaint(said)), ..outcome })
            }
        }
    }

    /// The task's own request as it is shown once `done` holds of it, or in the end.
    fn watch(&self, forge: &dyn Forge, number: u64, done: impl Fn(&MergeRequest) -> bool) -> Result<MergeRequest> {
        let mut look = 1;
        loop {
            let seen = self.own(forge.view(number)?)?;
            if look == LOOKS || done(&seen) {
                return Ok(seen);
            }
            look += 1;
            std::thread::sleep(PAUSE);
        }
    }

    /// Believes the host's record of the merge where its commit is on the base.
    fn merged(&mut self, request: &MergeRequest) -> Result<Outcome> {
        let Some(commit) = request.merge_commit else {
            return refuse(format!("{} is shown as merged, and no commit as what merged it", request.url));
        };
        let base = self.remote.fetch(&self.receipt.base)?;
        if self.repo.commit(commit)?.is_none() || !self.repo.is_ancestor(commit, base)? {
            return refuse(format!(
                "{} is shown as merged by {commit}, which is not on {} ({base})",
                request.url, self.receipt.base
            ));
        }
        self.receipt.pushed = true;
        self.receipt.pr_number = Some(request.number);
        self.receipt.pr_url = Some(request.url.clone());
        self.receipt.merge = Some(request.raw.clone());
        Ok(Outcome { base: Some(base), ..self.settled(Delivery::Complete)? })
    }

    /// Publishes, and waits until somebody merged by whatever means.
    fn by_anybody(&mut self) -> Result<Outcome> {
        let base = self.remote.fetch(&self.receipt.base)?;
        if let Some(landing) = landed(self.repo, base, self.publish)? {
            let merge = json!({
                "state": "MERGED", "mergeCommit": {"oid": landing.commit}, "recognisedBy": landing.by,
                "headRefName": self.receipt.branch, "headRefOid": self.publish, "baseRefName": self.receipt.base,
            });
            self.receipt.merge = if let Value::Object(merge) = merge { Some(merge) } else { None };
            return Ok(Outcome { base: Some(base), ..self.settled(Delivery::Complete)? });
        }
        self.evidence_unchanged()?;
        self.publish()?;
        self.settled(Delivery::Pr)
    }
}

fn closed<T>(request: &MergeRequest) -> Result<T> {
    refuse(format!("its request {} was closed; open it again, or plan the work as a new task", request.url))
}

fn complaint(said: Said) -> String {
    said.complaint.unwrap_or_else(|| "the host said that it was done, and does not show it".to_owned())
}
