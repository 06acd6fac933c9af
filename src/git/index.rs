//! The tree that a commit of an index file would have, read from the index's own record of it where that is whole:
//! Git brings the record up to date before it calls a hook, and a `git write-tree` of 100,000 files costs forty times
//! as much.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use gix::bstr::ByteSlice;

use super::{GitError, Oid, Repo, Result};

/// How much of the file is looked at in one go: it stays in the processor's cache.
const CHUNK: usize = 128 << 10;

/// The longest entry with which the record is still looked for; no system has longer paths.
const LONGEST: usize = 8 << 10;

impl Repo {
    /// The tree that a commit of the index file `index` would have.
    ///
    /// # Errors
    /// Where it cannot be told: the index has conflicts, or is none.
    pub fn index_tree(&self, index: &Path) -> Result<Oid> {
        let recorded = File::open(index).ok().and_then(|file| recorded_tree(file, self.inner.object_hash()));
        if let Some(tree) = recorded
            && self.inner.has_object(tree)
        {
            return Ok(Oid(tree));
        }
        let output = self.git().env("GIT_INDEX_FILE", index).args(["write-tree"]).run()?;
        output.line().parse().map_err(GitError::Object)
    }
}

/// A file that is walked through once, with a window that moves on.
struct Window {
    file: File,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether nothing follows the window.
    whole: bool,
}

impl Window {
    /// The next bytes, at least `wanted` of them unless the file ends.
    fn ahead(&mut self, wanted: usize) -> Option<&[u8]> {
        if self.end - self.start < wanted && !self.whole {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
            while self.end < wanted {
                let read = self.file.read(&mut self.bytes[self.end..]).ok()?;
                if read == 0 {
                    self.whole = true;
                    break;
                }
                self.end += read;
            }
        }
        Some(&self.bytes[self.start..self.end])
    }

    /// Goes on by `length` bytes, which were looked at.
    fn skip(&mut self, length: usize) {
        self.start = (self.start + length).min(self.end);
    }
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_be_bytes(*four))
}

/// The tree on record in the index `file` (gitformat-index, "Cache tree"), where it is there and whole.
fn recorded_tree(file: File, hash: gix::hash::Kind) -> Option<gix::ObjectId> {
    let mut window = Window { file, bytes: vec![0; CHUNK], start: 0, end: 0, whole: false };
    let header = window.ahead(12)?;
    if header.get(..4)? != b"DIRC" {
        return None;
    }
    let (version, entries) = (number(&header[4..])?, number(&header[8..])?);
    window.skip(12);
    let fixed = 40 + hash.len_in_bytes() + 2;
    for _ in 0..entries {
        let ahead = window.ahead(LONGEST)?;
        let flags = u16::from_be_bytes(*ahead.get(fixed - 2..fixed)?.first_chunk()?);
        let start = fixed + if flags & 0x4000 != 0 && version >= 3 { 2 } else { 0 };
        let length = match version {
            2 | 3 => {
                let name = match usize::from(flags & 0x0fff) {
                    0x0fff => ahead.get(start..)?.find_byte(0)?,
                    length => length,
                };
                // One to eight zero bytes, to a multiple of eight.
                (start + name + 8) & !7
            }
            4 => {
                let prefix = ahead.get(start..)?.iter().position(|byte| byte & 0x80 == 0)? + 1;
                start + prefix + ahead.get(start + prefix..)?.find_byte(0)? + 1
            }
            _ => return None,
        };
        if length > ahead.len() {
            return None;
        }
        window.skip(length);
    }
    loop {
        let ahead = window.ahead(8)?;
        let (name, size) = (*ahead.first_chunk::<4>()?, usize::try_from(number(ahead.get(4..)?)?).ok()?);
        match &name {
            b"TREE" => {
                window.skip(8);
                return root(window.ahead(256.min(size))?, hash);
            }
            // What a reader must understand, other than that folders stand for their files.
            b"sdir" => {}
            [first, ..] if !first.is_ascii_uppercase() => return None,
            _ => {}
        }
        window.skip(8);
        let mut left = size;
        while left > 0 {
            let step = left.min(CHUNK / 2);
            if window.ahead(step)?.len() < step {
                return None;
            }
            window.skip(step);
            left -= step;
        }
    }
}

/// The root in a cache tree: no name, how many entries it covers, how many folders it has, its tree. A root that does
/// not cover everything has -1 entries and no tree.
fn root(record: &[u8], hash: gix::hash::Kind) -> Option<gix::ObjectId> {
    let rest = record.strip_prefix(b"\0")?;
    let line = rest.find_byte(b'\n')?;
    let (entries, _) = rest[..line].split_once_str(" ")?;
    if entries.starts_with(b"-") {
        return None;
    }
    gix::ObjectId::try_from(rest.get(line + 1..line + 1 + hash.len_in_bytes())?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Git;

    #[test]
    fn the_tree_is_read_from_every_kind_of_index() {
        for (format, settings) in [
            ("sha1", &["index.version=2"][..]),
            ("sha1", &["index.version=4"]),
            ("sha256", &["index.version=2"]),
            ("sha1", &["index.threads=2", "core.untrackedCache=true"]),
            ("sha1", &["core.splitIndex=true"]),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let git = |args: &[&str]| {
                let call = Git::new(temp.path()).config("user.name=A").config("user.email=a@b.example");
                settings.iter().fold(call, |call, setting| call.config(*setting)).args(args).run().unwrap()
            };
            git(&["init", "-q", &format!("--object-format={format}")]);
            std::fs::create_dir_all(temp.path().join("a/b")).unwrap();
            for name in ["a/b/one", "a/two", &"l".repeat(200), "z"] {
                crate::store::write_bytes(&temp.path().join(name), name.as_bytes()).unwrap();
            }
            git(&["add", "."]);
            git(&["add", "--intent-to-add", "z"]);
            git(&["commit", "-qm", "one"]);
            let repo = Repo::at(temp.path()).unwrap();
            let index = repo.git_dir().join("index");
            let tree = git(&["rev-parse", "HEAD^{tree}"]).line();
            let kind = repo.inner.object_hash();
            let recorded = recorded_tree(File::open(&index).unwrap(), kind).map(|id| id.to_string());
            if !settings.contains(&"core.splitIndex=true") {
                assert_eq!(recorded.as_deref(), Some(tree.as_str()), "{settings:?}");
            }
            assert_eq!(repo.index_tree(&index).unwrap().to_string(), tree);
            // What is staged since then is on no record.
            crate::store::write_bytes(&temp.path().join("a/b/one"), b"changed").unwrap();
            git(&["add", "."]);
            assert_eq!(recorded_tree(File::open(&index).unwrap(), kind), None);
            assert_eq!(repo.index_tree(&index).unwrap().to_string(), git(&["write-tree"]).line());
            assert!(recorded_tree(File::open(temp.path().join("z")).unwrap(), kind).is_none());
        }
    }
}
