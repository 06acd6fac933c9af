//! Every task with what its row, its receipt, its references and its packet say, held against each other. What they
//! contradict proves nothing: neither an acceptance nor a frontier.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsStr;
use std::rc::Rc;

use super::receipts::{Found, Receipts};
use super::{Captures, Held, Loop, Queue, Result, attempt};
use crate::exchange::{Attempt, LOOP_EVIDENCE, Packet};
use crate::git::{Oid, Repo};
use crate::package::{Identity, sha256_hex};
use crate::queue::{Mark, QueueFile, Row};
use crate::shell;
use crate::store::{Allocation, Files, Layout, ReceiptDir, Verdict, is_there, present, read_state};

/// How far an owned task has come. Each variant is what a crash behind the step before it leaves; the step that
/// follows does what is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// Worktree and branch are there; inputs or packet may be missing.
    Allocated,
    /// The packet is there; nothing runs and nothing was submitted.
    Packed,
    /// An execution began, and no end of it is known.
    Executing,
    /// There is a submission; nothing is bound.
    Submitted,
    /// The result is bound; no terminal commit is known.
    Bound,
    /// The terminal commit is there, not attached.
    Terminal,
    /// Attached; the delivery is not final.
    Attached,
    /// Delivered; a cleanup may be missing.
    Delivered,
}

/// What is known of a task.
#[derive(Debug, Clone)]
pub enum State {
    /// There is no receipt.
    Absent,
    /// Something stands where its receipt would; it waits for a person.
    Occupied(String),
    /// What is there contradicts itself; it waits for a person.
    Invalid {
        /// What was found, where, and how to inspect it.
        reason: String,
        /// Whether there is a receipt that claims the task.
        claimed: bool,
        /// Whether somebody may still write into its worktree.
        possible_writer: bool,
        /// Whether it carries its loop's package to the remote base.
        held: Option<Rc<Held>>,
    },
    /// It is owned, and everything agrees.
    Owned(Rc<Held>, Stage),
}

/// How a task came out, as far as evidence goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Not begun.
    Pending,
    /// Begun.
    Active,
    /// Accepted.
    Accepted,
    /// Failed.
    Failed,
    /// Never begun, because a prerequisite failed.
    Blocked,
}

impl Outcome {
    /// The word that stands in objects and reports.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Active => "active",
            Self::Accepted => "accepted",
            Self::Failed => "failed",
            Self::Blocked => "blocked",
        }
    }
}

/// A task.
#[derive(Debug, Clone)]
pub struct TaskView {
    /// Its identity.
    pub identity: Identity,
    /// Its row.
    pub row: Row,
    /// Which loop of the queue it belongs to.
    pub loop_index: usize,
    /// What is known of it.
    pub state: State,
    /// The prerequisite because of which it never runs, and the key of the receipt that proves it.
    pub blocked_by: Option<(Identity, Option<String>)>,
}

impl TaskView {
    /// How it came out.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match (&self.state, self.row.mark) {
            (State::Owned(held, _), _) => match held.receipt.verdict() {
                None => Outcome::Active,
                Some(Verdict::Accepted) => Outcome::Accepted,
                Some(Verdict::Failed) => Outcome::Failed,
            },
            (State::Invalid { claimed: true, .. }, _) => Outcome::Active,
            (State::Occupied(_) | State::Invalid { .. }, _) => Outcome::Pending,
            (State::Absent, _) if self.blocked_by.is_some() => Outcome::Blocked,
            (State::Absent, Mark::Pending) => Outcome::Pending,
            (State::Absent, Mark::Accepted) => Outcome::Accepted,
            (State::Absent, Mark::Failed) => Outcome::Failed,
        }
    }

    /// Its receipt, where it is owned and everything agrees.
    #[must_use]
    pub fn held(&self) -> Option<&Rc<Held>> {
        match &self.state {
            State::Owned(held, _) => Some(held),
            State::Absent | State::Occupied(_) | State::Invalid { .. } => None,
        }
    }

    /// How far it has come, where it is owned and everything agrees.
    #[must_use]
    pub fn stage(&self) -> Option<Stage> {
        match &self.state {
            State::Owned(_, stage) => Some(*stage),
            State::Absent | State::Occupied(_) | State::Invalid { .. } => None,
        }
    }

    /// Its accepted source, where a receipt proves it.
    #[must_use]
    pub fn accepted_source(&self) -> Option<Oid> {
        let held = self.held()?;
        (held.receipt.verdict() == Some(Verdict::Accepted)).then_some(held.receipt.source_sha).flatten()
    }
}

