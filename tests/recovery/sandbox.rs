//! A repository, the packages in it, a scripted executor, and the program run from outside. Nothing of the user's
//! configuration or environment gets in.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// The program under test: the one that was built with this test, or another one (an installed one, say).
pub(crate) static PROGRAM: LazyLock<String> =
    LazyLock::new(|| std::env::var("DEVLYN_PROGRAM").unwrap_or_else(|_| env!("CARGO_BIN_EXE_git-devlyn").to_owned()));

/// A task of a package.
#[derive(Debug, Clone, Default)]
pub(crate) struct Task {
    pub(crate) id: String,
    pub(crate) after: Vec<String>,
    pub(crate) reviewed: bool,
    /// The shell line that is its check.
    pub(crate) check: String,
}

impl Task {
    /// A task whose check looks for the file that the executor commits.
    pub(crate) fn new(id: &str, after: &[&str]) -> Self {
        Self {
            id: id.to_owned(),
            after: after.iter().map(|&id| id.to_owned()).collect(),
            reviewed: false,
            check: format!("cat {id}.txt"),
        }
    }

    pub(crate) fn reviewed(self) -> Self {
        Self { reviewed: true, ..self }
    }

    pub(crate) fn checked_by(self, check: &str) -> Self {
        Self { check: check.to_owned(), ..self }
    }
}

/// What the program said.
#[derive(Debug)]
pub(crate) struct Said {
    /// Its exit status, `None` where a signal ended it.
    pub(crate) code: Option<i32>,
    /// Its object; null where it printed none.
    pub(crate) object: Value,
    pub(crate) stderr: String,
}

