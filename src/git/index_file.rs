//! An index file, read from front to end through a small window: a file of ten megabytes is looked at where the system
//! caches it, and nothing of it is kept but what is asked for.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::path::Path;

use gix::bstr::{BString, ByteSlice};

/// How much of the file is looked at in one go: it stays in the processor's cache.
const CHUNK: usize = 128 << 10;

/// The longest entry that is understood; no system has longer paths.
const LONGEST: usize = 8 << 10;

/// How much of the end of the file is looked at first.
const TAIL: u64 = 256 << 10;

/// How deep folders may lie in folders.
const DEEPEST: usize = 1000;

/// The largest record of trees that is read.
const LARGEST: usize = 64 << 20;

/// An entry.
#[derive(Debug, Default)]
pub(super) struct Item {
    pub(super) mode: u32,
    pub(super) id: Option<gix::ObjectId>,
    /// Whether it is one side of a conflict.
    pub(super) unmerged: bool,
    /// Whether it is only intended to be added.
    pub(super) intended: bool,
    pub(super) path: BString,
}

/// What is on record of a folder.
#[derive(Debug, Default)]
pub(super) struct Recorded {
    pub(super) name: BString,
    /// How many entries it covers, where it is as the entries are.
    pub(super) entries: Option<usize>,
    /// Its tree, where it is as the entries are.
    pub(super) tree: Option<gix::ObjectId>,
    pub(super) children: Vec<Recorded>,
}

/// An index file, walked through once.
pub(super) struct IndexFile {
    file: File,
    bytes: Vec<u8>,
    start: usize,
    end: usize,
    /// Whether nothing follows the window.
    whole: bool,
    hash: gix::hash::Kind,
    version: u32,
    left: u32,
}

impl IndexFile {
    /// The index at `path` of a repository whose ids are of the kind `hash`.
    pub(super) fn open(path: &Path, hash: gix::hash::Kind) -> Option<Self> {
        let file = File::open(path).ok()?;
        let (bytes, whole) = (vec![0; CHUNK], false);
        let mut index = Self { file, bytes, start: 0, end: 0, whole, hash, version: 0, left: 0 };
        let header = index.ahead(12)?;
        let (known, version, left) =
            (header.starts_with(b"DIRC"), number(header.get(4..)?)?, number(header.get(8..)?)?);
        (index.version, index.left) = (version, left);
        index.skip(12);
        (known && (2..=4).contains(&version)).then_some(index)
    }

    /// The next entry, put into `item` as far as it is `wanted`; `Some(false)` where there is no more.
    pub(super) fn next(&mut self, item: &mut Item, wanted: bool) -> Option<bool> {
        if self.left == 0 {
            return Some(false);
        }
        self.left -= 1;
        let (hash, version) = (self.hash, self.version);
        let fixed = 40 + hash.len_in_bytes() + 2;
        let ahead = self.ahead(LONGEST)?;
        let flags = u16::from_be_bytes(*ahead.get(fixed - 2..fixed)?.first_chunk()?);
        let extended = flags & 0x4000 != 0 && version >= 3;
        let start = fixed + if extended { 2 } else { 0 };
        if wanted {
            item.mode = number(ahead.get(24..)?)?;
            item.id = gix::ObjectId::try_from(ahead.get(40..fixed - 2)?).ok();
            item.unmerged = flags & 0x3000 != 0;
            item.intended = extended && ahead.get(fixed)? & 0x20 != 0;
        }
        let length = if version == 4 {
            let (strip, taken) = variable(ahead.get(start..)?)?;
            let rest = ahead.get(start + taken..)?;
            let name = rest.find_byte(0)?;
            let kept = item.path.len().checked_sub(strip)?;
            item.path.truncate(kept);
            item.path.extend_from_slice(&rest[..name]);
            start + taken + name + 1
        } else {
            let rest = ahead.get(start..)?;
            let name = match usize::from(flags & 0x0fff) {
                0x0fff => rest.find_byte(0)?,
                length => length,
            };
            if wanted {
                item.path.clear();
                item.path.extend_from_slice(rest.get(..name)?);
            }
            // One to eight zero bytes, to a multiple of eight.
            (start + name + 8) & !7
        };
        if length > ahead.len() {
            return None;
        }
        self.skip(length);
        Some(true)
    }

    /// What is on record of the root and the folders below it, read from the end of the file; `None` where it is not
    /// found there. The entries before it are not looked at: whoever uses more than a root that covers all of them
    /// walks through them, and then asks for [`IndexFile::extensions`].
    pub(super) fn recorded_at_end(&self) -> Option<Recorded> {
        let length = self.file.metadata().ok()?.len();
        let from = length.saturating_sub(TAIL);
        let mut tail = vec![0; usize::try_from(length - from).ok()?];
        self.file.read_exact_at(&mut tail, from).ok()?;
        let tail = tail.get(..tail.len().checked_sub(self.hash.len_in_bytes())?)?;
        // No path holds the zero bytes of a size, and what follows must end where the file ends.
        tail.find_iter("TREE").find_map(|at| {
            let (record, rest) = extension(&tail[at..])?;
            let mut after = rest;
            while !after.is_empty() {
                after = extension(after)?.1;
            }
            parse(&mut &*record, self.hash, 0)
        })
    }

