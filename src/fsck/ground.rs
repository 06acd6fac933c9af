//! What is read once for all checks: every record, receipt, reference and worktree.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use super::refs::Loose;
use super::{Findings, Result};
use crate::git::{Oid, Registration, Repo, Worktree};
use crate::package::{Identity, LoopId, Manifest};
use crate::queue::QueueFile;
use crate::store::{Layout, Lock, Receipt, ReceiptDir, Record, StoreError};

/// A recorded loop with what its capture holds.
pub(super) struct Kept {
    /// Its add record.
    pub(super) record: Record,
    /// Its manifest, where the capture holds one that is valid.
    pub(super) manifest: Option<Manifest>,
    /// Its queue file, where the capture holds one that is valid.
    pub(super) queue: Option<QueueFile>,
}

/// A receipt's directory with what is in it.
pub(super) struct Owned {
    /// The directory.
    pub(super) dir: ReceiptDir,
    /// The receipt; none where the directory has none, an error where it cannot be read.
    pub(super) receipt: std::result::Result<Option<Receipt>, String>,
}

/// All of it.
pub(super) struct Ground<'a> {
    pub(super) repo: &'a Repo,
    pub(super) layout: &'a Layout,
    /// The recorded loops.
    pub(super) loops: Vec<Kept>,
    /// Every directory of a receipt, sorted.
    pub(super) receipts: Vec<Owned>,
    /// The tasks of recorded loops by the key of their receipt.
    pub(super) tasks: HashMap<String, Identity>,
    /// `refs/devlyn/…`.
    pub(super) refs: BTreeMap<String, Oid>,
    /// `refs/heads/devlyn/…`.
    pub(super) branches: BTreeMap<String, Oid>,
    /// Every registered worktree.
    pub(super) worktrees: Vec<Worktree>,
    /// The same, as it is on file.
    pub(super) registrations: Vec<Registration>,
    /// What is wrong with the files of references; nothing else is said of those.
    pub(super) loose: Loose,
    /// Whether somebody allocates just now, so that half of an allocation is none of our business.
    pub(super) allocating: bool,
    by_key: HashMap<String, usize>,
    by_place: HashMap<PathBuf, usize>,
}

impl<'a> Ground<'a> {
    /// Reads it; what cannot be read of a single record or receipt is a finding and no error.
    pub(super) fn read(repo: &'a Repo, layout: &'a Layout, findings: &mut Findings) -> Result<Self> {
        // Looked at before anything else: who begins later leaves nothing behind that was seen before.
        let allocating = Lock::is_held(&layout.worktree_lock())?;
        let loose = Loose::look(layout)?;
        let receipts = receipts(layout, findings)?;
        let loops = loops(repo, layout, findings)?;
        let refs = repo.refs_below("refs/devlyn/")?;
        let branches = repo.refs_below("refs/heads/devlyn/")?;
        let (worktrees, registrations) = (repo.worktrees()?, repo.registrations()?);
        let mut tasks = HashMap::new();
        for found in &loops {
            let rows = found.queue.iter().flat_map(|queue| &queue.rows).map(|row| row.identity.clone());
            let named = found.manifest.iter().flat_map(|manifest| &manifest.tasks);
            let named = named.map(|task| found.record.loop_id.task(&task.id));
            tasks.extend(rows.chain(named).map(|identity| (identity.key().as_str().to_owned(), identity)));
        }
        let by_key = receipts.iter().enumerate().map(|(at, owned)| (owned.dir.key(), at)).collect();
        let by_place = worktrees.iter().enumerate().map(|(at, found)| (found.path.clone(), at)).collect();
        Ok(Self {
            repo,
            layout,
            loops,
            receipts,
            tasks,
            refs,
            branches,
            worktrees,
            registrations,
            loose,
            allocating,
            by_key,
            by_place,
        })
    }

    /// The readable receipts.
    pub(super) fn readable(&self) -> impl Iterator<Item = (&ReceiptDir, &Receipt)> {
        self.receipts.iter().filter_map(|owned| Some((&owned.dir, owned.receipt.as_ref().ok()?.as_ref()?)))
    }

    /// The directory of the receipt with this key, where there is one.
    pub(super) fn owned(&self, key: &str) -> Option<&Owned> {
        self.by_key.get(key).map(|at| &self.receipts[*at])
    }

    /// Where a reference should be, as far as a record or a receipt tells.
    pub(super) fn expected(&self, name: &str) -> Option<Oid> {
        let capture = self.loops.iter().map(|found| &found.record).find(|record| record.capture == name);
        if let Some(record) = capture {
            return Some(record.commit);
        }
        self.readable().find_map(|(_, receipt)| {
            if receipt.recovery_ref == name {
                return receipt.publish_sha;
            }
            let branch = name.strip_prefix("refs/heads/")?;
            (receipt.branch == branch).then(|| receipt.publish_sha.unwrap_or(receipt.baseline))
        })
    }

    /// The worktree that is on record at this place.
    pub(super) fn worktree(&self, place: &Path) -> Option<&Worktree> {
        self.by_place.get(place).map(|at| &self.worktrees[*at])
    }
}

fn receipts(layout: &Layout, findings: &mut Findings) -> Result<Vec<Owned>> {
    let mut found = Vec::new();
    for path in children(&layout.completions())? {
        let meta = std::fs::symlink_metadata(&path).map_err(StoreError::io(&path))?;
        if !meta.is_dir() {
            findings.warning(
                path.display(),
                "is no directory, and so no place of a receipt",
                "see what it is and move it away",
            );
            continue;
        }
        let dir = ReceiptDir::new(path);
        let receipt = Receipt::read(&dir).map_err(|error| told_of(&error));
        found.push(Owned { dir, receipt });
    }
    Ok(found)
}

fn loops(repo: &Repo, layout: &Layout, findings: &mut Findings) -> Result<Vec<Kept>> {
    let mut found = Vec::new();
    for path in children(&layout.loops())? {
        let name = path.file_name().and_then(|name| name.to_str());
        let Some(loop_id) = name.and_then(|name| LoopId::new(name).ok()) else { continue };
        match Record::read(layout, &loop_id) {
            Ok(None) => {}
            Ok(Some(record)) => {
                let file = |name: &str| repo.file(record.commit, name).ok().flatten().map(|blob| blob.data);
                let manifest = file(&loop_id.meta_file());
                let manifest = manifest.and_then(|bytes| Manifest::parse_meta(&loop_id, &bytes).ok());
                let queue = file(&loop_id.queue_file());
                let queue = queue.and_then(|bytes| QueueFile::parse(&loop_id, &bytes).ok().flatten());
                found.push(Kept { record, manifest, queue });
            }
            Err(error) => findings.error(
                layout.record(&loop_id).display(),
                told_of(&error),
                format!(
                    "put it right; the capture is at {}, and the whole queue waits until then",
                    loop_id.capture_ref()
                ),
            ),
        }
    }
    Ok(found)
}

/// What the error says, without the path that it begins with.
pub(super) fn told_of(error: &StoreError) -> String {
    match error {
        StoreError::Io { source, .. } => format!("cannot be read: {source}"),
        StoreError::Invalid { why, .. } => format!("cannot be relied on: {why}"),
        StoreError::Held(_) => error.to_string(),
    }
}

/// What stands in a directory, sorted; nothing where there is no such directory.
pub(super) fn children(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries = match std::fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(StoreError::io(folder)(error).into()),
    };
    let mut found = Vec::new();
    for entry in entries {
        found.push(entry.map_err(StoreError::io(folder))?.path());
    }
    found.sort();
    Ok(found)
}