impl Said {
    fn of(output: &Output) -> Self {
        Self {
            code: output.status.code(),
            object: serde_json::from_slice(&output.stdout).unwrap_or(Value::Null),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    pub(crate) fn status(&self) -> &str {
        self.object["status"].as_str().unwrap_or_default()
    }

    pub(crate) fn reason(&self) -> &str {
        self.object["reason"].as_str().unwrap_or_default()
    }

    /// The item of a task.
    pub(crate) fn item(&self, identity: &str) -> &Value {
        let items = self.object["tasks"].as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().find(|item| item["identity"] == identity).unwrap_or(&Value::Null)
    }
}

/// A directory of its own, with blanks and other letters in its name.
#[derive(Debug)]
pub(crate) struct Sandbox {
    pub(crate) root: PathBuf,
    pub(crate) repo: PathBuf,
    _temp: tempfile::TempDir,
}

impl Sandbox {
    fn empty() -> Self {
        // Thousands of flushes: in memory where that is possible, so that the machine's disk is not what is measured.
        let memory = Path::new("/dev/shm");
        let place =
            if fs::metadata(memory).is_ok_and(|meta| meta.is_dir()) { memory.to_owned() } else { std::env::temp_dir() };
        let builder = tempfile::Builder::new().prefix("devlyn ✓ 한 ").tempdir_in(place);
        let temp = builder.or_else(|_| tempfile::Builder::new().prefix("devlyn ✓ 한 ").tempdir()).unwrap();
        let root = temp.path().canonicalize().unwrap();
        Self { repo: root.join("repo"), root, _temp: temp }
    }

    /// A repository with one commit.
    pub(crate) fn new() -> Self {
        let sandbox = Self::empty();
        for name in ["home", "calls", "plan"] {
            fs::create_dir(sandbox.root.join(name)).unwrap();
        }
        fs::write(sandbox.root.join("executor.sh"), include_str!("executor.sh")).unwrap();
        let made = sandbox.command("git").args(["init", "-q", "-b", "main", "--template="]).arg(&sandbox.repo).status();
        assert!(made.unwrap().success());
        sandbox.write(".gitignore", ".devlyn/\n");
        sandbox.git(&["add", "-A"]);
        sandbox.git(&["commit", "-q", "-m", "base"]);
        sandbox
    }

    /// The same in another place. Only a sandbox in which nothing was allocated yet can be copied.
    pub(crate) fn copy(&self) -> Self {
        let copy = Self::empty();
        copy_dir(&self.root, &copy.root);
        let (old, new) = (self.root.to_str().unwrap(), copy.root.to_str().unwrap());
        for record in files(&copy.common().join("devlyn-loops")) {
            if record.ends_with("added.json") {
                fs::write(&record, fs::read_to_string(&record).unwrap().replace(old, new)).unwrap();
            }
        }
        copy
    }

    pub(crate) fn common(&self) -> PathBuf {
        self.repo.join(".git")
    }

    /// A command that knows nothing but this sandbox.
    pub(crate) fn command(&self, program: &str) -> Command {
        let mut command = Command::new(program);
        self.confine(&mut command);
        command.current_dir(if self.repo.exists() { &self.repo } else { &self.root }).stdin(Stdio::null());
        command
    }

    fn confine(&self, command: &mut Command) {
        let path = std::env::var("PATH").unwrap();
        let own = Path::new(&*PROGRAM).parent().unwrap().display().to_string();
        command.env_clear().envs([
            ("PATH", format!("{own}:{path}").as_str()),
            ("HOME", self.root.join("home").to_str().unwrap()),
            ("CALLS", self.root.join("calls").to_str().unwrap()),
            ("PLAN", self.root.join("plan").to_str().unwrap()),
            ("GIT_CONFIG_NOSYSTEM", "1"),
            ("GIT_CONFIG_GLOBAL", "/dev/null"),
            ("GIT_TERMINAL_PROMPT", "0"),
            ("LC_ALL", "C.UTF-8"),
        ]);
        for role in ["AUTHOR", "COMMITTER"] {
            command.env(format!("GIT_{role}_NAME"), "Suite").env(format!("GIT_{role}_EMAIL"), "suite@example.invalid");
            command.env(format!("GIT_{role}_DATE"), "1700000000 +0000");
        }
    }

    /// What `git` prints in the anchor.
    #[track_caller]
    pub(crate) fn git(&self, args: &[&str]) -> String {
        self.git_in(&self.repo, args)
    }

    #[track_caller]
    pub(crate) fn git_in(&self, dir: &Path, args: &[&str]) -> String {
        let output = self.command("git").current_dir(dir).args(args).output().unwrap();
        assert!(output.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.repo.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    // the program

    /// The program with `args` and `--json`; what follows a `--` stays at the end.
    pub(crate) fn devlyn_argv(&self, args: &[&str]) -> Vec<String> {
        let at = args.iter().position(|arg| *arg == "--").unwrap_or(args.len());
        let words = [PROGRAM.as_str()]
            .into_iter()
            .chain(args[..at].iter().copied())
            .chain(["--json"])
            .chain(args[at..].iter().copied());
        words.map(str::to_owned).collect()
    }

    pub(crate) fn devlyn(&self, args: &[&str]) -> Said {
        let argv = self.devlyn_argv(args);
        Said::of(&self.command(&argv[0]).args(&argv[1..]).output().unwrap())
    }

    /// The arguments of a drain with the scripted executor.
    pub(crate) fn drain_args(&self) -> Vec<String> {
        let executor = self.root.join("executor.sh");
        ["drain", "--local-only", "--", "sh", executor.to_str().unwrap(), "{packet}"].map(str::to_owned).to_vec()
    }

    pub(crate) fn drain(&self) -> Said {
        let args = self.drain_args();
        self.devlyn(&args.iter().map(String::as_str).collect::<Vec<_>>())
    }

    /// A drain that runs, with what it prints in pipes. It hears a hangup even where the tests are run by one who does not
    /// (`nohup`): what this process takes over it does not hand down.
    pub(crate) fn start_drain(&self) -> Child {
        signal_hook::flag::register(signal_hook::consts::SIGHUP, Default::default()).unwrap();
        let args = self.drain_args();
        let argv = self.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
        let mut command = self.command(&argv[0]);
        command.args(&argv[1..]).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    pub(crate) fn wait(child: Child) -> Said {
        Said::of(&child.wait_with_output().unwrap())
    }

    pub(crate) fn run(command: &mut Command) -> Said {
        Said::of(&command.output().unwrap())
    }

    /// Writes the package of a loop into the checkout; the words that its executor obeys for each task.
    pub(crate) fn package(&self, id: &str, tasks: &[(Task, &str)]) {
        let base = self.git(&["rev-parse", "HEAD"]);
        let entries: Vec<Value> = tasks
            .iter()
            .map(|(task, _)| json!({"id": task.id, "spec": format!("{}/spec.md", task.id), "depends_on": task.after}))
            .collect();
        let manifest = json!({
            "schema_version": 1, "loop_id": id, "base_ref": "main", "base_sha": base.trim(), "delivery": "local-only",
            "tasks": entries, "integration_task_id": tasks.last().unwrap().0.id,
        });
        let meta = format!(
            "# {id}\n\n## Intent\n\nShip it.\n\n## Constraints and exclusions\n\nNone.\n\n## Tasks\n\n```json\n{manifest:#}\n```\n\n\
             ## Overall acceptance\n\nThe last task.\n\n## Execution policy\n\nThe installed methodology.\n\n\
             ## Decisions and assumptions\n\nNone.\n"
        );
        self.write(&format!("docs/specs/{id}/meta.md"), &meta);
        for (task, words) in tasks {
            let review = if task.reviewed { "R2" } else { "" };
            let more = if task.reviewed { "- R2: It reads well.\n" } else { "" };
            let after = if task.after.is_empty() { "None.".to_owned() } else { task.after.join(", ") };
            let name = &task.id;
            let spec = format!(
                "---\nid: {name}\nloop_id: {id}\ntitle: Task {name}\nkind: feature\nreview_requirements: [{review}]\n---\n\
                 # Task {name}\n\n## Context and goal\n\nA task.\n\n## Requirements\n\n- R1: It is done.\n{more}\n\
                 ## Scope and constraints\n\nIts file.\n\n## Out of scope\n\nThe rest.\n\n## Prerequisite inputs\n\n{after}\n\n\
                 <!-- devlyn:verification -->\n## Verification\n\nThe command.\n\n## Deliverable and cleanup\n\nThe file.\n"
            );
            self.write(&format!("docs/specs/{id}/{name}/spec.md"), &spec);
            let expected =
                json!({"verification_commands": [{"cmd": task.check, "contract_refs": ["R1"], "timeout_sec": 60}]});
            self.write(&format!("docs/specs/{id}/{name}/spec.expected.json"), &format!("{expected:#}"));
            self.plan(&format!("{id}.{name}"), words);
        }
    }

    /// What the executor does for a task from now on.
    pub(crate) fn plan(&self, identity: &str, words: &str) {
        fs::write(self.root.join("plan").join(identity), words).unwrap();
    }

    #[track_caller]
    pub(crate) fn add(&self, id: &str, tasks: &[(Task, &str)]) {
        self.package(id, tasks);
        let said = self.devlyn(&["add", id]);
        assert_eq!(said.status(), "ADDED", "{said:?}");
    }

    /// How often the executor was run for a task.
    pub(crate) fn calls(&self, identity: &str) -> usize {
        fs::read_to_string(self.root.join("calls").join(identity)).map_or(0, |text| text.lines().count())
    }

    /// Every receipt by its task.
    pub(crate) fn receipts(&self) -> Vec<(PathBuf, Value)> {
        let folder = self.common().join("devlyn-completion");
        let mut found = Vec::new();
        for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            let receipt = fs::read(path.join("receipt.json")).ok().and_then(|text| serde_json::from_slice(&text).ok());
            found.push((path, receipt.unwrap_or(Value::Null)));
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        found
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // An executor that outlived its drain is somebody's child by now; nothing of a test goes on behind it.
        for pid in writers(&self.root) {
            if let Some(pid) = rustix::process::Pid::from_raw(pid) {
                let _ = rustix::process::kill_process(pid, rustix::process::Signal::KILL);
            }
        }
    }
}

/// The processes whose working directory lies below `root`.
pub(crate) fn writers(root: &Path) -> Vec<i32> {
    let own = i32::try_from(std::process::id()).unwrap();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|&pid| {
            pid != own && fs::read_link(format!("/proc/{pid}/cwd")).is_ok_and(|place: PathBuf| place.starts_with(root))
        })
        .collect()
}

/// Every file below `folder`.
pub(crate) fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![folder.to_owned()];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(&folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if entry.file_type().is_ok_and(|kind| kind.is_dir()) { open.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_dir(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// Asks until `done`, and fails the test after a minute.
#[track_caller]
pub(crate) fn until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !done() {
        assert!(Instant::now() < end, "never came: {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A number from the environment.
pub(crate) fn number(name: &str) -> Option<usize> {
    std::env::var(name).ok()?.parse().ok()
}

/// Whether everything is to be tried.
pub(crate) fn soak() -> bool {
    number("DEVLYN_SOAK").is_some_and(|number| number > 0)
}

/// Texts one below the other.
pub(crate) fn lines(texts: impl IntoIterator<Item = String>) -> String {
    texts.into_iter().fold(String::new(), |mut all, text| {
        let _ = writeln!(all, "{text}");
        all
    })
}
