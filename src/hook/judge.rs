//! From a commit in Git to the values that the rules are judged on. Costs what the commit changes below `docs/specs/`,
//! never what the repository holds.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};

use gix::bstr::{BStr, BString, ByteSlice};

use super::facts::{FileChange, LoopChange, Proof, QueueChange, QueueVersion, Subject, Version, When};
use super::rules::{self, legal};
use super::{Result, Violation};
use crate::exchange::EVIDENCE;
use crate::git::{EntryKind, Oid, Repo, shown};
use crate::package::{Identity, LoopId};
use crate::queue::LEGACY_QUEUE;
use crate::store::{Layout, Receipt};

const SPECS: &str = "docs/specs";

/// A queue file is read up to this size; ours have some hundred bytes a row.
const LARGEST_QUEUE: u64 = 16 << 20;

/// The commit to be judged.
#[derive(Debug)]
pub(super) struct Candidate<'a> {
    /// Its id, where it is made.
    pub(super) commit: Option<Oid>,
    pub(super) parents: &'a [Oid],
    pub(super) tree: Oid,
    /// The task that owns the branch that it is made on.
    pub(super) owner: Option<Identity>,
}

/// A judge of one repository.
pub(super) struct Judge<'a> {
    repo: &'a Repo,
    layout: Layout,
    when: When,
    /// Where the history that is judged ends.
    tips: &'a [Oid],
    has_loop: OnceCell<bool>,
    captures: RefCell<HashMap<LoopId, Option<Oid>>>,
    /// Whether `.devlyn/` is ignored, by the object that stands at `.gitignore`.
    ignored: RefCell<HashMap<Option<Oid>, bool>>,
}

impl<'a> Judge<'a> {
    /// A judge of commits that are about to be made.
    pub(super) fn now(repo: &'a Repo) -> Self {
        Self::new(repo, When::Now, &[])
    }

    /// A judge of the history that ends at `tips`.
    pub(super) fn later(repo: &'a Repo, tips: &'a [Oid]) -> Self {
        Self::new(repo, When::Later, tips)
    }

    fn new(repo: &'a Repo, when: When, tips: &'a [Oid]) -> Self {
        let layout = Layout::new(repo.common_dir());
        let (captures, ignored) = (RefCell::default(), RefCell::default());
        Self { repo, layout, when, tips, has_loop: OnceCell::new(), captures, ignored }
    }

    /// What `candidate` does and may not.
    pub(super) fn judge(&self, candidate: &Candidate<'_>) -> Result<Vec<Violation>> {
        let subject = self.subject(candidate)?;
        let mut found = rules::judge(&subject);
        for violation in &mut found {
            violation.commit = candidate.commit;
        }
        Ok(found)
    }

    /// The task that owns the branch with this short name: one with a receipt of a worktree that is still there.
    pub(super) fn owner(&self, branch: &str) -> Option<(Identity, Oid)> {
        let (loop_id, task) = branch.strip_prefix("devlyn/")?.split_once('/')?;
        let identity = Identity::parse(&format!("{loop_id}.{task}")).ok()?;
        let receipt = Receipt::read(&self.layout.receipt_dir(&identity.key())).ok().flatten()?;
        (receipt.status.as_deref() != Some("COMPLETE")).then_some((identity, receipt.baseline))
    }

    fn subject(&self, candidate: &Candidate<'_>) -> Result<Subject> {
        let (loops, legacy) = self.loops(candidate)?;
        let mut subject = Subject {
            when: self.when,
            merge: candidate.parents.len() > 1,
            inside: self.inside(candidate.tree)?,
            exposed: self.exposed(candidate)?,
            loops,
            legacy,
            besides: BTreeMap::new(),
            proofs: BTreeMap::new(),
            owner: candidate.owner.clone(),
        };
        if subject.merge {
            return Ok(subject);
        }
        for change in &subject.loops {
            let Some(QueueChange { parents, new: Some(new), .. }) = &change.queue else { continue };
            let (Some(Some(old)), Some(parent)) = (parents.first(), candidate.parents.first()) else {
                for step in rules::settled(&change.loop_id, new) {
                    let proof = self.proof(&step.identity);
                    subject.proofs.extend(proof.map(|proof| (step.identity, proof)));
                }
                continue;
            };
            let Ok(step) = legal(old, new) else { continue };
            let path = change.loop_id.queue_file();
            let all = self.repo.changes(*parent, candidate.tree)?;
            if let Some(other) = all.into_iter().find(|change| change.path != path) {
                subject.besides.insert(change.loop_id.clone(), shown(BStr::new(&other.path)));
            }
            let proof = self.proof(&step.identity);
            subject.proofs.extend(proof.map(|proof| (step.identity, proof)));
        }
        Ok(subject)
    }

