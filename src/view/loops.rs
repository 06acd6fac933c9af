//! The loops of a repository and the order of their rows: from their captures where they were added here, else from
//! the queue files that the checkout tracks.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::Path;
use std::rc::Rc;

use super::{CheckoutSource, Result, ViewError};
use crate::git::{Oid, Repo};
use crate::package::{FileState, Identity, LoopId, Manifest, Package, Source};
use crate::queue::{Claimant, LEGACY_QUEUE, LegacyRow, Mark, QueueFile, Slot, order, parse_legacy};
use crate::store::{Layout, Record};

/// What a capture holds, read once: it never changes.
#[derive(Debug)]
struct Captured {
    queue: QueueFile,
    manifest: std::result::Result<Manifest, String>,
}

/// The captures that were read so far.
#[derive(Debug, Default)]
pub struct Captures {
    read: RefCell<HashMap<Oid, Rc<Captured>>>,
}

/// A loop.
#[derive(Debug, Clone)]
pub struct Loop {
    /// Its name.
    pub id: LoopId,
    /// Its add record, where it was added here.
    pub record: Option<Record>,
    /// Its rows.
    pub queue: QueueFile,
    /// Its manifest, or why there is none that can be read.
    pub manifest: std::result::Result<Manifest, String>,
    /// The faults of its package; only a loop without a record can have some.
    faults: Vec<crate::package::Fault>,
}

/// The queue of a repository, as one checkout shows it.
#[derive(Debug)]
pub struct Queue {
    /// The loops, in no order that matters.
    pub loops: Vec<Loop>,
    /// The intents.
    pub legacy: Vec<LegacyRow>,
    /// The order in which both are seen.
    pub slots: Vec<Slot>,
}

impl Loop {
    /// What is wrong with the package text that the task lives by.
    #[must_use]
    pub fn fault_of(&self, identity: &Identity) -> Option<String> {
        let files = [self.id.meta_file(), identity.spec_file(), identity.expected_file()];
        self.faults.iter().find(|fault| files.contains(&fault.file)).map(ToString::to_string)
    }

    /// The prerequisites of a task, by its manifest.
    #[must_use]
    pub fn prerequisites(&self, identity: &Identity) -> Vec<Identity> {
        let Ok(manifest) = &self.manifest else { return Vec::new() };
        let task = manifest.tasks.iter().find(|task| task.id == identity.task);
        task.into_iter().flat_map(|task| &task.depends_on).map(|id| self.id.task(id)).collect()
    }
}

impl Queue {
    /// The queue as the checkout of `repo` shows it. The caller holds the queue lock where an `add` must not come
    /// between.
    ///
    /// # Errors
    /// Where a record, a capture or a queue file cannot be relied on.
    pub fn read(repo: &Repo, layout: &Layout, captures: &Captures) -> Result<Self> {
        let mut loops = Vec::new();
        for record in Record::read_all(layout)? {
            let captured = captures.get(repo, &record)?;
            loops.push(Loop {
                id: record.loop_id.clone(),
                queue: captured.queue.clone(),
                manifest: captured.manifest.clone(),
                record: Some(record),
                faults: Vec::new(),
            });
        }
        unrecorded(repo, &mut loops)?;
        let legacy = match CheckoutSource::new(repo).file(LEGACY_QUEUE) {
            FileState::Missing => Vec::new(),
            FileState::Bytes(bytes) => parse_legacy(&bytes).map_err(|fault| queue_error(LEGACY_QUEUE, &fault))?,
            FileState::Unreadable(why) => return Err(queue_error(LEGACY_QUEUE, &why)),
        };
        let claimants: Vec<Claimant> = loops
            .iter()
            .map(|found| Claimant {
                loop_id: found.id.clone(),
                sequence: found.record.as_ref().map(|record| record.sequence),
                claim: found.queue.claim.clone(),
            })
            .collect();
        let slots = order(&legacy, &claimants);
        Ok(Self { loops, legacy, slots })
    }

    /// The loops in the order in which they are seen.
    pub fn in_order(&self) -> impl Iterator<Item = &Loop> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Loop(index) => self.loops.get(*index),
            Slot::Legacy(_) => None,
        })
    }

    /// The intents that wait for planning.
    pub fn unplanned(&self) -> impl Iterator<Item = &LegacyRow> {
        self.slots.iter().filter_map(|slot| match slot {
            Slot::Legacy(index) => self.legacy.get(*index).filter(|row| row.mark == Mark::Pending),
            Slot::Loop(_) => None,
        })
    }

    /// The loop of that name.
    #[must_use]
    pub fn find(&self, id: &LoopId) -> Option<&Loop> {
        self.loops.iter().find(|found| found.id == *id)
    }
}

