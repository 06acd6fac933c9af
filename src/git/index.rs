//! The tree that a commit of an index file would have, without a `git write-tree`, which costs forty times as much in a
//! repository of 100,000 files. Before Git calls a hook it has put the trees of most folders, or of all, on record in
//! the index itself (gitformat-index, "Cache tree"); what is missing is built from the entries, as Git builds it.

use std::collections::HashMap;
use std::path::Path;

use gix::bstr::{BString, ByteSlice};
use gix::objs::tree::{Entry, EntryKind};

use super::index_file::{IndexFile, Item, Recorded};
use super::{GitError, Oid, Repo, Result};

impl Repo {
    /// The tree that a commit of the index file `index` would have.
    ///
    /// # Errors
    /// Where it cannot be told: the index has conflicts, or is none.
    pub fn index_tree(&self, index: &Path) -> Result<Oid> {
        if let Some(tree) = self.tree_of_record(index) {
            return Ok(tree);
        }
        let output = self.git().env("GIT_INDEX_FILE", index).args(["write-tree"]).run()?;
        output.line().parse().map_err(GitError::Object)
    }

    /// The same from the record in the index; `None` where it has none, or has what only Git understands.
    fn tree_of_record(&self, index: &Path) -> Option<Oid> {
        let kind = self.inner.object_hash();
        let file = IndexFile::open(index, kind)?;
        let written = |tree| self.inner.has_object(tree).then_some(Oid(tree));
        let record = match file.recorded_at_end() {
            // The folders on record cover every entry, so that nothing between them can say otherwise.
            Some(Recorded { tree: Some(tree), entries: Some(covered), .. }) if covered == file.len() => {
                return written(tree);
            }
            Some(record) if record.tree.is_none() => record,
            _ => {
                let (record, plain) = file.recorded()?;
                if record.tree.is_some() || !plain {
                    return record.tree.and_then(written);
                }
                record
            }
        };
        let file = IndexFile::open(index, kind)?;
        let mut walk = Walk { repo: &self.inner, file, item: Item::default(), at_end: false };
        walk.advance(1)?;
        let tree = walk.tree(Some(&record), &mut BString::default())?;
        let (_, plain) = walk.file.extensions()?;
        (walk.at_end && plain).then_some(Oid(tree.unwrap_or_else(|| gix::ObjectId::empty_tree(kind))))
    }
}

/// A walk through the entries of an index, which stand in the order of their paths.
struct Walk<'a> {
    repo: &'a gix::Repository,
    file: IndexFile,
    item: Item,
    at_end: bool,
}

