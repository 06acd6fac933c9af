//! What a child knows of us, and which program a word names. Never changes our own environment.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The variables that tie Git to one repository. A child that works in another directory than the one we were
/// called for must not see them: an inherited `GIT_DIR` turns its `git init` against the shared repository.
/// `GIT_EXEC_PATH` and `GIT_CONFIG_*` stay, for the latter may carry credentials.
pub const GIT_LOCAL_VARIABLES: [&str; 13] = [
    "GIT_DIR",
    "GIT_WORK_TREE",
    "GIT_COMMON_DIR",
    "GIT_INDEX_FILE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_NAMESPACE",
    "GIT_PREFIX",
    "GIT_QUARANTINE_PATH",
    "GIT_SHALLOW_FILE",
    "GIT_GRAFT_FILE",
    "GIT_IMPLICIT_WORK_TREE",
    "GIT_INTERNAL_SUPER_PREFIX",
];

/// The environment of a child: ours without [`GIT_LOCAL_VARIABLES`], and what was added.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Environment {
    additions: BTreeMap<OsString, OsString>,
}

impl Environment {
    /// Ours without [`GIT_LOCAL_VARIABLES`].
    #[must_use]
    pub fn inherited() -> Self {
        Self::default()
    }

    /// The same with `name` set to `value`, even a local one of Git.
    #[must_use]
    pub fn with(mut self, name: impl AsRef<OsStr>, value: impl AsRef<OsStr>) -> Self {
        self.additions.insert(name.as_ref().to_owned(), value.as_ref().to_owned());
        self
    }

    /// What a child finds under `name`.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<OsString> {
        let inherited = || (!GIT_LOCAL_VARIABLES.contains(&name)).then(|| std::env::var_os(name)).flatten();
        self.additions.get(OsStr::new(name)).cloned().or_else(inherited)
    }

    pub(super) fn apply(&self, command: &mut Command) {
        // Removed one by one: an environment that was cleared costs `Command` its fast way to start a program.
        for name in GIT_LOCAL_VARIABLES {
            command.env_remove(name);
        }
        command.envs(&self.additions);
    }
}

/// What a program's name leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Program {
    /// This file, which may be executed.
    Found(PathBuf),
    /// Nothing.
    NotFound,
    /// This file only, which may not be executed or is a directory.
    NotExecutable(PathBuf),
}

/// The program that `argv0` starts in `cwd` with `PATH` being `path`: a bare name is looked for in its directories, any
/// other is a path from `cwd`.
#[must_use]
pub fn find_program(argv0: &OsStr, path: Option<&OsStr>, cwd: &Path) -> Program {
    if argv0.is_empty() {
        return Program::NotFound;
    }
    if argv0.as_encoded_bytes().contains(&b'/') {
        return look(cwd.join(argv0));
    }
    let mut best = Program::NotFound;
    // Without PATH the C library looks in these two; an empty entry is the current directory.
    for directory in std::env::split_paths(path.unwrap_or(OsStr::new("/bin:/usr/bin"))) {
        match look(cwd.join(directory).join(argv0)) {
            found @ Program::Found(_) => return found,
            Program::NotFound => {}
            dud @ Program::NotExecutable(_) => {
                if best == Program::NotFound {
                    best = dud;
                }
            }
        }
    }
    best
}

fn look(file: PathBuf) -> Program {
    let Ok(metadata) = file.metadata() else { return Program::NotFound };
    if metadata.is_file() && rustix::fs::access(&file, rustix::fs::Access::EXEC_OK).is_ok() {
        Program::Found(file)
    } else {
        Program::NotExecutable(file)
    }
}

#[cfg(test)]
mod tests {
    use std::fs::{File, Permissions};
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_child_sees_no_repository_of_ours_but_what_was_added() {
        let environment = Environment::inherited().with("GIT_DIR", "/given").with("X", "1");
        let mut command = super::super::testing::shell("", &[], Path::new("/"));
        environment.apply(&mut command);
        let set: BTreeMap<_, _> = command.get_envs().collect();
        assert_eq!(set[OsStr::new("GIT_INDEX_FILE")], None);
        assert_eq!(set[OsStr::new("GIT_DIR")], Some(OsStr::new("/given")));
        assert!(!set.contains_key(OsStr::new("GIT_EXEC_PATH")));
        assert_eq!(environment.get("X").unwrap(), "1");
        assert_eq!(environment.get("PATH"), std::env::var_os("PATH"));
        assert_eq!(Environment::inherited().get("GIT_DIR"), None);
    }

    #[test]
    fn a_program_is_found_as_the_system_finds_it() {
        let root = tempfile::tempdir().unwrap();
        for name in ["one", "two", "two/tool.d"] {
            std::fs::create_dir(root.path().join(name)).unwrap();
        }
        for (name, mode) in [("one/tool", 0o644), ("two/tool", 0o755), ("one/data", 0o644)] {
            let file = File::create(root.path().join(name)).unwrap();
            file.set_permissions(Permissions::from_mode(mode)).unwrap();
        }
        let find = |argv0: &str, path: &str| find_program(argv0.as_ref(), Some(path.as_ref()), root.path());
        assert_eq!(find("tool", "one:two"), Program::Found(root.path().join("two/tool")));
        assert_eq!(find("data", "two:one"), Program::NotExecutable(root.path().join("one/data")));
        assert_eq!(find("tool.d", "two"), Program::NotExecutable(root.path().join("two/tool.d")));
        assert_eq!(find("two/tool", ""), Program::Found(root.path().join("two/tool")));
        assert_eq!(find("./one/tool", "two"), Program::NotExecutable(root.path().join("./one/tool")));
        assert_eq!(find("none", "one:two"), Program::NotFound);
        assert_eq!(find("one/none", ""), Program::NotFound);
        assert_eq!(find("", "one"), Program::NotFound);
        assert!(matches!(find_program("sh".as_ref(), None, root.path()), Program::Found(_)));
    }
}