/// Everything that is known.
#[derive(Debug)]
pub struct View {
    /// The queue.
    pub queue: Queue,
    /// The tasks, in the order in which they are seen.
    pub tasks: Vec<TaskView>,
    /// Receipts that cannot be read, each with its path and why.
    pub unreadable: Vec<String>,
    /// The receipts that a task of this view was found to be wrong with: no other work may touch them.
    pub invalid_receipts: Vec<ReceiptDir>,
    index: HashMap<Identity, usize>,
    /// Which tasks are a loop's: its rows stand together, in one place of the order.
    ranges: HashMap<usize, std::ops::Range<usize>>,
}

impl View {
    /// Everything that is known in the repository, as the checkout of `repo` shows its queue.
    ///
    /// # Errors
    /// Where the queue itself is not known.
    pub fn read(repo: &Repo, layout: &Layout, captures: &Captures) -> Result<Self> {
        let queue = Queue::read(repo, layout, captures)?;
        let receipts = Receipts::read(layout)?;
        if let Some((loop_id, dir)) = receipts.of_unknown(repo, &queue)? {
            return Err(super::ViewError::Queue {
                place: layout.record(&loop_id).display().to_string(),
                why: format!(
                    "is gone, and {} is of a task of that loop; put it back from a backup",
                    dir.receipt().display()
                ),
            });
        }
        let refs = repo.refs_below("refs/devlyn/completed/")?;
        let evidence = Evidence { repo, layout, receipts: &receipts, refs: &refs };
        let (mut tasks, mut invalid_receipts, mut ranges) = (Vec::new(), Vec::new(), HashMap::new());
        for slot in &queue.slots {
            let crate::queue::Slot::Loop(loop_index) = *slot else { continue };
            let Some(found) = queue.loops.get(loop_index) else { continue };
            ranges.insert(loop_index, tasks.len()..tasks.len() + found.queue.rows.len());
            for row in &found.queue.rows {
                let state = evidence.state(found, row)?;
                if let State::Invalid { .. } = state {
                    invalid_receipts.extend(receipts.implicated(&row.identity));
                }
                let (identity, row) = (row.identity.clone(), row.clone());
                tasks.push(TaskView { identity, row, loop_index, state, blocked_by: None });
            }
        }
        let index = tasks.iter().enumerate().map(|(at, task)| (task.identity.clone(), at)).collect();
        let unreadable = receipts.unreadable();
        let mut view = Self { queue, tasks, unreadable, invalid_receipts, index, ranges };
        view.find_blocked();
        Ok(view)
    }

    /// The task of that identity.
    #[must_use]
    pub fn task(&self, identity: &Identity) -> Option<&TaskView> {
        self.index.get(identity).and_then(|at| self.tasks.get(*at))
    }

    /// The loop that a task belongs to.
    #[must_use]
    pub fn loop_of(&self, task: &TaskView) -> Option<&Loop> {
        self.queue.loops.get(task.loop_index)
    }

    /// The tasks of a loop, in the order of its rows.
    pub fn tasks_of(&self, loop_index: usize) -> impl Iterator<Item = &TaskView> {
        let range = self.ranges.get(&loop_index).cloned().unwrap_or_default();
        self.tasks.get(range).unwrap_or_default().iter()
    }

