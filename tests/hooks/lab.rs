//! A throw-away repository with real Git, with captures and receipts made by plumbing and by hand.

use std::ffi::OsStr;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use git_devlyn::package::Key;
use serde_json::{Value, json};
use tempfile::TempDir;

pub(crate) struct Said {
    pub(crate) ok: bool,
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Said {
    #[track_caller]
    pub(crate) fn fine(self) -> String {
        assert!(self.ok, "status {:?}\n{}\n{}", self.code, self.out, self.err);
        self.out.trim_end().to_owned()
    }

    /// Refused by git-devlyn for `rule`, with a message that keeps to five lines for each refusal.
    #[track_caller]
    pub(crate) fn refused(self, rule: &str) -> String {
        assert!(!self.ok, "it was let through\n{}\n{}", self.out, self.err);
        let all = format!("{}{}", self.out, self.err).replace("remote: ", "");
        assert!(all.contains(&format!("git-devlyn refuses: {rule} ")), "not refused for {rule}:\n{all}");
        for refusal in all.split("git-devlyn refuses: ").skip(1) {
            let lines = refusal.lines().enumerate().take_while(|(n, line)| *n == 0 || line.starts_with("  ")).count();
            assert!((3..=5).contains(&lines), "{lines} lines:\n{refusal}");
        }
        all
    }
}

pub(crate) struct Lab {
    temp: TempDir,
    pub(crate) root: PathBuf,
}

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_git-devlyn");

impl Lab {
    /// Whether the `git` here is of this version or a later one: what an older one lacks cannot be guarded or tried.
    pub(crate) fn git_is(&self, version: (u32, u32)) -> bool {
        let here = git_devlyn::git::git_version(&self.root).unwrap();
        if here < version {
            eprintln!("skipped in part: this git is {here:?}, and not {version:?}");
        }
        here >= version
    }

    /// A repository with one commit and our hooks.
    pub(crate) fn new() -> Self {
        let lab = Self::plain();
        lab.devlyn(&["init"]).fine();
        lab
    }

    /// A repository with one commit and no hook.
    pub(crate) fn plain() -> Self {
        let temp = TempDir::new().unwrap();
        let root = temp.path().canonicalize().unwrap().join("re po");
        let lab = Self { temp, root };
        lab.run(lab.temp.path(), "git", &["init", "-q", "-b", "main", "re po"], None).fine();
        lab.identify(&lab.root);
        lab.write(".gitignore", ".devlyn/\n");
        lab.write("src/a.txt", "a\n");
        lab.write("src/b.txt", "b\n");
        lab.git(&["add", "."]).fine();
        lab.git(&["commit", "-qm", "base"]).fine();
        lab
    }

    pub(crate) fn identify(&self, dir: &Path) {
        self.git_in(dir, &["config", "user.name", "T"]).fine();
        self.git_in(dir, &["config", "user.email", "t@example.invalid"]).fine();
    }

    pub(crate) fn beside(&self, name: &str) -> PathBuf {
        self.root.parent().unwrap().join(name)
    }

    pub(crate) fn run(&self, dir: &Path, program: &str, args: &[&str], input: Option<&[u8]>) -> Said {
        self.run_with(dir, program, args, input, &[])
    }

