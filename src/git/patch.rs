//! The text of what differs between two commits, and blobs whose size nobody vouches for. Never more of either in
//! memory than was asked for.

use std::io::Read;
use std::process::Stdio;

use super::command::tail;
use super::{GitError, Oid, Repo, Result};

/// The text of a difference.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Patch {
    /// As much of it as was asked for.
    pub text: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

/// Everything by which a configuration could make the text another one.
const OPTIONS: [&str; 16] = [
    "diff-tree",
    "-r",
    "-p",
    // Short ids: a pattern that looks for keys in hex must not find ours.
    "--abbrev=7",
    "--unified=3",
    "--inter-hunk-context=0",
    "--diff-algorithm=myers",
    "--indent-heuristic",
    "--src-prefix=a/",
    "--dst-prefix=b/",
    "--submodule=short",
    "--ignore-submodules=none",
    "--no-color",
    "--no-ext-diff",
    "--no-textconv",
    // A renamed file is taken away and added: what it holds is shown whole, and no likeness is guessed.
    "--no-renames",
];

impl Repo {
    /// The text that `git diff` has for the two commits or trees, the same under every configuration: renames are a
    /// deletion and an addition, names are not escaped for being non-ASCII. Attributes of the files are not asked, for
    /// a candidate must not hide its text by one; what is binary by its content stays `Binary files … differ`.
    ///
    /// # Errors
    /// Where `git` fails.
    pub fn patch(&self, old: Oid, new: Oid, at_most: usize) -> Result<Patch> {
        let empty = gix::ObjectId::empty_tree(self.inner.object_hash());
        let call = self
            .git()
            .config("core.quotePath=false")
            .config("core.attributesFile=/dev/null")
            .config("diff.suppressBlankEmpty=false")
            .config("diff.orderFile=")
            .env("GIT_DIFF_OPTS", "")
            // Known from Git 2.41 on; an older one still asks the attributes of the checkout.
            .env("GIT_ATTR_SOURCE", empty.to_hex().to_string())
            .args(OPTIONS)
            .args([old.to_string(), new.to_string()]);
        let mut command = call.command();
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().map_err(GitError::Spawn)?;
        let said = child.stderr.take().map(|mut stderr| {
            std::thread::spawn(move || {
                let mut kept = Vec::new();
                let _ = stderr.by_ref().take(64 << 10).read_to_end(&mut kept);
                // Read on, or it waits for us.
                let _ = std::io::copy(&mut stderr, &mut std::io::sink());
                kept
            })
        });
        let mut text = Vec::new();
        let read = match child.stdout.take() {
            Some(stdout) => stdout.take(at_most as u64 + 1).read_to_end(&mut text).map(|_| ()),
            None => Ok(()),
        };
        let cut = text.len() > at_most;
        if cut || read.is_err() {
            text.truncate(at_most);
            let _ = child.kill();
        }
        let status = child.wait().map_err(GitError::Spawn)?;
        let said = said.and_then(|reader| reader.join().ok()).unwrap_or_default();
        read.map_err(GitError::Spawn)?;
        if !cut && !status.success() {
            return Err(GitError::Failed {
                argv: format!("{} {old} {new}", OPTIONS.join(" ")),
                dir: self.work_dir().to_owned(),
                status: status.to_string(),
                stderr: tail(&said),
            });
        }
        Ok(Patch { text, cut })
    }

    /// The bytes of the blob `id`, nothing where it has more than `at_most`.
    ///
    /// # Errors
    /// Where it is not there or no blob.
    pub fn blob_at_most(&self, id: Oid, at_most: u64) -> Result<Option<Vec<u8>>> {
        let missing = || GitError::Object(format!("there is no blob {id}"));
        let header = self.inner.try_find_header(id.0).map_err(GitError::gix)?.ok_or_else(missing)?;
        if header.size() > at_most { Ok(None) } else { self.blob(id).map(Some) }
    }
}