impl Walk<'_> {
    /// Goes on by `entries`.
    fn advance(&mut self, entries: usize) -> Option<()> {
        for left in (0..entries).rev() {
            self.at_end = !self.file.next(&mut self.item, left == 0)?;
        }
        Some(())
    }

    /// Writes the tree of the folder `prefix`, which ends in a slash, from the entries below it; `Some(None)` where
    /// there are none. `record` is what is on record of it.
    fn tree(&mut self, record: Option<&Recorded>, prefix: &mut BString) -> Option<Option<gix::ObjectId>> {
        let children = record.map(|record| record.children.as_slice()).unwrap_or_default();
        let known: HashMap<&[u8], &Recorded> = children.iter().map(|child| (child.name.as_slice(), child)).collect();
        let mut entries = Vec::new();
        while !self.at_end && self.item.path.starts_with(prefix) {
            let rest = &self.item.path[prefix.len()..];
            let Some(slash) = rest.find_byte(b'/') else {
                let filename = BString::from(rest);
                if self.item.unmerged {
                    return None;
                }
                if !self.item.intended {
                    let mode = match self.item.mode {
                        0o100_644 => EntryKind::Blob,
                        0o100_755 => EntryKind::BlobExecutable,
                        0o120_000 => EntryKind::Link,
                        0o160_000 => EntryKind::Commit,
                        _ => return None,
                    };
                    entries.push(Entry { mode: mode.into(), filename, oid: self.item.id? });
                }
                self.advance(1)?;
                continue;
            };
            let name = BString::from(&rest[..slash]);
            let child = known.get(name.as_slice()).copied();
            let oid = match child {
                Some(Recorded { tree: Some(tree), entries: Some(covered), .. }) if *covered > 0 => {
                    self.advance(*covered)?;
                    Some(*tree)
                }
                _ => {
                    let length = prefix.len();
                    prefix.extend_from_slice(&name);
                    prefix.push(b'/');
                    let built = self.tree(child, prefix)?;
                    prefix.truncate(length);
                    built
                }
            };
            entries.extend(oid.map(|oid| Entry { mode: EntryKind::Tree.into(), filename: name, oid }));
        }
        if entries.is_empty() {
            return Some(None);
        }
        entries.sort();
        let tree = gix::objs::Tree { entries };
        Some(Some(self.repo.write_object(&tree).ok()?.detach()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Git;

    /// Every kind of index, with what Git has put on record, and with what was changed since.
    #[test]
    fn the_tree_is_the_one_that_git_would_write() {
        for (format, settings) in [
            ("sha1", &["index.version=2"][..]),
            ("sha1", &["index.version=4"]),
            ("sha256", &["index.version=2"]),
            ("sha1", &["index.threads=2", "core.untrackedCache=true", "index.version=4"]),
            ("sha1", &["core.splitIndex=true"]),
        ] {
            let temp = tempfile::tempdir().unwrap();
            let git = |args: &[&str]| {
                let call = Git::new(temp.path()).config("user.name=A").config("user.email=a@b.example");
                settings.iter().fold(call, |call, setting| call.config(*setting)).args(args).run().unwrap()
            };
            let put = |name: &str, text: &str| {
                let path = temp.path().join(name);
                std::fs::create_dir_all(path.parent().unwrap()).unwrap();
                crate::store::write_bytes(&path, text.as_bytes()).unwrap();
            };
            git(&["init", "-q", &format!("--object-format={format}")]);
            for name in ["a/b/one", "a/b-/x", "a/b.c", "a/two", &"l".repeat(200), "only/intended", "z"] {
                put(name, name);
            }
            git(&["add", "."]);
            git(&["rm", "-q", "--cached", "only/intended", "z"]);
            git(&["commit", "-qm", "one"]);
            let repo = Repo::at(temp.path()).unwrap();
            let index = repo.git_dir().join("index");
            let split = settings.contains(&"core.splitIndex=true");
            let check = |what: &str| {
                let recorded = repo.tree_of_record(&index).map(|tree| tree.to_string());
                let written = git(&["write-tree"]).line();
                let silent = split || what == "all is gone";
                assert!(recorded.is_none() && silent || recorded.as_ref() == Some(&written), "{settings:?} {what}");
                assert_eq!(repo.index_tree(&index).unwrap().to_string(), written, "{settings:?} {what}");
            };
            check("as committed");
            put("a/b/one", "changed");
            git(&["add", "a"]);
            check("a file changed");
            put("new/folder/deep/x", "x");
            put("a/b/c/y", "y");
            git(&["add", "new", "a"]);
            check("folders are new");
            git(&["rm", "-q", "-r", "--cached", "a/b"]);
            check("a folder is gone");
            git(&["add", "--intent-to-add", "z", "only/intended"]);
            check("a file is intended");
            git(&["rm", "-q", "-r", "--cached", "."]);
            check("all is gone");
            assert!(IndexFile::open(&temp.path().join("z"), repo.inner.object_hash()).is_none());
        }
    }

    #[test]
    fn an_index_that_is_larger_than_the_window_is_read_to_its_end() {
        let temp = tempfile::tempdir().unwrap();
        let git = |args: &[&str], input: &str| Git::new(temp.path()).args(args).input(input).run().unwrap();
        git(&["init", "-q"], "");
        let repo = Repo::at(temp.path()).unwrap();
        let index = repo.git_dir().join("index");
        let blob = git(&["hash-object", "-w", "--stdin"], "x").line();
        // Sizes around that of the window, byte by byte.
        for extra in 0..24 {
            let entry = |n: usize| format!("100644 {blob}\td{:03}/{}-{n}\n", n % 500, "x".repeat(20));
            let last = format!("100644 {blob}\tz{}\n", "z".repeat(extra));
            let list: String = (0..1500).map(entry).chain([last]).collect();
            git(&["read-tree", "--empty"], "");
            git(&["update-index", "--index-info"], &list);
            git(&["write-tree"], "");
            git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},d001/new")], "");
            let recorded = repo.tree_of_record(&index).unwrap().to_string();
            assert_eq!(recorded, git(&["write-tree"], "").line());
            assert_eq!(repo.tree_of_record(&index).unwrap().to_string(), recorded);
        }
    }

    #[test]
    fn a_conflict_and_no_index_have_no_tree() {
        let temp = tempfile::tempdir().unwrap();
        let git = |args: &[&str], input: &str| Git::new(temp.path()).args(args).input(input).run().unwrap();
        git(&["init", "-q"], "");
        let repo = Repo::at(temp.path()).unwrap();
        let index = repo.git_dir().join("index");
        assert_eq!(repo.index_tree(&index).unwrap().to_string(), git(&["mktree"], "").line());
        let blob = git(&["hash-object", "-w", "--stdin"], "x").line();
        git(&["update-index", "--index-info"], &format!("100644 {blob} 1\tf\n100644 {blob} 2\tf\n"));
        assert!(repo.index_tree(&index).is_err());
        crate::store::write_bytes(&index, b"DIRC\0\0\0\x02\xff\xff\xff\xff").unwrap();
        assert!(repo.index_tree(&index).is_err());
    }
}