    #[expect(clippy::disallowed_methods, reason = "a test drives real programs")]
    pub(crate) fn run_with(
        &self,
        dir: &Path,
        program: &str,
        args: &[&str],
        input: Option<&[u8]>,
        env: &[(&str, &OsStr)],
    ) -> Said {
        let mut command = Command::new(program);
        let bin = Path::new(PROGRAM).parent().unwrap();
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(std::iter::once(bin.to_owned()).chain(std::env::split_paths(&path))).unwrap();
        for (name, _) in std::env::vars_os() {
            if name.to_string_lossy().starts_with("GIT_") {
                command.env_remove(name);
            }
        }
        command
            .args(args)
            .current_dir(dir)
            .env("PATH", path)
            .env("HOME", self.temp.path())
            .env_remove("XDG_CONFIG_HOME")
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("LC_ALL", "C")
            .env("GIT_EDITOR", "true")
            .env("GIT_MERGE_AUTOEDIT", "no")
            .stdin(if input.is_some() { Stdio::piped() } else { Stdio::null() })
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        for (name, value) in env {
            command.env(name, value);
        }
        let mut child = command.spawn().unwrap();
        if let Some(input) = input {
            let _ = child.stdin.take().unwrap().write_all(input);
        }
        let output = child.wait_with_output().unwrap();
        Said {
            ok: output.status.success(),
            code: output.status.code(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn git(&self, args: &[&str]) -> Said {
        self.git_in(&self.root, args)
    }

    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> Said {
        self.run(dir, "git", args, None)
    }

    pub(crate) fn devlyn(&self, args: &[&str]) -> Said {
        self.run(&self.root, PROGRAM, args, None)
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        put(&self.root.join(path), text);
    }

    pub(crate) fn read(&self, path: &str) -> String {
        fs::read_to_string(self.root.join(path)).unwrap()
    }

    pub(crate) fn head(&self) -> String {
        self.git(&["rev-parse", "HEAD"]).fine()
    }

    /// Stages `path` with `text` and commits it, hooks and all.
    pub(crate) fn commit(&self, path: &str, text: &str) -> Said {
        self.write(path, text);
        self.git(&["add", "--", path]).fine();
        self.git(&["commit", "-qm", "change"])
    }

    /// The commit of `files` on top of `HEAD` as the drain makes it: by plumbing, so that no hook of a commit is asked.
    pub(crate) fn plumb(&self, dir: &Path, files: &[(String, String)], message: &str) -> String {
        let index = self.beside("plumbing-index");
        let env: &[(&str, &OsStr)] = &[("GIT_INDEX_FILE", index.as_os_str())];
        let git = |args: &[&str], input: Option<&[u8]>| self.run_with(dir, "git", args, input, env).fine();
        git(&["read-tree", "HEAD"], None);
        for (path, text) in files {
            let blob = git(&["hash-object", "-w", "--stdin"], Some(text.as_bytes()));
            git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")], None);
        }
        let tree = git(&["write-tree"], None);
        let commit = git(&["commit-tree", &tree, "-p", "HEAD", "-m", message], None);
        git(&["update-ref", "HEAD", &commit], None);
        self.git_in(dir, &["reset", "-q", "--hard"]).fine();
        commit
    }

    /// The files of a package with tasks `t1`, `t2`, … and its queue file, last.
    pub(crate) fn package(&self, name: &str, tasks: usize) -> Vec<(String, String)> {
        let mut files = vec![(format!("docs/specs/{name}/meta.md"), format!("# Loop {name}\n"))];
        for n in 1..=tasks {
            files.push((format!("docs/specs/{name}/t{n}/spec.md"), format!("# Task {n}\n")));
            files.push((format!("docs/specs/{name}/t{n}/spec.expected.json"), "{}\n".to_owned()));
        }
        files.push((format!("docs/specs/{name}/queue.md"), rows(name, tasks)));
        files
    }

    /// Captures a loop and records it, as `add` does.
    pub(crate) fn capture(&self, name: &str, tasks: usize) -> Vec<(String, String)> {
        let files = self.package(name, tasks);
        let index = self.beside("capture-index");
        let env: &[(&str, &OsStr)] = &[("GIT_INDEX_FILE", index.as_os_str())];
        let git = |args: &[&str], input: Option<&[u8]>| self.run_with(&self.root, "git", args, input, env).fine();
        git(&["read-tree", "--empty"], None);
        for (path, text) in &files {
            let blob = git(&["hash-object", "-w", "--stdin"], Some(text.as_bytes()));
            git(&["update-index", "--add", "--cacheinfo", &format!("100644,{blob},{path}")], None);
        }
        let tree = git(&["write-tree"], None);
        let commit = git(&["commit-tree", &tree, "-m", &format!("devlyn loop: capture {name}")], None);
        let capture = format!("refs/devlyn/captures/{name}");
        git(&["update-ref", &capture, &commit], None);
        let record = json!({
            "schema_version": 1, "loop_id": name, "delivery": "local-only", "capture": capture, "commit": commit,
            "tree": tree, "origin": self.root, "branch": "main", "sequence": 1,
        });
        put(&self.root.join(format!(".git/devlyn-loops/{name}/added.json")), &format!("{record:#}\n"));
        files
    }

    /// A captured loop whose package is committed on `HEAD`, as after the inputs commit.
    pub(crate) fn with_loop(&self, name: &str, tasks: usize) {
        let files = self.capture(name, tasks);
        self.plumb(&self.root, &files, "devlyn loop: inputs");
    }

    pub(crate) fn key(&self, name: &str, task: &str) -> String {
        Key::of_branch(&format!("devlyn/{name}/{task}")).as_str().to_owned()
    }

    /// The receipt of a task, with a result where there is one.
    pub(crate) fn receipt(&self, name: &str, task: &str, verdict: Option<&str>) -> PathBuf {
        let key = self.key(name, task);
        let head = self.head();
        let mut receipt = json!({
            "id": key, "task": format!("{name}.{task}"), "branch": format!("devlyn/{name}/{task}"), "base": "main",
            "repository": null, "recovery_ref": format!("refs/devlyn/completed/{key}"),
            "common_gitdir": self.root.join(".git"), "anchor": self.root, "worktree": self.beside("task"),
            "linked": true, "baseline": head, "allocation": "owned", "local_only": true,
        });
        if let Some(verdict) = verdict {
            receipt["source_sha"] = Value::from(head.clone());
            receipt["publish_sha"] = Value::from(head);
            receipt["acceptance"] = json!({"kind": "loop", "verdict": verdict, "reasons": [], "commands": []});
        }
        let path = self.root.join(format!(".git/devlyn-completion/{key}/receipt.json"));
        put(&path, &format!("{receipt:#}\n"));
        path
    }

    /// A worktree on the branch of a task with a live receipt, in which its executor works.
    pub(crate) fn task_worktree(&self, name: &str, task: &str) -> PathBuf {
        self.receipt(name, task, None);
        let path = self.beside("task");
        let branch = format!("devlyn/{name}/{task}");
        self.git(&["worktree", "add", "-q", "--no-track", "-b", &branch, path.to_str().unwrap()]).fine();
        path
    }

    pub(crate) fn queue(&self, name: &str) -> String {
        self.read(&format!("docs/specs/{name}/queue.md"))
    }
}

pub(crate) fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

pub(crate) fn row(name: &str, n: usize) -> String {
    format!("- [ ] {name}.t{n} [Task {n}](docs/specs/{name}/t{n}/spec.md)")
}

pub(crate) fn rows(name: &str, tasks: usize) -> String {
    (1..=tasks).map(|n| row(name, n)).collect::<Vec<_>>().join("\n\n") + "\n"
}

/// The queue file with the row of task `n` accepted.
pub(crate) fn accept(queue: &str, name: &str, n: usize) -> String {
    queue.replacen(&format!("- [ ] {name}.t{n} "), &format!("- [x] {name}.t{n} "), 1)
}

/// The queue file with the row of task `n` failed under the receipt `key`.
pub(crate) fn fail(queue: &str, name: &str, n: usize, key: &str) -> String {
    let pending = row(name, n);
    queue.replacen(&pending, &format!("- [F]{} — failed: no (receipt {key})", &pending[5..]), 1)
}
