//! References: files that Git itself chokes on, and names that nothing here knows.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::ground::{Ground, children};
use super::{Findings, Result, typed};
use crate::package::{Identity, Key, LoopId};
use crate::shell;
use crate::store::{Layout, Receipt};

/// Where our references have their files, where they have some.
const FOLDERS: [&str; 3] = ["refs/devlyn", "refs/heads/devlyn", "refs/notes/devlyn"];

/// What is wrong with the files of references.
#[derive(Debug, Default)]
pub(super) struct Loose {
    /// What no reference's file holds, by the reference's name.
    broken: BTreeMap<String, (PathBuf, String)>,
    /// Locks of references.
    locks: Vec<PathBuf>,
}

impl Loose {
    /// Reads every file of a reference of ours that is not packed. Git reads them on its own and says little.
    pub(super) fn look(layout: &Layout) -> Result<Self> {
        let mut found = Self::default();
        for folder in FOLDERS {
            found.below(&layout.common().join(folder), folder)?;
            found.lock(&layout.common().join(format!("{folder}.lock")));
        }
        Ok(found)
    }

    /// Whether nothing else is said of this reference, because its file is broken.
    pub(super) fn is_broken(&self, name: &str) -> bool {
        self.broken.contains_key(name)
    }

    fn lock(&mut self, path: &Path) {
        if std::fs::symlink_metadata(path).is_ok_and(|meta| !meta.is_dir()) {
            self.locks.push(path.to_owned());
        }
    }

    fn below(&mut self, path: &Path, name: &str) -> Result<()> {
        let Ok(meta) = std::fs::symlink_metadata(path) else { return Ok(()) };
        if meta.is_dir() {
            for child in children(path)? {
                let file = child.file_name().unwrap_or_default().to_string_lossy().into_owned();
                self.below(&child, &format!("{name}/{file}"))?;
            }
            return Ok(());
        }
        if name.ends_with(".lock") {
            self.lock(path);
            return Ok(());
        }
        let why = match std::fs::read(path) {
            Ok(bytes) if bytes.is_empty() => "is an empty file".to_owned(),
            Ok(bytes) if bytes.starts_with(b"ref: ") => "is a symbolic reference, which none of ours is".to_owned(),
            Ok(bytes) if is_id(&bytes) => return Ok(()),
            Ok(_) => "holds no object's id".to_owned(),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(()),
            Err(error) => format!("cannot be read ({error})"),
        };
        self.broken.insert(name.to_owned(), (path.to_owned(), why));
        Ok(())
    }
}

fn is_id(bytes: &[u8]) -> bool {
    let text = bytes.trim_ascii_end();
    matches!(text.len(), 40 | 64) && text.iter().all(u8::is_ascii_hexdigit)
}

/// Broken files, locks that were left, and references that nothing here knows.
pub(super) fn check(ground: &Ground<'_>, findings: &mut Findings) -> Result<()> {
    for (name, (path, why)) in &ground.loose.broken {
        let back = ground.expected(name).map_or_else(String::new, |id| {
            format!(", then put it back with `{}`", shell::line(["git", "update-ref", name, &id.to_string()]))
        });
        findings.error(
            path.display(),
            format!("{why} and no reference; a power cut leaves such files, and `git fetch` and `git gc` fail on them"),
            format!("remove it with `{}`{back}", typed(&["rm"], path)),
        );
    }
    for path in &ground.loose.locks {
        // What a living `git` holds is gone when it is looked at again.
        findings.warning(
            path.display(),
            "is the lock of a `git` that did not end well; nothing can be written there",
            format!("make sure that nothing of Git's works here, then `{}`", typed(&["rm"], path)),
        );
    }
    for (name, id) in &ground.refs {
        let delete = shell::line(["git", "update-ref", "-d", name, &id.to_string()]);
        match name.strip_prefix("refs/devlyn/").and_then(|rest| rest.split_once('/')) {
            _ if ground.loose.is_broken(name) => {}
            Some(("completed", key)) => {
                if ground.owned(key).is_none() {
                    findings.error(
                        name,
                        "keeps a result that no receipt here tells of",
                        format!(
                            "put {} back if it was removed; see the result with `git log {id}`, and give it up with \
                             `{delete}`",
                            ground.layout.completions().join(key).display()
                        ),
                    );
                }
            }
            Some(("captures", loop_name)) => {
                if let Ok(loop_id) = LoopId::new(loop_name)
                    && std::fs::symlink_metadata(ground.layout.record(&loop_id)).is_ok()
                {
                    continue;
                }
                let of_it = |receipt: &Receipt| receipt.task.split_once('.').is_some_and(|(of, _)| of == loop_name);
                if let Some((dir, _)) = ground.readable().find(|(_, receipt)| of_it(receipt)) {
                    findings.error(
                        name,
                        format!("is a capture whose add record is gone, and {} is of that loop", dir.receipt().display()),
                        format!(
                            "put devlyn-loops/{loop_name}/added.json in the common Git directory back from a backup; until \
                             then nothing is drained"
                        ),
                    );
                    continue;
                }
                findings.warning(
                    name,
                    "is a capture without an add record; an interrupted `git devlyn add` leaves that",
                    format!(
                        "add the loop again (`git devlyn add {loop_name}`) with its package in place, or give it up with \
                         `{delete}`"
                    ),
                );
            }
            _ => findings.warning(
                name,
                "is none of the references that git devlyn makes; nothing reads it",
                format!("see what it is with `git log {id}`; `{delete}` removes it"),
            ),
        }
    }
    branches(ground, findings);
    Ok(())
}

/// Task branches that no receipt owns.
fn branches(ground: &Ground<'_>, findings: &mut Findings) {
    if ground.allocating {
        return;
    }
    for (name, id) in &ground.branches {
        let branch = name.trim_start_matches("refs/heads/");
        let parts: Vec<&str> = branch.split('/').collect();
        let [_, loop_id, task] = parts.as_slice() else { continue };
        let Ok(identity) = Identity::parse(&format!("{loop_id}.{task}")) else { continue };
        if ground.loose.is_broken(name) || ground.owned(Key::of_branch(branch).as_str()).is_some() {
            continue;
        }
        findings.warning(
            name,
            format!(
                "is the branch of {identity}, and no receipt owns it; that task is not allocated while it is there"
            ),
            format!(
                "see it with `git log {id}`; move it away with `git branch -m {branch} <other>`, or remove it with \
                 `git branch -D {branch}`"
            ),
        );
    }
}