    /// Marks the tasks that never run because a prerequisite failed, directly or through others. Prerequisites stand
    /// before their dependents in a manifest, so that one pass in its order is enough.
    fn find_blocked(&mut self) {
        for found in &self.queue.loops {
            let Ok(manifest) = &found.manifest else { continue };
            for task in &manifest.tasks {
                let identity = found.id.task(&task.id);
                let Some(at) = self.index.get(&identity).copied() else { continue };
                if !matches!(self.tasks[at].state, State::Absent) {
                    continue;
                }
                self.tasks[at].blocked_by = brought_in_block(&self.tasks[at].row);
                if self.tasks[at].row.mark != Mark::Pending {
                    continue;
                }
                let blocking = task.depends_on.iter().find_map(|id| {
                    let prerequisite = self.tasks.get(*self.index.get(&found.id.task(id))?)?;
                    matches!(prerequisite.outcome(), Outcome::Failed | Outcome::Blocked)
                        .then(|| (prerequisite.identity.clone(), prerequisite.proof()))
                });
                self.tasks[at].blocked_by = blocking;
            }
        }
    }
}

impl TaskView {
    /// The key of the receipt that proves that it failed or is blocked.
    fn proof(&self) -> Option<String> {
        if let Some(held) = self.held() {
            return Some(held.receipt.id.clone());
        }
        let brought_in = || self.row.failure.as_ref().and_then(|failure| failure.receipt.clone());
        self.blocked_by.as_ref().map_or_else(brought_in, |(_, proof)| proof.clone())
    }
}

/// What a row that another repository settled as blocked says of itself.
fn brought_in_block(row: &Row) -> Option<(Identity, Option<String>)> {
    let failure = row.failure.as_ref()?;
    let identity = failure.reason.strip_prefix("blocked-prerequisite:")?;
    Some((Identity::parse(identity.trim()).ok()?, failure.receipt.clone()))
}

/// What a task's state is derived from.
struct Evidence<'a> {
    repo: &'a Repo,
    layout: &'a Layout,
    receipts: &'a Receipts,
    refs: &'a BTreeMap<String, Oid>,
}