    /// What the receipt of the task says, where there is one.
    fn proof(&self, identity: &Identity) -> Option<Proof> {
        match Receipt::read(&self.layout.receipt_dir(&identity.key())) {
            Ok(receipt) => receipt.map(|receipt| Proof::Receipt(receipt.id.clone(), receipt.verdict())),
            Err(error) => Some(Proof::Unreadable(error.to_string())),
        }
    }

    /// A path at or below `.devlyn/` of `tree`.
    fn inside(&self, tree: Oid) -> Result<Option<String>> {
        let Some(entry) = self.repo.entry(tree, EVIDENCE)? else { return Ok(None) };
        let (mut path, mut at) = (BString::from(EVIDENCE), (entry.kind == EntryKind::Tree).then_some(entry.id));
        while let Some(folder) = at {
            let Some(first) = self.repo.folder(folder, "")?.into_iter().next() else { break };
            path.push(b'/');
            path.extend_from_slice(&first.name);
            at = (first.kind == EntryKind::Tree).then_some(first.id);
        }
        Ok(Some(shown(BStr::new(&path))))
    }

    /// Whether `.devlyn/` is not ignored after the commit although there is a loop. Of a history only its end is held
    /// against that, and the commit that took the rule away: what is older than the loop could not know.
    fn exposed(&self, candidate: &Candidate<'_>) -> Result<bool> {
        if self.ignores(candidate.tree)? || !self.has_loop()? {
            return Ok(false);
        }
        if self.when == When::Now || candidate.commit.is_some_and(|commit| self.tips.contains(&commit)) {
            return Ok(true);
        }
        for parent in candidate.parents {
            if self.ignores(*parent)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn ignores(&self, at: Oid) -> Result<bool> {
        let rules = self.repo.entry(at, ".gitignore")?.map(|entry| entry.id);
        if let Some(known) = self.ignored.borrow().get(&rules) {
            return Ok(*known);
        }
        let ignored = self.repo.ignores_folder_for_user(at, EVIDENCE)?;
        self.ignored.borrow_mut().insert(rules, ignored);
        Ok(ignored)
    }

    fn has_loop(&self) -> Result<bool> {
        if let Some(known) = self.has_loop.get() {
            return Ok(*known);
        }
        let recorded = std::fs::read_dir(self.layout.loops())
            .is_ok_and(|mut entries| entries.any(|entry| entry.is_ok_and(|entry| entry.path().is_dir())));
        let found = recorded || !self.repo.refs_below("refs/devlyn/captures/")?.is_empty();
        Ok(*self.has_loop.get_or_init(|| found))
    }

    fn capture(&self, loop_id: &LoopId) -> Result<Option<Oid>> {
        if let Some(known) = self.captures.borrow().get(loop_id) {
            return Ok(*known);
        }
        let capture = self.repo.resolve(&loop_id.capture_ref())?;
        self.captures.borrow_mut().insert(loop_id.clone(), capture);
        Ok(capture)
    }

    /// What changes below `docs/specs/`: the loops, and whether the legacy queue does.
    fn loops(&self, candidate: &Candidate<'_>) -> Result<(Vec<LoopChange>, bool)> {
        let specs = |at: Oid| -> Result<Option<Oid>> {
            let entry = self.repo.entry(at, SPECS)?.filter(|entry| entry.kind == EntryKind::Tree);
            Ok(entry.map(|entry| entry.id))
        };
        let new = specs(candidate.tree)?;
        let mut sides = Vec::new();
        for parent in candidate.parents {
            sides.push(specs(*parent)?);
        }
        if candidate.parents.is_empty() {
            sides.push(None);
        }
        let empty = candidate.tree.empty_tree_like();
        let mut changed = Vec::new();
        for side in &sides {
            let paths: BTreeSet<BString> = if *side == new {
                BTreeSet::new()
            } else {
                let changes = self.repo.changes(side.unwrap_or(empty), new.unwrap_or(empty))?;
                changes.into_iter().map(|change| change.path).collect()
            };
            changed.push(paths);
        }
        let everywhere = |path: &BString| changed.iter().all(|paths| paths.contains(path));
        let legacy = everywhere(&BString::from("queue.md"));
        debug_assert!(LEGACY_QUEUE.ends_with("/queue.md"));

        let mut touched: BTreeMap<LoopId, BTreeSet<&BString>> = BTreeMap::new();
        for path in changed.iter().flatten() {
            let Some((name, _)) = path.split_once_str("/") else { continue };
            if let Some(loop_id) = name.to_str().ok().and_then(|name| LoopId::new(name).ok()) {
                touched.entry(loop_id).or_default().insert(path);
            }
        }
        let mut loops = Vec::new();
        for (loop_id, paths) in touched {
            let capture = self.capture(&loop_id)?;
            let queue_path = BString::from(format!("{loop_id}/queue.md"));
            let mut change = LoopChange { loop_id, queue: None, files: Vec::new() };
            for path in paths {
                if *path == queue_path {
                    change.queue = Some(self.queue(&change.loop_id, candidate, capture)?);
                } else if everywhere(path) {
                    change.files.push(self.file(path, candidate, capture)?);
                }
            }
            loops.push(change);
        }
        Ok((loops, legacy))
    }

    fn queue(&self, loop_id: &LoopId, candidate: &Candidate<'_>, capture: Option<Oid>) -> Result<QueueChange> {
        let path = loop_id.queue_file();
        let read = |at: Oid| -> Result<Option<QueueVersion>> {
            let Some(entry) = self.repo.entry(at, &path)? else { return Ok(None) };
            let data = match entry.kind {
                EntryKind::Tree | EntryKind::Submodule => Vec::new(),
                EntryKind::File | EntryKind::Executable | EntryKind::Link => {
                    self.repo.blob_up_to(entry.id, LARGEST_QUEUE)?
                }
            };
            Ok(Some(QueueVersion { kind: entry.kind, data }))
        };
        let mut parents = Vec::new();
        for parent in candidate.parents {
            parents.push(read(*parent)?);
        }
        if candidate.parents.is_empty() {
            parents.push(None);
        }
        let captured = capture.map(read).transpose()?.flatten().map(|version| version.data);
        Ok(QueueChange { parents, new: read(candidate.tree)?, captured })
    }

    fn file(&self, below: &BString, candidate: &Candidate<'_>, capture: Option<Oid>) -> Result<FileChange> {
        let visible = format!("{SPECS}/{}", shown(BStr::new(below)));
        let mut change = FileChange { path: visible, new: None, captured: None, draft: false };
        // The files of a package have names that are text.
        let Ok(path) = below.to_str().map(|below| format!("{SPECS}/{below}")) else { return Ok(change) };
        let read = |at: Oid| -> Result<Option<Version>> {
            let entry = self.repo.entry(at, &path)?.filter(|entry| entry.kind != EntryKind::Tree);
            Ok(entry.map(|entry| Version { kind: entry.kind, id: entry.id }))
        };
        change.new = read(candidate.tree)?;
        let Some(captured) = capture.map(read).transpose()?.flatten() else { return Ok(change) };
        change.captured = Some(captured);
        if self.when == When::Later && change.new != change.captured {
            let mut drafts = true;
            for parent in candidate.parents {
                drafts &= read(*parent)? != change.captured;
            }
            let mut ends = false;
            for tip in self.tips {
                ends |= read(*tip)? == change.captured;
            }
            change.draft = drafts && ends;
        }
        Ok(change)
    }
}