    /// How many entries there are.
    pub(super) fn len(&self) -> usize {
        usize::try_from(self.left).unwrap_or(usize::MAX)
    }

    /// What is on record of the root and the folders below it, behind the entries.
    pub(super) fn recorded(mut self) -> Option<(Recorded, bool)> {
        let mut item = Item::default();
        while self.next(&mut item, false)? {}
        let (record, plain) = self.extensions()?;
        Some((record?, plain))
    }

    /// What stands behind the last entry: what is on record, and whether the entries are files and all there is; `None`
    /// where something stands there that only Git understands.
    pub(super) fn extensions(&mut self) -> Option<(Option<Recorded>, bool)> {
        let (mut found, mut plain) = (None, true);
        loop {
            // More than the checksum at the end, so that the end is seen.
            let checksum = self.hash.len_in_bytes();
            let ahead = self.ahead(checksum + 8)?;
            if ahead.len() <= checksum {
                return Some((found, plain));
            }
            let (name, size) = (*ahead.first_chunk::<4>()?, usize::try_from(number(ahead.get(4..)?)?).ok()?);
            self.skip(8);
            match &name {
                b"TREE" => {
                    let (hash, record) = (self.hash, self.take(size)?);
                    found = Some(parse(&mut record.as_slice(), hash, 0)?);
                    continue;
                }
                // Folders that stand for their files.
                b"sdir" => plain = false,
                // What a reader must understand.
                [first, ..] if !first.is_ascii_uppercase() => return None,
                _ => {}
            }
            self.pass(size)?;
        }
    }

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

    fn take(&mut self, size: usize) -> Option<Vec<u8>> {
        if size > LARGEST {
            return None;
        }
        let mut bytes = Vec::new();
        while bytes.len() < size {
            let step = (size - bytes.len()).min(CHUNK / 2);
            bytes.extend_from_slice(self.ahead(step)?.get(..step)?);
            self.skip(step);
        }
        Some(bytes)
    }

    fn pass(&mut self, size: usize) -> Option<()> {
        let mut left = size;
        while left > 0 {
            let step = left.min(CHUNK / 2);
            self.ahead(step)?.get(..step)?;
            self.skip(step);
            left -= step;
        }
        Some(())
    }
}

/// The content of the extension that `bytes` begin with, and what follows it.
fn extension(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (name, size) = (bytes.get(..4)?, usize::try_from(number(bytes.get(4..)?)?).ok()?);
    let known = name.iter().all(u8::is_ascii_alphanumeric);
    bytes.get(8..).filter(|_| known)?.split_at_checked(size)
}

fn number(bytes: &[u8]) -> Option<u32> {
    bytes.first_chunk().map(|four| u32::from_be_bytes(*four))
}

/// A number of as many bytes as it needs, and how many those are (gitformat-pack, "OFS_DELTA").
fn variable(bytes: &[u8]) -> Option<(usize, usize)> {
    let mut value = usize::from(bytes.first()? & 0x7f);
    let mut taken = 1;
    while bytes.get(taken - 1)? & 0x80 != 0 {
        value = value.checked_add(1)?.checked_mul(128)? + usize::from(bytes.get(taken)? & 0x7f);
        taken += 1;
    }
    Some((value, taken))
}

/// A folder of the record: its name, how many entries it covers (-1 where it is out of date and has no tree), how many
/// folders follow that lie in it, its tree.
fn parse(record: &mut &[u8], hash: gix::hash::Kind, depth: usize) -> Option<Recorded> {
    if depth > DEEPEST {
        return None;
    }
    let (name, rest) = record.split_at_checked(record.find_byte(0)?)?;
    let (line, rest) = rest.split_at_checked(rest.find_byte(b'\n')?)?;
    let (entries, folders) = line.get(1..)?.split_once_str(" ")?;
    let entries = entries.to_str().ok()?.parse::<i64>().ok()?;
    let folders = folders.to_str().ok()?.parse::<usize>().ok()?;
    *record = rest.get(1..)?;
    let mut found = Recorded { name: BString::from(name), ..Recorded::default() };
    if let Ok(entries) = usize::try_from(entries) {
        let (tree, rest) = record.split_at_checked(hash.len_in_bytes())?;
        found.tree = Some(gix::ObjectId::try_from(tree).ok()?);
        found.entries = Some(entries);
        *record = rest;
    }
    for _ in 0..folders {
        found.children.push(parse(record, hash, depth + 1)?);
    }
    Some(found)
}
