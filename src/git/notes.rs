//! Notes: what is said about a commit, kept beside history so that it travels without changing anything. Appended by
//! compare-and-swap, in the fan-out that Git itself would choose; a note that is there is never overwritten.

use std::collections::BTreeMap;

use gix::bstr::{BStr, ByteSlice};
use gix::object::tree::EntryKind as Kind;

use super::{Entry, EntryKind, GitError, Oid, RefChange, Repo, Result};

/// Where the results of tasks are noted.
pub const NOTES_REF: &str = "refs/notes/devlyn";

/// How often an append is tried again although nobody moved the reference: its lock is held, or was left behind.
const TRIES: usize = 3;

/// Where a note is, or would be put.
struct Place {
    /// The folders above it, two digits each.
    folders: Vec<String>,
    /// What stands in the last of them.
    entries: Vec<Entry>,
    /// The notes on the object that are there: the path and the blob of each.
    found: Vec<(String, Oid)>,
}

impl Repo {
    /// The note on `object` below `notes_ref`, `None` where there is none.
    ///
    /// # Errors
    /// Where the notes cannot be read.
    pub fn note(&self, notes_ref: &str, object: Oid) -> Result<Option<Vec<u8>>> {
        let Some(tip) = self.resolve(notes_ref)? else { return Ok(None) };
        let mut parts = Vec::new();
        for (_, blob) in self.place(tip, &object.to_string())?.found {
            parts.push(self.blob(blob)?);
        }
        Ok((!parts.is_empty()).then(|| parts.join(&b'\n')))
    }

    /// Appends `text` to the note on `object`; whether anything had to be changed for it.
    ///
    /// # Errors
    /// As [`Repo::append_notes`].
    pub fn append_note(&self, notes_ref: &str, object: Oid, text: &str) -> Result<bool> {
        self.append_notes(notes_ref, &[(object, text.to_owned())])
    }

