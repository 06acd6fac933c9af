//! References: read in-process where their files can be, written by one `git update-ref --stdin` that is kept open
//! for a command's lifetime. Every move names the value that it replaces.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::thread::JoinHandle;

use gix::bstr::ByteSlice;

use super::command::tail;
use super::{GitError, Oid, Repo, Result};

/// How often a reading that a concurrent `git pack-refs` disturbed is tried again before `git` is asked.
const READING_TRIES: usize = 5;

/// Who reads references.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Backend {
    /// Loose and packed files, in-process.
    Files,
    /// Any other storage, through `git`.
    Git,
}

/// One change of one reference, with what must be there before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RefChange {
    /// Make a reference that is not there.
    Create {
        /// Its full name.
        name: String,
        /// Where it points.
        new: Oid,
    },
    /// Move a reference.
    Update {
        /// Its full name.
        name: String,
        /// Where it points afterwards.
        new: Oid,
        /// Where it points now.
        old: Oid,
    },
    /// Take a reference away.
    Delete {
        /// Its full name.
        name: String,
        /// Where it points now.
        old: Oid,
    },
}

impl RefChange {
    fn name(&self) -> &str {
        match self {
            Self::Create { name, .. } | Self::Update { name, .. } | Self::Delete { name, .. } => name,
        }
    }

    fn line(&self) -> String {
        match self {
            Self::Create { name, new } => format!("create {name} {new}\n"),
            Self::Update { name, new, old } => format!("update {name} {new} {old}\n"),
            Self::Delete { name, old } => format!("delete {name} {old}\n"),
        }
    }
}

/// A `git update-ref --stdin` that waits for transactions.
pub(super) struct Updater {
    child: Child,
    stdin: ChildStdin,
    stdout: BufReader<ChildStdout>,
    /// What it says on standard error, read all the time so that a talkative hook never blocks it.
    stderr: Option<JoinHandle<Vec<u8>>>,
}

impl Drop for Updater {
    fn drop(&mut self) {
        // A transaction that was not committed is dropped with it; nothing waits for its exit status.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Repo {
    /// Where the reference with this full name points, `None` where it is not there.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn resolve(&self, name: &str) -> Result<Option<Oid>> {
        if self.backend == Backend::Files {
            for _ in 0..READING_TRIES {
                let before = self.packed_stamp();
                match self.inner.try_find_reference(name) {
                    Ok(Some(mut reference)) => {
                        return reference.peel_to_id().map(|id| Some(Oid(id.detach()))).map_err(GitError::gix);
                    }
                    Ok(None) if self.packed_stamp() == before => return Ok(None),
                    Ok(None) | Err(_) => {}
                }
            }
        }
        let output = self.git().args(["rev-parse", "-q", "--verify", "--end-of-options", name]).output()?;
        if output.code == Some(0) { output.line().parse().map(Some).map_err(GitError::Object) } else { Ok(None) }
    }

    /// Every reference whose full name begins with `prefix`, which ends in a slash.
    ///
    /// # Errors
    /// Where they cannot be read.
    pub fn refs_below(&self, prefix: &str) -> Result<BTreeMap<String, Oid>> {
        if self.backend == Backend::Files {
            for _ in 0..READING_TRIES {
                let before = self.packed_stamp();
                if let Some(found) = self.read_below(prefix)
                    && self.packed_stamp() == before
                {
                    return Ok(found);
                }
            }
        }
        let output = self.git().args(["for-each-ref", "--format=%(refname) %(objectname)", prefix]).run()?;
        let text = output.stdout.to_str_lossy();
        text.lines()
            .filter_map(|line| line.rsplit_once(' '))
            .map(|(name, id)| Ok((name.to_owned(), id.parse().map_err(GitError::Object)?)))
            .collect()
    }

    fn read_below(&self, prefix: &str) -> Option<BTreeMap<String, Oid>> {
        let platform = self.inner.references().ok()?;
        let mut found = BTreeMap::new();
        for item in platform.prefixed(prefix).ok()? {
            let reference = item.ok()?.detach();
            let id = reference.target.try_id()?.to_owned();
            found.insert(reference.name.as_bstr().to_str_lossy().into_owned(), Oid(id));
        }
        Some(found)
    }

    /// What tells one state of `packed-refs` from another: packing takes loose files away only after it has put
    /// their content there, so a reading with the same stamp before and after missed nothing.
    fn packed_stamp(&self) -> Option<(u64, u64, i64, i64)> {
        use std::os::unix::fs::MetadataExt;
        let meta = std::fs::metadata(self.common_dir().join("packed-refs")).ok()?;
        Some((meta.ino(), meta.len(), meta.mtime(), meta.mtime_nsec()))
    }