impl Evidence<'_> {
    fn state(&self, found: &Loop, row: &Row) -> Result<State> {
        let identity = &row.identity;
        let own = self.receipts.own(identity);
        let rivals = self.receipts.rivals(identity);
        if let Some(rival) = rivals.first() {
            let reason = format!(
                "{} claims this task too; inspect it, and move it away if it is not this task's",
                rival.path().display()
            );
            return Ok(self.invalid(reason, true, own));
        }
        let held = match own {
            None => return Ok(State::Absent),
            Some((dir, Found::Nothing)) => {
                let reason = format!(
                    "{} stands there without a receipt; `git devlyn recover {identity}` removes what an interrupted \
                     allocation left, else see what it holds, move it away, and drain again",
                    dir.path().display()
                );
                return Ok(State::Occupied(reason));
            }
            Some((_, Found::Unreadable(why))) => {
                return Ok(self.invalid(
                    format!("its receipt cannot be read: {why}; put it right from a backup"),
                    true,
                    own,
                ));
            }
            Some((_, Found::Receipt(held))) => held,
        };
        let receipt = &held.receipt;
        let contradiction = if receipt.task != identity.to_string() {
            Some(format!("its receipt claims the task {:?}", receipt.task))
        } else if let Err(why) = receipt.check_place(self.layout, &held.dir) {
            Some(why)
        } else if receipt.branch != identity.branch() {
            Some(format!("its receipt names the branch {:?}", receipt.branch))
        } else {
            None
        };
        if let Some(why) = contradiction {
            return Ok(self.invalid(format!("{}: {why}", held.dir.receipt().display()), true, own));
        }
        if receipt.allocation == Allocation::Allocating {
            return Ok(State::Occupied(unfinished(held)));
        }
        let stage =
            if receipt.is_bound() { self.bound_stage(held, row)? } else { self.active_stage(held, found, row)? };
        Ok(match stage {
            Ok(stage) => State::Owned(Rc::clone(held), stage),
            Err(why) => self.invalid(why, true, own),
        })
    }

    fn invalid(&self, reason: String, claimed: bool, own: Option<&(ReceiptDir, Found)>) -> State {
        let possible_writer = own.is_some_and(|(dir, _)| attempt(dir) == Attempt::Open);
        let held = own.and_then(|(_, found)| match found {
            Found::Receipt(held) => Some(Rc::clone(held)),
            Found::Nothing | Found::Unreadable(_) => None,
        });
        State::Invalid { reason, claimed, possible_writer, held }
    }

    /// The stage of a task that is not bound, or what contradicts it.
    fn active_stage(&self, held: &Held, found: &Loop, row: &Row) -> Result<std::result::Result<Stage, String>> {
        if row.mark != Mark::Pending {
            return Ok(Err(format!("its row is settled, and its receipt {} is not", held.dir.receipt().display())));
        }
        if let Some(at) = self.refs.get(&held.receipt.recovery_ref)
            && self.mark_at(&row.identity, *at)?.is_some_and(|mark| mark != Mark::Pending)
        {
            return Ok(Err(format!(
                "its recovery ref {} keeps a settled result at {at}, and its receipt {} knows of none; see `git log {at}`, \
                 and put the receipt of that result back",
                held.receipt.recovery_ref,
                held.dir.receipt().display()
            )));
        }
        let path = held.dir.packet();
        let packet = match read_state(&path) {
            Ok(None) => None,
            Ok(Some((object, _))) => match serde_json::from_value::<Packet>(object.into()) {
                Ok(packet) => Some(packet),
                Err(error) => return Ok(Err(format!("its packet {} is misshapen: {error}", path.display()))),
            },
            Err(error) => return Ok(Err(format!("its packet cannot be read: {error}"))),
        };
        if let Some(packet) = &packet
            && let Some(why) = self.packet_contradiction(held, found, row, packet)?
        {
            return Ok(Err(format!("its packet {} contradicts {why}; inspect both", path.display())));
        }
        let submitted = match is_there(&held.dir.submission()) {
            Ok(submitted) => submitted,
            Err(error) => return Ok(Err(format!("its submission cannot be looked at: {error}"))),
        };
        Ok(Ok(match (attempt(&held.dir), packet) {
            (Attempt::Open, _) => Stage::Executing,
            (_, None) => Stage::Allocated,
            _ if submitted => Stage::Submitted,
            _ => Stage::Packed,
        }))
    }

    /// How the row of the task is marked in the commit `at`; `None` where there is no row of it.
    fn mark_at(&self, identity: &Identity, at: Oid) -> Result<Option<Mark>> {
        let file = self.repo.file(at, &identity.loop_id.queue_file())?;
        let queue = file.and_then(|blob| QueueFile::parse(&identity.loop_id, &blob.data).ok().flatten());
        Ok(queue.and_then(|queue| queue.row(identity).map(|row| row.mark)))
    }

    /// What a packet contradicts: the contract that was committed is what counts.
    fn packet_contradiction(&self, held: &Held, found: &Loop, row: &Row, packet: &Packet) -> Result<Option<String>> {
        let identity = &row.identity;
        let (receipt, dir) = (&held.receipt, &held.dir);
        let places = [
            (&packet.evidence_dir, receipt.worktree.join(LOOP_EVIDENCE)),
            (&packet.receipt, dir.receipt()),
            (&packet.scratch, dir.scratch()),
            (&packet.submission, dir.submission()),
        ];
        if let Some((named, own)) = places.into_iter().find(|(named, own)| *named != own) {
            return Ok(Some(format!("its own place: it names {} for {}", named.display(), own.display())));
        }
        if packet.schema_version != 1 || packet.allocation_base != receipt.baseline {
            return Ok(Some(format!("the receipt {}, or is of another version", dir.receipt().display())));
        }
        if packet.task != *identity || packet.branch != receipt.branch || packet.worktree != receipt.worktree {
            return Ok(Some("its receipt".to_owned()));
        }
        if self.repo.commit(packet.inputs_sha)?.is_none() {
            return Ok(Some(format!("the repository, which has no commit {}", packet.inputs_sha)));
        }
        let files = [
            (identity.spec_file(), &packet.contract),
            (identity.expected_file(), &packet.expected),
            (found.id.meta_file(), &packet.meta),
        ];
        for (path, named) in files {
            let committed = self.repo.file(packet.inputs_sha, &path)?;
            if committed.is_none_or(|blob| sha256_hex(&blob.data) != named.sha256) {
                return Ok(Some(format!("{path} as the commit {} holds it", packet.inputs_sha)));
            }
        }
        Ok(None)
    }

    /// The stage of a task that is bound, or what contradicts it.
    fn bound_stage(&self, held: &Held, row: &Row) -> Result<std::result::Result<Stage, String>> {
        let receipt = &held.receipt;
        let place = held.dir.receipt();
        let (Some(source), Some(publish)) = (receipt.source_sha, receipt.publish_sha) else {
            return Ok(Err(format!("{} has an acceptance and no source", place.display())));
        };
        let wanted = if receipt.verdict() == Some(Verdict::Failed) { Mark::Failed } else { Mark::Accepted };
        if row.mark != Mark::Pending && row.mark != wanted {
            return Ok(Err(format!(
                "its row is marked [{}], its receipt {} says otherwise",
                row.mark.as_char(),
                place.display()
            )));
        }
        if let Err(why) = present(&held.dir, receipt.files.as_ref().unwrap_or(&Files::new())) {
            return Ok(Err(format!("its evidence proves nothing any more: {why}; put it back from a backup")));
        }
        let recovery = self.refs.get(&receipt.recovery_ref).copied();
        let conflict = || {
            let found = recovery.map_or_else(|| "is not there".to_owned(), |id| format!("is at {id}"));
            format!(
                "the recovery ref {} {found}, its receipt says {publish}; see `git log {publish}`, and put it back with \
                 `git update-ref {} {publish}` if nobody else moved it",
                receipt.recovery_ref, receipt.recovery_ref
            )
        };
        if let Some(queue) = &receipt.queue {
            if recovery != Some(publish) || queue.commit != publish {
                return Ok(Err(conflict()));
            }
            if let Some(why) = self.terminal_contradiction(&row.identity, source, publish, wanted)? {
                return Ok(Err(why));
            }
            return Ok(Ok(if receipt.delivery.is_some_and(crate::store::Delivery::is_final) {
                Stage::Delivered
            } else {
                Stage::Attached
            }));
        }
        let branch = self.repo.resolve(&format!("refs/heads/{}", receipt.branch))?;
        let terminal = match branch {
            Some(head) if head != source => {
                self.terminal_contradiction(&row.identity, source, head, wanted)?.is_none().then_some(head)
            }
            _ => None,
        };
        Ok(match (recovery, terminal) {
            (Some(at), Some(_)) if at == source => Ok(Stage::Terminal),
            (Some(at), Some(head)) if at == head => Ok(Stage::Terminal),
            (Some(at), None) if at == source => Ok(Stage::Bound),
            _ => Err(conflict()),
        })
    }

    /// Why `terminal` is not the commit that settles the task as `mark` on `source`.
    fn terminal_contradiction(
        &self,
        identity: &Identity,
        source: Oid,
        terminal: Oid,
        mark: Mark,
    ) -> Result<Option<String>> {
        let Some(commit) = self.repo.commit(terminal)? else {
            return Ok(Some(format!("its terminal commit {terminal} is not there")));
        };
        if commit.parents != [source] {
            return Ok(Some(format!("{terminal} does not lie directly on its source {source}")));
        }
        let found = self.mark_at(identity, terminal)?;
        Ok((found != Some(mark)).then(|| {
            let found =
                found.map_or_else(|| "no row of it".to_owned(), |mark| format!("its row as [{}]", mark.as_char()));
            format!(
                "its terminal commit {terminal} has {found}, its receipt says [{}]; see `git show {terminal}`, and put the \
                 receipt of that result back from a backup",
                mark.as_char()
            )
        }))
    }
}

fn unfinished(held: &Held) -> String {
    let receipt = &held.receipt;
    format!(
        "its allocation was interrupted and is never adopted; `git devlyn recover {}` shows and removes what it left, or do \
         it yourself: `{}` and `{}` if they are there, delete {}, and drain again",
        receipt.task,
        shell::line([
            OsStr::new("git"),
            "worktree".as_ref(),
            "remove".as_ref(),
            "-ff".as_ref(),
            receipt.worktree.as_ref()
        ]),
        shell::line(["git", "branch", "-D", receipt.branch.as_str()]),
        held.dir.path().display()
    )
}