impl Captures {
    fn get(&self, repo: &Repo, record: &Record) -> Result<Rc<Captured>> {
        if let Some(known) = self.read.borrow().get(&record.commit) {
            return Ok(Rc::clone(known));
        }
        let place = format!("{} ({}; `git devlyn fsck` says how to put it right)", record.loop_id, record.capture);
        let loop_id = &record.loop_id;
        let folder = match repo.entry(record.commit, &loop_id.directory()) {
            Ok(Some(folder)) => folder.id,
            Ok(None) => return Err(queue_error(&place, "the captured commit holds no package of the loop")),
            Err(error) => return Err(queue_error(&place, &error)),
        };
        let queue = repo.file(folder, "queue.md")?;
        let queue = queue.ok_or_else(|| queue_error(&place, "the capture holds no queue file"))?;
        let queue = QueueFile::parse(loop_id, &queue.data).map_err(|fault| queue_error(&place, &fault))?;
        let queue = queue.ok_or_else(|| queue_error(&place, "the captured queue file holds no row of the loop"))?;
        let manifest = match repo.file(folder, "meta.md")? {
            Some(meta) => Manifest::parse_meta(loop_id, &meta.data).map_err(|fault| fault.to_string()),
            None => Err(format!("{}: is not in the capture", loop_id.meta_file())),
        };
        let captured = Rc::new(Captured { queue, manifest });
        self.read.borrow_mut().insert(record.commit, Rc::clone(&captured));
        Ok(captured)
    }
}

/// Adds the loops that have no record here, from the queue files that the checkout tracks.
fn unrecorded(repo: &Repo, loops: &mut Vec<Loop>) -> Result<()> {
    let source = CheckoutSource::new(repo);
    let mut candidates = Vec::new();
    for id in folders(&repo.work_dir().join("docs/specs")) {
        let known = loops.iter().any(|found| found.id == id);
        if !known && std::fs::symlink_metadata(repo.work_dir().join(id.queue_file())).is_ok() {
            candidates.push(id);
        }
    }
    if candidates.is_empty() {
        return Ok(());
    }
    candidates.sort();
    let names = candidates.iter().map(LoopId::queue_file);
    let tracked = repo.git().args(["ls-files", "-z", "--"]).args(names).run()?;
    let tracked: Vec<&[u8]> = tracked.stdout.split(|byte| *byte == 0).collect();
    for id in candidates {
        let place = id.queue_file();
        if !tracked.contains(&place.as_bytes()) {
            continue;
        }
        let bytes = match source.file(&place) {
            FileState::Bytes(bytes) => bytes,
            FileState::Missing => continue,
            FileState::Unreadable(why) => return Err(queue_error(&place, &why)),
        };
        let Some(queue) = QueueFile::parse(&id, &bytes).map_err(|fault| queue_error(&place, &fault))? else { continue };
        let faults = Package::parse(&id, &source).err().unwrap_or_default();
        let manifest = match source.file(&id.meta_file()) {
            FileState::Bytes(bytes) => Manifest::parse_meta(&id, &bytes).map_err(|fault| fault.to_string()),
            FileState::Missing => Err(format!("{}: is missing", id.meta_file())),
            FileState::Unreadable(why) => Err(format!("{}: {why}", id.meta_file())),
        };
        loops.push(Loop { id, record: None, queue, manifest, faults });
    }
    Ok(())
}

/// The folders below `path` that bear a loop's name.
fn folders(path: &Path) -> Vec<LoopId> {
    let Ok(entries) = std::fs::read_dir(path) else { return Vec::new() };
    entries.flatten().filter_map(|entry| LoopId::new(entry.file_name().to_str()?).ok()).collect()
}

/// The bytes with CRLF as LF: how package text is compared, line endings aside.
#[must_use]
pub fn unix_lines(bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(bytes.len());
    for (index, byte) in bytes.iter().enumerate() {
        if !(*byte == b'\r' && bytes.get(index + 1) == Some(&b'\n')) {
            out.push(*byte);
        }
    }
    out
}

fn queue_error(place: &str, why: &(impl ToString + ?Sized)) -> ViewError {
    ViewError::Queue { place: place.to_owned(), why: why.to_string() }
}