    /// Makes the changes all together or not at all, flushed to disk. A lock that a `git` left which was killed at the
    /// same work, and that nobody can hold any more, does not stand in their way.
    ///
    /// # Errors
    /// [`GitError::Ref`] where one of them is not where it was said to be; then nothing was changed.
    pub fn update_refs(&self, changes: &[RefChange]) -> Result<()> {
        self.try_update(changes)
            .or_else(|error| if self.release_refs(changes) { self.try_update(changes) } else { Err(error) })
    }

    fn try_update(&self, changes: &[RefChange]) -> Result<()> {
        let mut slot = self.updater.borrow_mut();
        // An interrupt on the terminal reaches it too; one that ended between two transactions is replaced.
        let mut updater = match slot.take().and_then(Updater::if_alive) {
            Some(updater) => updater,
            None => self.start_updater()?,
        };
        match updater.transact(changes) {
            Ok(()) => {
                *slot = Some(updater);
                Ok(())
            }
            Err(source) => Err(updater.refusal(&source)),
        }
    }

    /// Takes the abandoned locks of these references away, which are all ours; whether there were any, and only such.
    fn release_refs(&self, changes: &[RefChange]) -> bool {
        let ours = |name: &&str| {
            ["refs/devlyn/", "refs/heads/devlyn/", "refs/notes/devlyn"].iter().any(|our| name.starts_with(our))
        };
        let locks: Vec<_> = changes
            .iter()
            .map(RefChange::name)
            .filter(ours)
            .map(|name| self.common_dir().join(format!("{name}.lock")))
            .filter(|lock| std::fs::symlink_metadata(lock).is_ok())
            .collect();
        !locks.is_empty() && locks.iter().all(|lock| self.release(lock))
    }

    /// Takes the lock file away where no `git` in this repository can hold it; whether it is gone.
    pub(super) fn release(&self, lock: &std::path::Path) -> bool {
        let mut places = self.worktree_paths().unwrap_or_default();
        places.push(self.common_dir().to_owned());
        let places: Vec<_> = places.iter().map(std::path::PathBuf::as_path).collect();
        crate::os::locks::release(lock, &places)
    }

    fn start_updater(&self) -> Result<Updater> {
        let call = self.git().config("core.fsync=reference").args(["update-ref", "-m", "devlyn", "--stdin"]);
        let mut command = call.command();
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Spawn)?;
        match (child.stdin.take(), child.stdout.take(), child.stderr.take()) {
            (Some(stdin), Some(stdout), Some(stderr)) => {
                let stderr = Some(std::thread::spawn(move || last_words(stderr)));
                Ok(Updater { child, stdin, stdout: BufReader::new(stdout), stderr })
            }
            _ => Err(GitError::Ref("git update-ref has no pipes".to_owned())),
        }
    }
}

impl Updater {
    fn if_alive(mut self) -> Option<Self> {
        matches!(self.child.try_wait(), Ok(None)).then_some(self)
    }

    fn transact(&mut self, changes: &[RefChange]) -> std::io::Result<()> {
        let mut text = "start\n".to_owned();
        text.extend(changes.iter().map(RefChange::line));
        text.push_str("prepare\ncommit\n");
        self.stdin.write_all(text.as_bytes())?;
        self.stdin.flush()?;
        for step in ["start: ok", "prepare: ok", "commit: ok"] {
            let mut line = String::new();
            if self.stdout.read_line(&mut line)? == 0 || line.trim_end() != step {
                return Err(std::io::Error::other(format!("no {step:?}")));
            }
        }
        Ok(())
    }

    fn refusal(mut self, source: &std::io::Error) -> GitError {
        let _ = self.child.kill();
        let said = self.stderr.take().and_then(|reader| reader.join().ok()).unwrap_or_default();
        GitError::Ref(if said.is_empty() { source.to_string() } else { tail(&said) })
    }
}

/// The last few thousand bytes of a stream, read to its end.
fn last_words(mut stream: impl Read) -> Vec<u8> {
    let (mut kept, mut chunk) = (Vec::new(), [0; 4096]);
    while let Ok(read) = stream.read(&mut chunk)
        && read > 0
    {
        kept.extend_from_slice(&chunk[..read]);
        let surplus = kept.len().saturating_sub(chunk.len());
        kept.drain(..surplus);
    }
    kept
}
