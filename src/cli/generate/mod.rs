//! Man pages and completions, written from the definitions that read the command line.
//!
//! What is written here is committed in `man/` and `completions/`; a test fails when it is stale.

mod man;
mod sections;
mod shells;

use super::args::{Artifact, Cli};
use clap::CommandFactory;
use std::io::{self, Write};
use std::path::Path;

/// A file to write: its path below the chosen directory, and its bytes.
#[derive(Debug)]
pub struct File {
    /// Path below the directory, with `/` between its parts.
    pub path: String,
    /// What the file holds.
    pub bytes: Vec<u8>,
}

/// Every file of an artifact.
pub fn files(artifact: Artifact) -> io::Result<Vec<File>> {
    match artifact {
        Artifact::Man => man::pages(&Cli::command()),
        Artifact::Completions => Ok(shells::completions(&Cli::command())),
    }
}

/// Writes every file of an artifact below `dir`.
pub fn write(artifact: Artifact, dir: &Path) -> io::Result<()> {
    for file in files(artifact)? {
        let path = dir.join(&file.path);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent)?;
        }
        std::fs::File::create(&path)?.write_all(&file.bytes)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `make man completions` writes them anew.
    #[test]
    fn what_is_committed_is_fresh() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for (artifact, dir) in [(Artifact::Man, "man"), (Artifact::Completions, "completions")] {
            for file in files(artifact).expect("generated") {
                let path = root.join(dir).join(&file.path);
                let committed = std::fs::read(&path).unwrap_or_default();
                assert!(committed == file.bytes, "{} is stale: make man completions", path.display());
            }
        }
    }

    /// No page of section 1 stays behind when its command is gone.
    #[test]
    fn every_page_belongs_to_a_command() {
        let pages: Vec<_> = files(Artifact::Man).expect("generated").into_iter().map(|file| file.path).collect();
        let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("man");
        for entry in std::fs::read_dir(dir).expect("man") {
            let name = entry.expect("entry").file_name().into_string().expect("UTF-8");
            assert!(!name.ends_with(".1") || pages.contains(&name), "{name} belongs to no command");
        }
    }

    #[test]
    fn files_are_written_below_the_directory() {
        let dir = tempfile::tempdir().expect("a directory");
        write(Artifact::Completions, dir.path()).expect("written");
        for file in files(Artifact::Completions).expect("generated") {
            assert_eq!(std::fs::read(dir.path().join(&file.path)).expect(&file.path), file.bytes);
        }
    }

    /// What people are not meant to type is not offered.
    #[test]
    fn hidden_commands_are_not_completed() {
        for file in files(Artifact::Completions).expect("generated") {
            let text = String::from_utf8(file.bytes).expect("UTF-8");
            assert!(text.contains("clean-scratch"), "{}", file.path);
            assert!(!text.contains("pre-merge-commit") && !text.contains("generate"), "{}", file.path);
        }
    }
}