    /// Appends each text to the note on its object, all in one commit on `notes_ref`. A text that the note holds
    /// already is not appended again; where that is so for all of them nothing is written and the answer is `false`.
    ///
    /// # Errors
    /// Where the notes cannot be read or written, or somebody holds the lock of the reference.
    pub fn append_notes(&self, notes_ref: &str, notes: &[(Oid, String)]) -> Result<bool> {
        let mut standing = 0;
        let mut tip = self.resolve(notes_ref)?;
        loop {
            let Some(new) = self.appended(tip, notes)? else { return Ok(false) };
            let name = notes_ref.to_owned();
            let change = match tip {
                Some(old) => RefChange::Update { name, new, old },
                None => RefChange::Create { name, new },
            };
            match self.update_refs(&[change]) {
                Ok(()) => return Ok(true),
                // Another writer was faster: what it wrote is what to append to. Each round lost is a note of
                // somebody else's that was written, so the rounds end.
                Err(GitError::Ref(why)) => {
                    let now = self.resolve(notes_ref)?;
                    standing += usize::from(now == tip);
                    if standing == TRIES {
                        return Err(GitError::Ref(why));
                    }
                    tip = now;
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The commit on top of `tip` that holds the notes too; `None` where `tip` has them all.
    fn appended(&self, tip: Option<Oid>, notes: &[(Oid, String)]) -> Result<Option<Oid>> {
        let memory = self.inner.clone().with_object_memory();
        let start = match tip {
            Some(tip) => memory.find_commit(tip.0).and_then(|commit| commit.tree()).map_err(GitError::gix)?,
            None => memory.empty_tree(),
        };
        let root = Oid(start.id);
        let mut editor = start.edit().map_err(GitError::gix)?.detach();
        let mut put = |path: &str, blob: gix::ObjectId| {
            editor.upsert(path.split('/').map(BStr::new), Kind::Blob, blob).map(|_| ()).map_err(GitError::gix)
        };

        let mut texts: BTreeMap<Oid, Vec<&str>> = BTreeMap::new();
        for (object, text) in notes {
            texts.entry(*object).or_default().push(text);
        }
        let (mut changed, mut placed): (bool, BTreeMap<String, NewInFolder>) = (false, BTreeMap::new());
        for (object, texts) in texts {
            let hex = object.to_string();
            let place = self.place(root, &hex)?;
            let mut said = Vec::new();
            for (_, blob) in &place.found {
                said.push(self.blob(*blob)?);
            }
            let mut note = said.first().cloned().unwrap_or_default();
            let length = note.len();
            for text in texts {
                if !holds(&note, text) && !said.iter().any(|note| holds(note, text)) {
                    append(&mut note, text);
                }
            }
            if note.len() == length {
                continue;
            }
            changed = true;
            let blob = memory.write_blob(&note).map_err(GitError::gix)?.detach();
            if let Some((path, _)) = place.found.first() {
                put(path, blob)?;
            } else {
                let folder = place.folders.iter().map(|name| format!("{name}/")).collect::<String>();
                let rest = hex[2 * place.folders.len()..].to_owned();
                let new = placed.entry(folder).or_insert_with(|| NewInFolder { entries: place.entries, notes: vec![] });
                new.notes.push((rest, blob));
            }
        }
        if !changed {
            return Ok(None);
        }
        let mut gone = Vec::new();
        for (folder, new) in placed {
            let spread = new.spreads();
            let path = |rest: &str| {
                if spread { format!("{folder}{}/{}", &rest[..2], &rest[2..]) } else { format!("{folder}{rest}") }
            };
            if spread {
                for (name, blob) in new.flat() {
                    put(&path(name), blob.0)?;
                    gone.push(format!("{folder}{name}"));
                }
            }
            for (rest, blob) in &new.notes {
                put(&path(rest), *blob)?;
            }
        }
        for path in gone {
            editor.remove(path.split('/').map(BStr::new)).map_err(GitError::gix)?;
        }
        let tree = editor.write(|tree| memory.write_object(tree).map(gix::Id::detach)).map_err(GitError::gix)?;
        let parents: Vec<Oid> = tip.into_iter().collect();
        let message = "Notes added by 'git devlyn'\n";
        self.write_commit(&memory, tree, &parents, message, self.author()?).map(Some)
    }

    /// Looks for the notes on the object `hex` in every fan-out, down from the commit or tree `root`.
    fn place(&self, root: Oid, hex: &str) -> Result<Place> {
        let mut place = Place { folders: Vec::new(), entries: self.folder(root, "")?, found: Vec::new() };
        loop {
            let above = place.folders.iter().map(|name| format!("{name}/")).collect::<String>();
            let rest = &hex[2 * place.folders.len()..];
            let (mut note, mut deeper) = (None, None);
            for entry in &place.entries {
                if entry.name == rest && entry.kind != EntryKind::Tree {
                    note = Some((format!("{above}{rest}"), entry.id));
                } else if entry.kind == EntryKind::Tree && entry.name.len() == 2 && rest[..2] == entry.name {
                    deeper = Some(entry.id);
                }
            }
            place.found.extend(note);
            match deeper {
                Some(id) if rest.len() > 2 => {
                    place.folders.push(rest[..2].to_owned());
                    place.entries = self.folder(id, "")?;
                }
                _ => return Ok(place),
            }
        }
    }
}

/// What is to stand in a folder of notes.
struct NewInFolder {
    /// What stands there.
    entries: Vec<Entry>,
    /// What is to be added: the name and the blob.
    notes: Vec<(String, gix::ObjectId)>,
}

impl NewInFolder {
    /// The notes that stand there without a folder of their own.
    fn flat(&self) -> impl Iterator<Item = (&str, Oid)> {
        let length = self.notes.first().map_or(0, |(name, _)| name.len());
        self.entries.iter().filter(|entry| entry.kind != EntryKind::Tree).filter_map(move |entry| {
            let name = entry.name.to_str().ok().filter(|name| name.len() == length)?;
            name.bytes().all(|b| b.is_ascii_hexdigit()).then_some((name, entry.id))
        })
    }

    /// Whether Git would put the notes of this folder into folders by their next two digits: when each of the sixteen
    /// next digits leads to at least two notes or to a folder.
    fn spreads(&self) -> bool {
        let mut seen = [0usize; 16];
        let mut count = |name: &[u8], n: usize| {
            if let Some(digit) = name.first().and_then(|b| char::from(*b).to_digit(16)) {
                seen[digit as usize] += n;
            }
        };
        self.flat().for_each(|(name, _)| count(name.as_bytes(), 1));
        self.notes.iter().for_each(|(name, _)| count(name.as_bytes(), 1));
        let folders = self.entries.iter().filter(|entry| entry.kind == EntryKind::Tree && entry.name.len() == 2);
        folders.for_each(|entry| count(&entry.name, 2));
        self.notes.first().is_some_and(|(name, _)| name.len() > 2) && seen.iter().all(|n| *n >= 2)
    }
}

/// Whether `note` holds `text` as lines of its own.
fn holds(note: &[u8], text: &str) -> bool {
    let text = text.trim_end_matches('\n').as_bytes();
    if text.is_empty() {
        return true;
    }
    note.find_iter(text).any(|at| {
        let end = at + text.len();
        (at == 0 || note[at - 1] == b'\n') && note.get(end).is_none_or(|byte| *byte == b'\n')
    })
}

/// Adds `text` as a paragraph, as `git notes append` does.
fn append(note: &mut Vec<u8>, text: &str) {
    if !note.is_empty() {
        if !note.ends_with(b"\n") {
            note.push(b'\n');
        }
        note.push(b'\n');
    }
    note.extend_from_slice(text.trim_end_matches('\n').as_bytes());
    note.push(b'\n');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::git::Git;

    fn repo() -> (tempfile::TempDir, Repo) {
        let temp = tempfile::tempdir().unwrap();
        let git = |args: &[&str]| Git::new(temp.path()).args(args).run().unwrap();
        git(&["init", "-q"]);
        git(&["config", "user.name", "A"]);
        git(&["config", "user.email", "a@b.example"]);
        let repo = Repo::at(temp.path()).unwrap();
        (temp, repo)
    }

    fn object(repo: &Repo, n: usize) -> Oid {
        repo.blob_id(format!("{n}").as_bytes()).unwrap()
    }

    #[test]
    fn a_note_is_appended_once_and_git_reads_it() {
        let (_temp, repo) = repo();
        let (one, two) = (object(&repo, 1), object(&repo, 2));
        let both = [(one, "a: 1\nb: 2\n".to_owned()), (two, "a: 2".to_owned())];
        assert!(repo.append_notes(NOTES_REF, &both).unwrap());
        let tip = repo.resolve(NOTES_REF).unwrap();
        assert!(!repo.append_notes(NOTES_REF, &both).unwrap());
        assert_eq!(repo.resolve(NOTES_REF).unwrap(), tip);
        assert!(!repo.append_note(NOTES_REF, one, "a: 1\n").unwrap(), "it is there as a line");
        repo.append_note(NOTES_REF, one, "a: 1\nb: 3\n").unwrap();
        let shown = repo.git().args(["notes", "--ref=devlyn", "show", &one.to_string()]).run().unwrap();
        assert_eq!(shown.line(), "a: 1\nb: 2\n\na: 1\nb: 3");
        assert_eq!(repo.note(NOTES_REF, two).unwrap().unwrap(), b"a: 2\n");
        assert_eq!(repo.note(NOTES_REF, object(&repo, 3)).unwrap(), None);
    }

    #[test]
    fn many_notes_lie_as_git_would_lay_them() {
        let (_temp, repo) = repo();
        let (ours, theirs) = ("refs/notes/ours", "refs/notes/theirs");
        for n in 0..90 {
            let object = object(&repo, n);
            repo.append_note(ours, object, &format!("n: {n}")).unwrap();
            let blob = repo.git().args(["hash-object", "-w", "--stdin"]).input(format!("{n}")).run().unwrap();
            assert_eq!(blob.line(), object.to_string());
            let text = format!("n: {n}");
            repo.git().args(["notes", "--ref=theirs", "add", "-m", &text, &object.to_string()]).run().unwrap();
        }
        let tree = |name: &str| repo.git().args(["rev-parse", &format!("{name}^{{tree}}")]).run().unwrap().line();
        assert_eq!(tree(ours), tree(theirs));
        let listed = repo.git().args(["notes", "--ref=ours", "list"]).run().unwrap();
        assert_eq!(listed.line().lines().count(), 90);
    }

    #[test]
    fn a_note_is_found_in_any_fan_out() {
        let (_temp, repo) = repo();
        let object = object(&repo, 1);
        let hex = object.to_string();
        let author = repo.author().unwrap().clone();
        for path in
            [hex.clone(), format!("{}/{}", &hex[..2], &hex[2..]), format!("{}/{}/{}", &hex[..2], &hex[2..4], &hex[4..])]
        {
            let files = [(path.clone(), b"x: 1\n".to_vec())];
            let new = crate::git::NewCommit { base: None, files: &files, parents: &[], message: "m", author: &author };
            let (_, commit) = repo.commit_new(&new).unwrap();
            let name = format!("refs/notes/t{}", path.len());
            repo.update_refs(&[RefChange::Create { name: name.clone(), new: commit }]).unwrap();
            assert!(repo.append_note(&name, object, "x: 2").unwrap());
            assert_eq!(repo.note(&name, object).unwrap().unwrap(), b"x: 1\n\nx: 2\n");
            let tip = repo.resolve(&name).unwrap().unwrap();
            assert_eq!(repo.file(tip, &path).unwrap().unwrap().data, b"x: 1\n\nx: 2\n");
        }
    }

    #[test]
    fn writers_at_the_same_time_lose_nothing() {
        let (temp, repo) = repo();
        std::thread::scope(|scope| {
            for writer in 0..3 {
                let path = temp.path();
                scope.spawn(move || {
                    let repo = Repo::at(path).unwrap();
                    for n in 0..5 {
                        repo.append_note(NOTES_REF, object(&repo, 7), &format!("w: {writer}.{n}")).unwrap();
                    }
                });
            }
        });
        let note = repo.note(NOTES_REF, object(&repo, 7)).unwrap().unwrap();
        assert_eq!(note.find_iter("w: ").count(), 15);
    }
}
