//! One stream of a check: from its pipe into its evidence file. Never holds more than a buffer of it in memory, and
//! never writes more of it than it was told to keep.

use std::fs::{File, OpenOptions};
use std::io::{self, PipeReader, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::ProcessError;
use crate::package::hex;

/// A stream as it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stream {
    /// Size of the evidence file, the line that tells of a cut included.
    pub bytes: u64,
    /// SHA-256 of the evidence file, in hex.
    pub sha256: String,
    /// Bytes that were printed and not kept.
    pub cut: u64,
}

/// A stream that is being kept.
#[derive(Debug)]
pub(super) struct Pump {
    source: Option<PipeReader>,
    path: PathBuf,
    file: File,
    buffer: Vec<u8>,
    digest: Sha256,
    keep: u64,
    bytes: u64,
    cut: u64,
    last: u8,
    failed: Option<io::Error>,
}

impl Pump {
    /// A pump into the new file `path`.
    ///
    /// # Errors
    /// Where the file exists (as a link, too) or cannot be made.
    pub(super) fn new(path: &Path, keep: u64) -> Result<Self, ProcessError> {
        let file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(path)
            .map_err(|source| ProcessError::Output { path: path.to_owned(), source })?;
        Ok(Self {
            source: None,
            path: path.to_owned(),
            file,
            buffer: vec![0; 64 * 1024],
            digest: Sha256::new(),
            keep,
            bytes: 0,
            cut: 0,
            last: b'\n',
            failed: None,
        })
    }

    /// Reads from `source` from now on.
    pub(super) fn connect(&mut self, source: PipeReader) {
        self.source = Some(source);
    }

    /// The open pipe; none once its last writer is gone.
    pub(super) fn source(&self) -> Option<&PipeReader> {
        self.source.as_ref()
    }

    /// The evidence could not be written.
    pub(super) fn has_failed(&self) -> bool {
        self.failed.is_some()
    }

    /// Takes one buffer from a pipe that has something to say. It blocks where it has not.
    pub(super) fn step(&mut self) {
        let Some(source) = &mut self.source else { return };
        match source.read(&mut self.buffer) {
            Ok(0) => self.source = None,
            Ok(count) => {
                let room = usize::try_from(self.keep - self.bytes.min(self.keep)).unwrap_or(usize::MAX);
                let kept = count.min(room);
                self.cut += (count - kept) as u64;
                self.write(kept);
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => {
                self.source = None;
                self.failed.get_or_insert(error);
            }
        }
    }

    /// Reads no more, whoever may still write.
    pub(super) fn close(&mut self) {
        self.source = None;
    }

    /// What was kept. It is not flushed: whoever relies on it flushes it, or copies of it, together.
    ///
    /// # Errors
    /// Where any of it could not be read or written.
    pub(super) fn finish(mut self) -> Result<Stream, ProcessError> {
        if self.cut > 0 {
            let lead = if self.last == b'\n' { "" } else { "\n" };
            let note = format!("{lead}[git-devlyn kept {} bytes and cut {} more]\n", self.bytes, self.cut);
            self.buffer.splice(..note.len(), note.bytes());
            self.write(note.len());
        }
        let kept = match self.failed.take() {
            Some(error) => Err(error),
            None => Ok(()),
        };
        kept.map_err(|source| ProcessError::Output { path: self.path, source })?;
        Ok(Stream { bytes: self.bytes, sha256: hex(&self.digest.finalize()), cut: self.cut })
    }

    fn write(&mut self, count: usize) {
        let kept = &self.buffer[..count];
        if self.failed.is_some() || kept.is_empty() {
            return;
        }
        match self.file.write_all(kept) {
            Ok(()) => {
                self.digest.update(kept);
                self.bytes += count as u64;
                self.last = kept[count - 1];
            }
            Err(error) => self.failed = Some(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::package::sha256_hex;

    fn pumped(words: &[u8], keep: u64) -> (Vec<u8>, Stream) {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("out");
        let mut pump = Pump::new(&path, keep).unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(words).unwrap();
        drop(writer);
        pump.connect(reader);
        while pump.source().is_some() {
            pump.step();
        }
        let stream = pump.finish().unwrap();
        (std::fs::read(path).unwrap(), stream)
    }

    #[test]
    fn the_file_is_what_the_record_says_cut_or_not() {
        for (keep, text, cut) in [
            (9, "abc\ndef", 0),
            (7, "abc\ndef", 0),
            (4, "abc\n[git-devlyn kept 4 bytes and cut 3 more]\n", 3),
            (2, "ab\n[git-devlyn kept 2 bytes and cut 5 more]\n", 5),
            (0, "[git-devlyn kept 0 bytes and cut 7 more]\n", 7),
        ] {
            let (bytes, stream) = pumped(b"abc\ndef", keep);
            assert_eq!(String::from_utf8(bytes).unwrap(), text);
            assert_eq!(stream, Stream { bytes: text.len() as u64, sha256: sha256_hex(text.as_bytes()), cut });
        }
    }

    #[test]
    fn evidence_is_never_written_over() {
        let root = tempfile::tempdir().unwrap();
        let (there, link) = (root.path().join("there"), root.path().join("link"));
        File::create(&there).unwrap();
        std::os::unix::fs::symlink(root.path().join("nowhere"), &link).unwrap();
        for path in [&there, &link, &root.path().join("no/such/directory")] {
            let error = Pump::new(path, 1).unwrap_err();
            assert!(error.to_string().contains(path.to_str().unwrap()), "{error}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_told_by_the_file_s_name() {
        let mut pump = Pump::new(&tempfile::tempdir().unwrap().path().join("out"), 9).unwrap();
        pump.file = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let (reader, mut writer) = io::pipe().unwrap();
        writer.write_all(b"x").unwrap();
        pump.connect(reader);
        pump.step();
        assert!(pump.has_failed());
        assert!(matches!(pump.finish(), Err(ProcessError::Output { .. })));
    }
}
