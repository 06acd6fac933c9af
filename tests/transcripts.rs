//! What a person sees, session by session: each file in `tests/transcripts/` is typed into a shell in a copy of the
//! folder beside it.

use std::path::{Path, PathBuf};

/// The program `name` on `PATH`.
fn on_path(name: &str) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).map(|dir| dir.join(name)).find(|place| place.is_file()).unwrap_or_else(|| name.into())
}

#[test]
fn sessions() {
    let program = Path::new(env!("CARGO_BIN_EXE_git-devlyn"));
    let mut path = vec![program.parent().unwrap_or(program).to_owned()];
    path.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let path = std::env::join_paths(path).unwrap_or_default();
    let cases = trycmd::TestCases::new();
    cases
        .register_bin("git", on_path("git"))
        .register_bin("git-devlyn", program.to_owned())
        .env("PATH", path.to_string_lossy())
        .env("HOME", "/nonexistent")
        .env("LC_ALL", "C")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_CONFIG_GLOBAL", "/dev/null");
    // The ids in the sessions are those of commits made by nobody, at one moment.
    for role in ["AUTHOR", "COMMITTER"] {
        cases
            .env(format!("GIT_{role}_NAME"), "Nobody")
            .env(format!("GIT_{role}_EMAIL"), "nobody@example.invalid")
            .env(format!("GIT_{role}_DATE"), "2026-01-02T03:04:05Z");
    }
    cases.case("tests/transcripts/*.trycmd");
}
