//! A machine of its own for the suites that drive the built program: a repository, packages, and an executor that does
//! what each task is told to be. Nothing of the caller's configuration reaches it.

#![allow(dead_code, unreachable_pub, reason = "each suite takes what it needs")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a suite that cannot go on fails")]
#![allow(clippy::disallowed_methods, reason = "a suite starts programs and spoils files as a person would")]

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use git_devlyn::package::Identity;
use serde_json::Value;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_git-devlyn");

/// How a task's executor behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Does {
    /// What was asked; with a review where one is required.
    Well,
    /// Something else, so that the task's check fails.
    Badly,
    /// It ends with exit status 3 and no submission.
    Nothing,
    /// It starts to work once [`Sandbox::open_gate`] was called.
    Wait,
}

/// A task of a package.
#[derive(Debug, Clone)]
pub struct Task {
    /// Its name within the loop.
    pub id: String,
    /// What it needs.
    pub depends_on: Vec<String>,
    /// Whether R1 must be reviewed.
    pub reviewed: bool,
}

impl Task {
    /// A task that needs nothing.
    pub fn new(id: &str) -> Self {
        Self { id: id.to_owned(), depends_on: Vec::new(), reviewed: false }
    }

    /// The same behind `other`.
    pub fn after(mut self, other: &str) -> Self {
        self.depends_on.push(other.to_owned());
        self
    }

    /// The same with a review required.
    pub fn reviewed(mut self) -> Self {
        self.reviewed = true;
        self
    }
}

/// How a program ended.
#[derive(Debug, Clone)]
pub struct Ran {
    /// Its exit status; a signal as its negative number.
    pub code: i32,
    /// What it said.
    pub stdout: String,
    /// What it said besides.
    pub stderr: String,
}

impl Ran {
    /// This, if it succeeded.
    #[track_caller]
    pub fn ok(self) -> Self {
        self.exits(0)
    }

