//! What comes with the source holds: the packages, of the quickstart and of the replay, have no fault, and of the files
//! in the corpus of each fuzz target holds what the target asserts.

#[path = "../fuzz/src/lib.rs"]
#[allow(unreachable_pub, clippy::expect_used, clippy::panic, reason = "a library of its own, for tests alone")]
mod fuzz;

use git_devlyn::package::{FileState, LoopId, Package, Source};
use std::path::{Path, PathBuf};

/// A package in a directory of the source, as its script would lay it out.
struct Shipped {
    root: PathBuf,
    prefix: String,
}

impl Source for Shipped {
    fn file(&self, path: &str) -> FileState {
        let Some(inside) = path.strip_prefix(&self.prefix) else { return FileState::Missing };
        match std::fs::read_to_string(self.root.join(inside)) {
            Ok(text) => FileState::Bytes(text.replace("@BASE@", &"1".repeat(40)).into_bytes()),
            Err(_) => FileState::Missing,
        }
    }

    fn is_commit(&self, id: &str) -> bool {
        id == "1".repeat(40)
    }
}

#[test]
fn shipped_packages_are_sound() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"));
    for (name, directory, tasks) in [
        ("greet", "examples/quickstart/docs/specs/greet", 3),
        ("greet-again", "examples/quickstart/docs/specs/greet-again", 2),
        ("shlex-next", "benches/replay", 3),
    ] {
        let loop_id = LoopId::new(name).expect(name);
        let shipped = Shipped { root: source.join(directory), prefix: format!("{}/", loop_id.directory()) };
        let package = Package::parse(&loop_id, &shipped).unwrap_or_else(|faults| panic!("{name}: {faults:#?}"));
        assert_eq!(package.tasks.len(), tasks, "{name}");
    }
}

#[test]
fn what_the_fuzz_targets_assert_holds_of_their_corpora() {
    let corpora = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus");
    for (name, holds) in fuzz::ALL {
        let files: Vec<PathBuf> = std::fs::read_dir(corpora.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
            .map(|entry| entry.expect(name).path())
            .collect();
        assert!(!files.is_empty(), "{name}");
        for file in files {
            let bytes = std::fs::read(&file).expect(name);
            let held = std::panic::catch_unwind(|| holds(&bytes));
            assert!(held.is_ok(), "{} breaks what its target asserts; see above", file.display());
        }
    }
}
