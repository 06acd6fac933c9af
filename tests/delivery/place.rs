//! A repository whose remote is on the scripted host, and the program in it.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;

pub const TOKEN: &str = "f00dfeedc0ffee0123456789abcdef0123456789";
pub const PASSWORD: &str = "hunter2-swordfish";

/// A repository with a remote on the scripted host.
pub struct Place {
    _temp: tempfile::TempDir,
    pub root: PathBuf,
    pub env: BTreeMap<String, String>,
    program: PathBuf,
    /// Everything that the program ever said.
    pub said: String,
}

/// Writes a file.
pub fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

impl Place {
    pub fn new() -> Self {
        let temp = tempfile::Builder::new().prefix("delivery ✓ ").tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let bin = root.join("bin");
        fs::create_dir(&bin).unwrap();
        for (name, script) in [("gh", include_str!("gh")), ("ssh", include_str!("ssh"))] {
            write(&bin.join(name), script);
            fs::set_permissions(bin.join(name), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let program = PathBuf::from(env!("CARGO_BIN_EXE_git-devlyn"));
        let path = std::env::var_os("PATH").unwrap().into_string().unwrap();
        let env = BTreeMap::from(
            [
                ("PATH", format!("{}:{path}", bin.display())),
                ("FAKE", root.display().to_string()),
                ("SECRET", PASSWORD.to_owned()),
                ("GH_TOKEN", TOKEN.to_owned()),
                ("HOME", root.display().to_string()),
                ("GIT_CONFIG_NOSYSTEM", "1".to_owned()),
                ("GIT_CONFIG_GLOBAL", "/dev/null".to_owned()),
                ("GIT_SSH_COMMAND", format!("'{}'", bin.join("ssh").display())),
                ("GIT_SSH_VARIANT", "ssh".to_owned()),
                ("GIT_AUTHOR_NAME", "Suite".to_owned()),
                ("GIT_AUTHOR_EMAIL", "suite@example.invalid".to_owned()),
                ("GIT_COMMITTER_NAME", "Suite".to_owned()),
                ("GIT_COMMITTER_EMAIL", "suite@example.invalid".to_owned()),
                ("LC_ALL", "C".to_owned()),
            ]
            .map(|(key, value)| (key.to_owned(), value)),
        );
        let place = Self { _temp: temp, root, env, program, said: String::new() };
        place.git(&place.root, &["init", "-q", "--bare", "-b", "main", "bare"]);
        place.git(&place.root, &["init", "-q", "-b", "main", "repo"]);
        write(&place.repo().join(".gitignore"), ".devlyn/\n");
        place.git(&place.repo(), &["add", "-A"]);
        place.git(&place.repo(), &["commit", "-q", "-m", "base"]);
        place.git(&place.repo(), &["remote", "add", "origin", "ssh://git@github.com/test/project.git"]);
        place.git(&place.repo(), &["push", "-q", "origin", "main"]);
        place
    }

    pub fn repo(&self) -> PathBuf {
        self.root.join("repo")
    }

    pub fn run(&self, program: &Path, dir: &Path, args: &[&str]) -> Output {
        let mut command = Command::new(program);
        for (name, _) in std::env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with("GIT_")) {
            command.env_remove(name);
        }
        command.args(args).current_dir(dir).envs(&self.env).stdin(Stdio::null()).output().unwrap()
    }

    pub fn git(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.run(Path::new("git"), dir, args);
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Where a reference of the scripted host is.
    pub fn there(&self, name: &str) -> Option<String> {
        let output = self.run(Path::new("git"), &self.root.join("bare"), &["rev-parse", "-q", "--verify", name]);
        output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
    }

    /// The one object that the program answers.
    pub fn devlyn(&mut self, args: &[&str]) -> Value {
        let program = self.program.clone();
        let output = self.run(&program, &self.repo(), &[args, &["--json"]].concat());
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        self.said.push_str(&out);
        self.said.push_str(&err);
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{args:?}: {error}\n{out}\n{err}"))
    }

    pub fn tree(&self, task: &str) -> PathBuf {
        self.root.join("trees").join(task)
    }

    pub fn receipt_path(&self, task: &str) -> String {
        let key = git_devlyn::package::Key::of_branch(&format!("devlyn/{}", task.replace('.', "/")));
        self.repo().join(".git/devlyn-completion").join(key.as_str()).join("receipt.json").display().to_string()
    }

    pub fn receipt(&self, task: &str) -> Value {
        serde_json::from_slice(&fs::read(self.receipt_path(task)).unwrap()).unwrap()
    }

    pub fn allocate(&mut self, task: &str) -> Value {
        let (branch, tree) = (format!("devlyn/{}", task.replace('.', "/")), self.tree(task).display().to_string());
        let words = ["--task", task, "--branch", &branch, "--worktree", &tree, "--base", "main"];
        let named = if self.env.contains_key("NOBODY") { &[][..] } else { &["--repository", "test/project"][..] };
        self.devlyn(&[&["task", "allocate"], &words[..], named].concat())
    }

    /// Commits a product and writes the acceptance of it.
    pub fn product(&self, task: &str) -> String {
        let tree = self.tree(task);
        write(&tree.join(format!("{task}.txt")), "done\n");
        self.git(&tree, &["add", "-A"]);
        self.git(&tree, &["commit", "-q", "-m", task]);
        let source = self.git(&tree, &["rev-parse", "HEAD"]);
        fs::create_dir_all(tree.join(".devlyn")).unwrap();
        write(&tree.join(".devlyn/checks.log"), "1 passed\n");
        let acceptance = serde_json::json!({"kind": "direct", "task": task, "source_sha": source,
            "checks": [{"command": "make check", "evidence": ".devlyn/checks.log"}]});
        write(&tree.join(".devlyn/acceptance.json"), &acceptance.to_string());
        source
    }

    pub fn complete(&mut self, task: &str, more: &[&str]) -> Value {
        let (receipt, acceptance) = (self.receipt_path(task), self.tree(task).join(".devlyn/acceptance.json"));
        let acceptance = acceptance.display().to_string();
        let bound = self.receipt(task).get("acceptance").is_some();
        let bind: &[&str] = if bound { &[] } else { &["--acceptance", &acceptance] };
        self.devlyn(&[&["task", "complete", "--receipt", &receipt, "--writers-stopped"], bind, more].concat())
    }

    /// The same, until nobody else on this machine could be taken for a writer.
    pub fn complete_cleanly(&mut self, task: &str) -> Value {
        (0..20).map(|_| self.complete(task, &[])).find(|value| value["status"] != "CLEANUP_PENDING").unwrap()
    }

    /// The requests of a branch on the scripted host.
    pub fn requests(&self, branch: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.root.join("prs")) else { return Vec::new() };
        let of = |path: PathBuf| {
            let head = fs::read_to_string(path.join("head")).ok()?;
            (head.trim() == branch).then(|| path.file_name().unwrap().to_str().unwrap().to_owned())
        };
        entries.flatten().filter_map(|entry| of(entry.path())).collect()
    }

    /// A person merges on the web page.
    pub fn merge_by_hand(&self, number: &str) {
        let gh = self.root.join("bin/gh");
        self.run(&gh, &self.root, &["suite-merge", number]);
    }

    pub fn no_secret_was_shown(&self) {
        for secret in [TOKEN, PASSWORD] {
            assert!(!self.said.contains(secret), "{}", self.said);
        }
        let mut waiting = vec![self.repo().join(".git/devlyn-completion"), self.repo().join(".git/devlyn-loops")];
        while let Some(folder) = waiting.pop() {
            for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
                if entry.file_type().unwrap().is_dir() {
                    waiting.push(entry.path());
                    continue;
                }
                let bytes = fs::read(entry.path()).unwrap();
                let text = String::from_utf8_lossy(&bytes);
                assert!(!text.contains(TOKEN) && !text.contains(PASSWORD), "{}", entry.path().display());
            }
        }
    }
}
