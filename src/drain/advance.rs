//! One task from where it stands to where it is settled, or waits. Every step does what is missing and nothing twice.

use std::path::PathBuf;

use super::Controller;
use super::remote::REMOTE;
use super::select::{LoopMode, Next};
use crate::acceptance;
use crate::exchange::Packet;
use crate::git::{Head, Oid};
use crate::os::{of_the_machine, tree, writers};
use crate::package::{Delivery, FileState, Source, sha256_hex};
use crate::store::{Lock, Receipt, StoreError, Verdict, is_there, read_state, sync_dir};
use crate::task::{
    self, Allocated, Completion, Ran, Request, Where, attach_to, check_out, commit_inputs, commit_terminal,
    complete_locked, execute, make_inputs, write_packet,
};
use crate::view::{CheckoutSource, Held, Stage, Start, Starts, TaskView, View, unix_lines};

/// Why a task waits; it is tried again by the next drain.
type Waits = String;

/// Tells which step of a task a failure belongs to.
fn in_phase<E: std::fmt::Display>(phase: &'static str) -> impl Fn(E) -> Waits {
    move |error| format!("{phase} blocked: {error}")
}

impl Controller<'_> {
    /// Takes the task as far as it goes.
    pub(super) fn advance(&mut self, view: &View, task: &TaskView, next: &Next) -> Result<(), Waits> {
        let (mut held, mut stage) = match (next, &task.state) {
            (Next::Begin(start), _) => (self.begin(view, task, start)?, Stage::Packed),
            (_, crate::view::State::Owned(held, stage)) => (held.as_ref().clone(), *stage),
            _ => return Ok(()),
        };
        if stage < Stage::Bound {
            stage = self.until_bound(view, task, &mut held, stage)?;
        }
        let terminal = if stage <= Stage::Terminal { Some(self.settle(task, &held)?) } else { None };
        self.deliver(view, task, &mut held, terminal)
    }

    /// Allocates the task with its inputs checked out, and writes its packet.
    fn begin(&mut self, view: &View, task: &TaskView, start: &Start) -> Result<Held, Waits> {
        let identity = &task.identity;
        let found = view.loop_of(task).ok_or("its loop is gone")?;
        let starts = Starts::new(self.repo);
        if let Some(why) = starts.lacking(found, task, start.commit()).map_err(in_phase("allocation"))? {
            return Err(format!("{why}; start where the loop is whole, or not at all"));
        }
        let base = match (&found.manifest, &found.record) {
            (Ok(manifest), _) => manifest.base_ref.clone(),
            (Err(_), Some(record)) => record.branch.clone(),
            (Err(why), None) => return Err(why.clone()),
        };
        let request = Request {
            task: identity.to_string(),
            branch: identity.branch(),
            base,
            remote: REMOTE.to_owned(),
            worktree: self.worktree_root()?.join(identity.loop_id.as_str()).join(identity.task.as_str()),
            start: match (start, self.mode(view, task)) {
                (Start::Base(id), LoopMode::Remote(_)) => {
                    let repository = self.remotes.repository().map_err(in_phase("allocation"))?;
                    Where::Remote { repository, start: Some(*id) }
                }
                (Start::Base(id), LoopMode::Local | LoopMode::Published(_)) => Where::Local(*id),
                (Start::Accepted(dir, _), _) => Where::From(dir.receipt()),
            },
            except: view.invalid_receipts.clone(),
            attended: false,
        };
        let local_only = !matches!(request.start, Where::Remote { .. });
        // Before there is a worktree, so that `git` fills it once.
        let inputs = |baseline| make_inputs(self.repo, view, task, baseline, local_only);
        let Allocated { dir, receipt, start, .. } =
            task::allocate(self.repo, self.layout, &request, &inputs).map_err(in_phase("allocation"))?;
        self.tell(identity, format!("allocated {}", receipt.worktree.display()));
        let held = Held { dir, receipt };
        self.pack(view, task, &held, start)?;
        Ok(held)
    }

    /// Where the worktrees of this repository stand.
    pub(super) fn worktree_root(&self) -> Result<PathBuf, Waits> {
        if let Some(root) = &self.options.worktree_root {
            return std::path::absolute(root).map_err(in_phase("allocation"));
        }
        let main = self.repo.main_work_dir();
        let name = main.file_name().unwrap_or_default();
        let mut beside = name.to_owned();
        beside.push(".devlyn");
        Ok(main.with_file_name(beside))
    }

    /// Everything up to a bound result.
    fn until_bound(&mut self, view: &View, task: &TaskView, held: &mut Held, mut stage: Stage) -> Result<Stage, Waits> {
        self.has_worktree(held)?;
        if let Some(changed) = self.changed_inputs(view, task, held)? {
            let inputs = self.inputs_of(held)?;
            let packet = read_packet(held)?;
            return self.fail(task, held, packet.as_ref(), inputs, format!("inputs-changed: {changed}"));
        }
        if stage == Stage::Executing {
            match self.after_interruption(held)? {
                Ok(after) => stage = after,
                Err(unobservable) => {
                    let inputs = self.inputs_of(held)?;
                    let packet = read_packet(held)?;
                    let reason = format!("interrupted-unobservable: {unobservable}");
                    return self.fail(task, held, packet.as_ref(), inputs, reason);
                }
            }
        }
        if stage < Stage::Submitted {
            self.on_own_branch(held)?;
        }
        let packet = self.packet(view, task, held)?;
        if stage < Stage::Submitted {
            self.still_ready(view, task, held)?;
            self.execute(task, held, &packet)?;
        }
        let derived = acceptance::derive(self.repo, held, &packet).map_err(in_phase("acceptance"))?;
        self.bind(task, held, &derived)
    }

    /// Whether the worktree is the one that was allocated.
    fn has_worktree(&self, held: &Held) -> Result<(), Waits> {
        let receipt = &held.receipt;
        let place = &receipt.worktree;
        let found = tree::identity(place).map_err(|error| {
            format!("its worktree {} is not there ({error}); bring it back and drain again", place.display())
        })?;
        match receipt.worktree_identity {
            Some([recorded, _]) if recorded != found => Err(format!(
                "{} is not the worktree that was allocated; bring that one back, or plan the work again",
                place.display()
            )),
            _ => held.checkout(self.repo).git_dir().map(|_| ()).map_err(in_phase("worktree")),
        }
    }

    /// Whether the worktree is on no branch but its own: what an executor commits on another one is on somebody else's.
    fn on_own_branch(&self, held: &Held) -> Result<(), Waits> {
        let (own, place) = (&held.receipt.branch, held.receipt.worktree.display());
        match self.repo.head_of(&held.checkout(self.repo)).map_err(in_phase("worktree"))? {
            Head::Branch(other, _) | Head::Unborn(other) if other != *own => Err(format!(
                "{place} has {other} checked out, and not {own}; `git -C {place} switch {own}`, and drain again"
            )),
            Head::Branch(..) | Head::Unborn(_) | Head::Detached(_) => Ok(()),
        }
    }

    /// The file of the task's contract that changed in the checkout, for a loop without a capture.
    fn changed_inputs(&self, view: &View, task: &TaskView, held: &Held) -> Result<Option<String>, Waits> {
        let Some(found) = view.loop_of(task) else { return Ok(None) };
        if found.record.is_some() {
            return Ok(None);
        }
        let Some(packet) = read_packet(held)? else { return Ok(None) };
        let source = CheckoutSource::new(self.repo);
        for (path, bound) in
            [(task.identity.spec_file(), packet.contract), (task.identity.expected_file(), packet.expected)]
        {
            let same = match source.file(&path) {
                FileState::Bytes(bytes) => {
                    [sha256_hex(&bytes), sha256_hex(&unix_lines(&bytes))].contains(&bound.sha256)
                }
                FileState::Missing | FileState::Unreadable(_) => false,
            };
            if !same {
                return Ok(Some(format!("{path} is not what the task began with; plan the revision as a new task")));
            }
        }
        Ok(None)
    }

    /// The commit that the task's work would be held against.
    fn inputs_of(&self, held: &Held) -> Result<Oid, Waits> {
        Ok(read_packet(held)?.map_or(held.receipt.baseline, |packet| packet.inputs_sha))
    }

    /// The stage of a task whose execution was interrupted, or why nobody can tell that it ended.
    fn after_interruption(&self, held: &Held) -> Result<Result<Stage, String>, Waits> {
        let receipt = &held.receipt;
        let since = std::fs::metadata(&receipt.worktree).and_then(|meta| meta.created()).ok();
        let strict = self.repo.config("devlyn.writers").as_deref() == Some("strict");
        match writers::observe(&receipt.worktree, since, strict) {
            Ok(()) => {}
            Err(writers::Writing::Unobservable(why)) if !cfg!(any(target_os = "linux", target_os = "macos")) => {
                return Ok(Err(why));
            }
            Err(writing) => {
                return Err(format!("its interrupted execution may go on: {writing}; drain again when it has ended"));
            }
        }
        // A `git` of the executor's that was ended with it leaves locks, and nobody uses the worktree now.
        if self.repo.release_branch(&receipt.branch) {
            let _ = held.checkout(self.repo).release_locks();
        }
        // What was cut off in the middle of its writing is no submission; it is kept, and its executor runs again.
        let path = held.dir.submission();
        match read_state(&path) {
            Ok(Some(_)) => Ok(Ok(Stage::Submitted)),
            Ok(None) => Ok(Ok(Stage::Packed)),
            Err(StoreError::Io { path, source }) if of_the_machine(&source) => {
                Err(in_phase("execution")(StoreError::Io { path, source }))
            }
            Err(_) => {
                let aside =
                    (1..).map(|n| held.dir.path().join(format!(".submission-{n}"))).find(|place| !place.exists());
                if let Some(aside) = aside {
                    std::fs::rename(&path, &aside).map_err(in_phase("execution"))?;
                    sync_dir(held.dir.path()).map_err(in_phase("execution"))?;
                }
                Ok(Ok(Stage::Packed))
            }
        }
    }

    /// The packet, written with its inputs where it is missing.
    fn packet(&mut self, view: &View, task: &TaskView, held: &Held) -> Result<Packet, Waits> {
        if let Some(packet) = read_packet(held)? {
            return Ok(packet);
        }
        let inputs = commit_inputs(self.repo, view, task, held).map_err(in_phase("inputs"))?;
        self.pack(view, task, held, inputs)
    }

    /// Writes the packet of a task whose inputs are committed and checked out.
    fn pack(&mut self, view: &View, task: &TaskView, held: &Held, inputs: Oid) -> Result<Packet, Waits> {
        self.tell(&task.identity, format!("inputs {inputs}"));
        let delivery = match self.mode(view, task) {
            LoopMode::Remote(delivery) if !held.receipt.local_only => delivery,
            _ => Delivery::LocalOnly,
        };
        write_packet(self.repo, view, task, held, inputs, delivery).map_err(in_phase("packet"))
    }

    fn execute(&mut self, task: &TaskView, held: &Held, packet: &Packet) -> Result<(), Waits> {
        let identity = task.identity.clone();
        let tell = &mut *self.tell;
        let mut begun = || tell(super::Event { task: identity.clone(), text: "executing".to_owned() });
        let ran = execute(held, packet, &self.options.executor, &mut begun).map_err(in_phase("execution"))?;
        let stderr = packet.evidence_dir.join("executor.stderr");
        match ran {
            Ran::NotStarted(why) => Err(format!(
                "execution blocked: the executor did not start: {why}; put the executable, its permissions or the worktree \
                 right and drain again"
            )),
            Ran::Ended { code, left_behind, spared } => {
                for command in spared {
                    self.diagnostics.push(format!("{}: its executor left a process running: {command}", task.identity));
                }
                for command in left_behind {
                    self.diagnostics
                        .push(format!("{}: ended a process that its executor left behind: {command}", task.identity));
                }
                if is_there(&held.dir.submission()).map_err(in_phase("execution"))? {
                    return Ok(());
                }
                let end =
                    if code < 0 { format!("was ended by signal {}", -code) } else { format!("ended with exit {code}") };
                Err(format!(
                    "execution blocked: the executor {end} and left no submission; see {}, the next drain runs it again",
                    stderr.display()
                ))
            }
        }
    }

    fn fail(
        &mut self,
        task: &TaskView,
        held: &mut Held,
        packet: Option<&Packet>,
        inputs: Oid,
        reason: String,
    ) -> Result<Stage, Waits> {
        let derived = acceptance::fail(self.repo, held, packet, inputs, reason).map_err(in_phase("acceptance"))?;
        self.bind(task, held, &derived)
    }

    /// Binds what was derived.
    fn bind(&mut self, task: &TaskView, held: &mut Held, derived: &acceptance::Derived) -> Result<Stage, Waits> {
        self.tell(
            &task.identity,
            match derived.verdict {
                Verdict::Accepted => "accepted".to_owned(),
                Verdict::Failed => format!("failed; {}", derived.reasons.first().map_or("", String::as_str)),
            },
        );
        let _lock = self.locked(held, "custody")?;
        task::bind(self.repo, &held.dir, &mut held.receipt, &derived.path).map_err(in_phase("custody"))?;
        self.tell(&task.identity, "bound".to_owned());
        Ok(Stage::Bound)
    }

    /// The terminal commit, checked out and noted.
    fn settle(&mut self, task: &TaskView, held: &Held) -> Result<Oid, Waits> {
        let (identity, receipt) = (&task.identity, &held.receipt);
        let phase = in_phase("terminal commit");
        let terminal = commit_terminal(self.repo, self.layout, identity, receipt).map_err(&phase)?;
        self.tell(identity, format!("terminal {terminal}"));
        // The notes come before it is attached: afterwards nobody would come back for some that a crash left out.
        let checkout = held.checkout(self.repo);
        let (checked_out, noted) = std::thread::scope(|scope| {
            // Neither needs the other, and both wait for something else most of their time.
            let checking_out = scope.spawn(|| check_out(&checkout, receipt, terminal));
            let noted = crate::notes::write(self.repo, receipt, terminal);
            (checking_out.join(), noted)
        });
        checked_out.unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map_err(phase)?;
        if let Err(error) = noted {
            if error.is_of_the_machine() {
                return Err(in_phase("notes")(error));
            }
            self.diagnostics.push(format!("{identity}: {error}"));
        }
        Ok(terminal)
    }

    /// What was settled with the commit `terminal` is attached, and all that is attached delivered.
    fn deliver(&mut self, view: &View, task: &TaskView, held: &mut Held, terminal: Option<Oid>) -> Result<(), Waits> {
        let mode = self.mode(view, task);
        let lock = self.locked(held, if terminal.is_some() { "attachment" } else { "delivery" })?;
        if let Some(terminal) = terminal {
            let file = task.identity.loop_id.queue_file();
            attach_to(self.repo, &held.dir, &mut held.receipt, terminal, &file).map_err(in_phase("attachment"))?;
            // Delivering at home has no effect but on the receipt, and writes it for both.
            if mode != LoopMode::Local {
                held.receipt.write(&held.dir).map_err(in_phase("attachment"))?;
            }
            self.tell(&task.identity, "attached".to_owned());
        }
        let asked = Completion {
            local_only: mode == LoopMode::Local,
            // A mode that somebody chose for this task outlives the package's.
            mode: if held.receipt.mode_override.is_none() { mode.asked() } else { None },
            writers_stopped: true,
            ..Completion::default()
        };
        let completed =
            complete_locked(self.repo, &held.dir, &mut held.receipt, &asked).map_err(in_phase("delivery"))?;
        drop(lock);
        self.remotes.opened(&task.identity, &completed, &held.receipt);
        self.tell(&task.identity, format!("delivery {}", completed.status));
        Ok(())
    }

    /// The lock on the receipt, which is then held as it is on disk.
    fn locked(&self, held: &mut Held, phase: &'static str) -> Result<Lock, Waits> {
        let (lock, _, receipt) = Receipt::locked(self.layout, &held.dir.receipt()).map_err(in_phase(phase))?;
        held.receipt = receipt;
        Ok(lock)
    }
}

fn read_packet(held: &Held) -> Result<Option<Packet>, Waits> {
    let Some((object, _)) = read_state(&held.dir.packet()).map_err(in_phase("packet"))? else { return Ok(None) };
    serde_json::from_value(object.into()).map(Some).map_err(in_phase("packet"))
}