    /// This, if its exit status is `code`.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout: {}\nstderr: {}", self.stdout, self.stderr);
        self
    }

    /// Standard output without its final line feed.
    pub fn line(&self) -> String {
        self.stdout.trim_end_matches('\n').to_owned()
    }

    /// The object on standard output.
    #[track_caller]
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A repository on a machine of its own.
#[derive(Debug)]
pub struct Sandbox {
    temp: tempfile::TempDir,
    /// Where everything is: the repository, the home directory, the executor and what it counts.
    pub root: PathBuf,
    /// The repository's main checkout.
    pub repo: PathBuf,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// A repository with one commit on `main`, in which `.devlyn/` is ignored.
    pub fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let sandbox = Self { temp, repo: root.join("repo"), root };
        for dir in ["repo", "home", "does"] {
            std::fs::create_dir(sandbox.root.join(dir)).unwrap();
        }
        std::fs::write(sandbox.executor(), EXECUTOR).unwrap();
        sandbox.git(&["init", "-q", "-b", "main"]);
        sandbox.write(".gitignore", ".devlyn/\n");
        sandbox.write("README.md", "# repo\n");
        sandbox.git(&["add", "."]);
        sandbox.git(&["commit", "-q", "-m", "Begin"]);
        sandbox
    }

    /// A call of `program` in `dir` on this machine: its environment is nobody's but ours.
    pub fn command(&self, program: impl AsRef<OsStr>, dir: &Path) -> Command {
        let mut command = Command::new(program);
        let programs = Path::new(PROGRAM).parent().unwrap().to_str().unwrap();
        let path = std::env::var("PATH").unwrap_or_default();
        command.env_clear().current_dir(dir).stdin(Stdio::null());
        command.env("PATH", format!("{programs}:{path}")).env("HOME", self.root.join("home"));
        command.env("GIT_CONFIG_NOSYSTEM", "1").env("GIT_CONFIG_GLOBAL", self.root.join("home/gitconfig"));
        command.env("LC_ALL", "C").env("TZ", "UTC").env("GIT_TERMINAL_PROMPT", "0").env("SANDBOX", &self.root);
        for who in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{who}_NAME"), "Sandbox");
            command.env(format!("GIT_{who}_EMAIL"), "sandbox@example.invalid");
        }
        command
    }

    /// Runs `program` in `dir` to its end.
    pub fn run<A: AsRef<OsStr>>(&self, program: &str, dir: &Path, args: &[A]) -> Ran {
        let output = self.command(program, dir).args(args).output().unwrap();
        let signal = output.status.signal().map(|signal| -signal);
        Ran {
            code: output.status.code().or(signal).unwrap_or(-1),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// What `git` says in the main checkout; it succeeds.
    #[track_caller]
    pub fn git<A: AsRef<OsStr>>(&self, args: &[A]) -> String {
        self.run("git", &self.repo, args).ok().line()
    }

    /// Runs the program in the main checkout.
    pub fn devlyn<A: AsRef<OsStr>>(&self, args: &[A]) -> Ran {
        self.run(PROGRAM, &self.repo, args)
    }

    /// Writes a file of the main checkout, and the folders above it.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.repo.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// Writes the package of a local loop that starts at the head of the main checkout. The last task is its integration
    /// task, so it must come behind all others.
    pub fn package(&self, loop_id: &str, tasks: &[Task]) {
        let head = self.git(&["rev-parse", "HEAD"]);
        let mut listed = Vec::new();
        for task in tasks {
            let Task { id, depends_on, reviewed } = task;
            listed.push(serde_json::json!({"id": id, "spec": format!("{id}/spec.md"), "depends_on": depends_on}));
            let review = if *reviewed { "[R1]" } else { "[]" };
            let folder = format!("docs/specs/{loop_id}/{id}");
            self.write(
                &format!("{folder}/spec.md"),
                &format!(
                    "---\nid: {id}\nloop_id: {loop_id}\ntitle: The work of {id}\nkind: feature\n\
                     review_requirements: {review}\n---\n# The work of {id}\n\n## Context and goal\n\nA file.\n\n\
                     ## Requirements\n\n- R1: `{loop_id}-{id}.txt` says that it is done.\n\n\
                     ## Scope and constraints\n\nThat file.\n\n## Out of scope\n\nThe rest.\n\n\
                     ## Prerequisite inputs\n\nNone.\n\n<!-- devlyn:verification -->\n## Verification\n\nR1 is read.\n\n\
                     ## Deliverable and cleanup\n\nThe file.\n"
                ),
            );
            self.write(
                &format!("{folder}/spec.expected.json"),
                &format!(
                    "{{\"verification_commands\": [{{\"cmd\": \"grep done {loop_id}-{id}.txt\", \
                     \"contract_refs\": [\"R1\"]}}]}}\n"
                ),
            );
        }
        let last = &tasks.last().unwrap().id;
        let manifest = serde_json::json!({
            "schema_version": 1, "loop_id": loop_id, "base_ref": "main", "base_sha": head, "delivery": "local-only",
            "tasks": listed, "integration_task_id": last,
        });
        let mut meta = format!("# {loop_id}\n");
        for (heading, text) in [
            ("Intent", "Files that say that they are done."),
            ("Constraints and exclusions", "None."),
            ("Tasks", "As listed."),
            ("Overall acceptance", "All of them."),
            ("Execution policy", "One after the other."),
            ("Decisions and assumptions", "None."),
        ] {
            let _ = write!(meta, "\n## {heading}\n\n{text}\n");
            if heading == "Tasks" {
                let _ = write!(meta, "\n```json\n{manifest:#}\n```\n");
            }
        }
        self.write(&format!("docs/specs/{loop_id}/meta.md"), &meta);
    }

    /// Writes the package of a loop and adds it.
    #[track_caller]
    pub fn add(&self, loop_id: &str, tasks: &[Task]) {
        self.package(loop_id, tasks);
        self.devlyn(&["add", loop_id]).ok();
    }

    /// The script that plays the executor.
    pub fn executor(&self) -> PathBuf {
        self.root.join("executor.sh")
    }

    /// Says how the executor of `task` behaves from now on; well, unless something was said.
    pub fn executor_does(&self, task: &str, does: Does) {
        std::fs::write(self.root.join("does").join(task), format!("{does:?}\n")).unwrap();
    }

    /// Lets the executors that [`Does::Wait`] go on.
    pub fn open_gate(&self) {
        std::fs::write(self.root.join("gate"), "").unwrap();
    }

    /// The arguments of a drain with the executor.
    pub fn drain_args(&self) -> Vec<String> {
        let executor = self.executor().display().to_string();
        ["drain", "--json", "--", "sh", executor.as_str(), "{packet}"].map(str::to_owned).to_vec()
    }

    /// Drains the queue once.
    pub fn drain(&self) -> Ran {
        self.devlyn(&self.drain_args())
    }

    /// Drains the queue until nothing waits.
    #[track_caller]
    pub fn drained(&self) -> Value {
        let object = self.drain().ok().json();
        assert_eq!(object["status"], "DRAINED", "{object:#}");
        object
    }

    /// The tasks that the executor was started for so far, in that order.
    pub fn calls(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.root.join("calls")).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// The common Git directory.
    pub fn common(&self) -> PathBuf {
        self.repo.join(".git")
    }

    /// The directory of a task's receipt.
    pub fn receipt_dir(&self, task: &str) -> PathBuf {
        self.common().join("devlyn-completion").join(Identity::parse(task).unwrap().key().as_str())
    }

    /// A task's receipt.
    #[track_caller]
    pub fn receipt(&self, task: &str) -> Value {
        let path = self.receipt_dir(task).join("receipt.json");
        let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        serde_json::from_str(&text).unwrap()
    }

    /// Changes a task's receipt behind everybody's back.
    #[track_caller]
    pub fn edit_receipt(&self, task: &str, edit: impl FnOnce(&mut serde_json::Map<String, Value>)) {
        let mut receipt = self.receipt(task);
        edit(receipt.as_object_mut().unwrap());
        let path = self.receipt_dir(task).join("receipt.json");
        std::fs::write(path, format!("{receipt:#}\n")).unwrap();
    }

    /// The full name of a task's recovery ref.
    pub fn recovery_ref(task: &str) -> String {
        Identity::parse(task).unwrap().key().recovery_ref()
    }

    /// The short name of the branch that a task owns.
    pub fn branch(task: &str) -> String {
        Identity::parse(task).unwrap().branch()
    }

    /// A task's worktree.
    pub fn worktree(&self, task: &str) -> PathBuf {
        let identity = Identity::parse(task).unwrap();
        self.root.join("repo.devlyn").join(identity.loop_id.as_str()).join(identity.task.as_str())
    }

    /// Where every ref is, without reflogs: `<id> <name>` lines.
    pub fn refs(&self) -> String {
        self.git(&["for-each-ref", "--format=%(objectname) %(refname)"])
    }
}

/// What an executor does: reads the packet, works, commits, runs the runner, reviews where that is asked, and submits.
const EXECUTOR: &str = r#"set -eu
packet=$1
member() { sed -n 's/^  "'"$1"'": "\(.*\)",\{0,1\}$/\1/p' "$packet"; }
inside() { sed -n '/^  "'"$1"'": {/,/^  }/ s/^    "'"$2"'": "\(.*\)",\{0,1\}$/\1/p' "$packet"; }
task=$(member task)
echo "$task" >>"$SANDBOX/calls"
does=Well
[ ! -f "$SANDBOX/does/$task" ] || read -r does <"$SANDBOX/does/$task"
[ "$does" != Nothing ] || exit 3
while [ "$does" = Wait ] && [ ! -e "$SANDBOX/gate" ]; do sleep 0.02; done
echo scratch >"$(member scratch)/cache"
file=$(echo "$task" | tr . -).txt
if [ "$does" = Badly ]; then echo not yet >"$file"; else echo done >"$file"; fi
git add -- "$file"
git diff --cached --quiet || git commit -q -m "$task"
source=$(git rev-parse HEAD)
set --
while IFS= read -r word; do set -- "$@" "$word"; done <<WORDS
$(sed -n '/^  "runner": \[/,/^  \]/ s/^    "\(.*\)",\{0,1\}$/\1/p' "$packet")
WORDS
result=$("$@" | sed -n 's/.*"result": *\("[^"]*"\).*/\1/p')
reviews=
if ! grep -q '^  "review_requirements": \[\],\{0,1\}$' "$packet"; then
    mkdir -p .devlyn/reviews
    cat >.devlyn/reviews/one.json <<REVIEW
{"schema_version": 1, "kind": "devlyn-review", "task": "$task", "engine": "sh", "model": "one", "source_sha": "$source",
 "contract_sha256": "$(inside contract sha256)", "expected_sha256": "$(inside expected sha256)",
 "requirements": ["R1"], "findings": []}
REVIEW
    reviews='".devlyn/reviews/one.json"'
fi
submission=$(member submission)
cat >"$submission.part" <<SUBMISSION
{"schema_version": 1, "task": "$task", "source_sha": "$source", "runner_results": [$result], "reviews": [$reviews]}
SUBMISSION
mv "$submission.part" "$submission"
"#;
