//! Installing the hooks, and taking them out again so that every byte is as before. What is to be done is found first,
//! said in a dry run, and done step by step; each step is whole or not done, so that a second run finishes a first.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::{Serialize, Serializer};

use super::chain::local;
use super::shims::{Manager, is_shim, manager, write_shim};
use super::{Event, HookError, Result};
use crate::exchange::EVIDENCE;
use crate::git::{NOTES_REF, Repo};
use crate::store::{StoreError, remove_file, write_bytes};

/// The first Git that takes hooks from its configuration.
const CONFIGURED_SINCE: (u32, u32) = (2, 54);

/// What is put behind the lines of `info/exclude`, and what the file holds where there was none.
const EXCLUDE: &str = "\n# git devlyn init: the evidence of tasks\n.devlyn/\n";
const EXCLUDE_ALONE: &str = "# git devlyn init: the evidence of tasks; there was no such file\n.devlyn/\n";

/// That `notes.displayRef` was set by us, so that only then it is taken away again.
const NOTES_SHOWN: &str = "devlyn.notesShown";
const DISPLAY: &str = "notes.displayRef";

/// Stands in a directory that we made, so that only such a one is taken away again.
const MADE: &str = ".made-by-git-devlyn";

/// The hooks that are installed; `update` would judge again what `pre-receive` has judged.
const EVENTS: [Event; 6] = [
    Event::PreCommit,
    Event::PreMergeCommit,
    Event::PreApplypatch,
    Event::PrepareCommitMsg,
    Event::PrePush,
    Event::PreReceive,
];

/// What `init` was asked to do.
#[derive(Debug, Clone, Copy, Default)]
pub struct Init {
    /// Take everything out again.
    pub uninstall: bool,
    /// Guard captures and recovery refs too.
    pub protect_refs: bool,
    /// Show results in `git log`.
    pub notes: bool,
    /// Do nothing.
    pub dry_run: bool,
}

/// What `init` did, or would do.
#[derive(Debug, Serialize)]
pub struct InitReport {
    /// What changed; nothing where everything was in place.
    pub steps: Vec<Step>,
    /// What is left to a person.
    pub left: Vec<String>,
    /// Whether the steps were not done because this was a dry run.
    pub dry_run: bool,
    /// Where hook files are looked for.
    pub hooks: PathBuf,
    /// Whether another tool manages that directory, so that nothing was written to it.
    pub managed: bool,
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A directory is made.
    MakeDir(PathBuf),
    /// A hook that is there is kept under another name, to be called first.
    Keep(PathBuf, PathBuf),
    /// Our hook is written.
    Write(PathBuf, Event),
    /// Our hook is taken away, and the kept one is back under its name.
    Restore(PathBuf, PathBuf),
    /// Our hook is taken away.
    Remove(PathBuf),
    /// An empty directory is taken away.
    RemoveDir(PathBuf),
    /// A file is made to hold these bytes: `info/exclude`.
    Exclude(PathBuf, Vec<u8>),
    /// Our line is taken out of `info/exclude`; what is left, or none where the file was not there.
    Include(PathBuf, Option<Vec<u8>>),
    /// A setting is added to the repository's configuration.
    Set(String, String),
    /// A setting is taken out of it.
    Unset(String, String),
    /// A section is taken out of it.
    UnsetSection(String),
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::MakeDir(path) => write!(f, "make {}", path.display()),
            Self::Keep(from, to) => write!(f, "keep {} as {}, which is called first", from.display(), to.display()),
            Self::Write(path, _) => write!(f, "write {}", path.display()),
            Self::Restore(from, to) => write!(f, "put {} back as {}", from.display(), to.display()),
            Self::Remove(path) => write!(f, "remove {}", path.display()),
            Self::RemoveDir(path) => write!(f, "remove {}, which is empty", path.display()),
            Self::Exclude(path, _) => write!(f, "add .devlyn/ to {}", path.display()),
            Self::Include(path, _) => write!(f, "take .devlyn/ out of {}", path.display()),
            Self::Set(key, value) if value.len() > 60 => write!(f, "set {key}"),
            Self::Set(key, value) => write!(f, "set {key} to {value}"),
            Self::Unset(key, value) => write!(f, "take {value} out of {key}"),
            Self::UnsetSection(section) => write!(f, "take {section}.* out of the configuration"),
        }
    }
}

impl Serialize for Step {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Installs the hooks in `repo`, or takes them out; `git` is the version of Git that will run them.
///
/// # Errors
/// Where a file is in the way, or a step fails; the steps before it are done, and a second run goes on.
pub fn init(repo: &Repo, options: Init, git: (u32, u32)) -> Result<InitReport> {
    let mut report =
        InitReport { steps: vec![], left: vec![], dry_run: options.dry_run, hooks: repo.hooks_dir(), managed: false };
    if options.uninstall {
        uninstall(repo, &mut report)?;
    } else {
        install(repo, options, git, &mut report)?;
    }
    if !options.dry_run {
        for step in &report.steps {
            apply(repo, step)?;
        }
    }
    Ok(report)
}

fn install(repo: &Repo, options: Init, git: (u32, u32), report: &mut InitReport) -> Result<()> {
    let events = EVENTS.into_iter().chain(options.protect_refs.then_some(Event::ReferenceTransaction));
    let dir = report.hooks.clone();
    if git >= CONFIGURED_SINCE {
        // Files of an init under an older Git would judge everything twice.
        remove_shims(&dir, report);
        for event in events {
            let section = section(event);
            for (key, value) in [("event", event.name().to_owned()), ("command", command(event))] {
                let key = format!("{section}.{key}");
                if repo.config(&key).as_deref() != Some(&value) {
                    report.steps.push(Step::Set(key, value));
                }
            }
        }
    } else if let Some(manager) = manager(&dir) {
        leave(manager, events, &dir, report);
    } else {
        make_missing(&dir, report);
        for event in events {
            plan_shim(&dir, event, report)?;
        }
        if let Some(configured) = repo.configured_hooks_dir() {
            let of_each =
                if configured.is_relative() { "; every other worktree looks in a directory of its own" } else { "" };
            report.left.push(format!(
                "core.hooksPath is set: {} may serve other repositories, or be part of this one's files{of_each}",
                dir.display()
            ));
        }
    }
    let exclude = repo.common_dir().join("info/exclude");
    if !repo.ignores_folder_here(EVIDENCE)? {
        if let Some(folder) = exclude.parent() {
            make_missing(folder, report);
        }
        let (text, bytes) = match read(&exclude)? {
            Some(bytes) => (EXCLUDE, bytes),
            None => (EXCLUDE_ALONE, Vec::new()),
        };
        report.steps.push(Step::Exclude(exclude, [bytes, text.as_bytes().to_vec()].concat()));
    }
    if options.notes && !repo.config_values(DISPLAY).iter().any(|value| value == NOTES_REF) {
        report.steps.push(Step::Set(NOTES_SHOWN.to_owned(), "true".to_owned()));
        report.steps.push(Step::Set(DISPLAY.to_owned(), NOTES_REF.to_owned()));
    }
    Ok(())
}

/// The directories on the way to `dir` that are missing, and itself.
fn make_missing(dir: &Path, report: &mut InitReport) {
    let missing: Vec<&Path> = dir.ancestors().take_while(|above| !above.is_dir()).collect();
    report.steps.extend(missing.into_iter().rev().map(|above| Step::MakeDir(above.to_owned())));
}

/// Takes away what we made: `dir` and those above it, where nothing is left in them but `removed` files of ours.
fn remove_made(dir: &Path, mut removed: usize, report: &mut InitReport) {
    for above in dir.ancestors().take_while(|above| above.join(MADE).is_file()) {
        if !std::fs::read_dir(above).is_ok_and(|entries| entries.count() == removed + 1) {
            report.steps.push(Step::Remove(above.join(MADE)));
            removed = 0;
            continue;
        }
        report.steps.push(Step::RemoveDir(above.to_owned()));
        removed = 1;
    }
}

fn leave(manager: Manager, events: impl Iterator<Item = Event>, dir: &Path, report: &mut InitReport) {
    let name = manager.name();
    report.managed = true;
    report.left.push(format!("{} is managed by {name} and was not written to; add there:", dir.display()));
    for event in events.filter(|event| manager.knows(*event)) {
        let (file, line) = manager.line(event);
        report.left.push(format!("{file}: {line}"));
    }
}

fn plan_shim(dir: &Path, event: Event, report: &mut InitReport) -> Result<()> {
    let (path, kept) = (dir.join(event.name()), local(dir, event));
    if is_shim(&path, event) {
        if std::fs::metadata(&path)
            .is_ok_and(|meta| std::os::unix::fs::PermissionsExt::mode(&meta.permissions()) & 0o100 == 0)
        {
            report.steps.push(Step::Write(path, event));
        }
        return Ok(());
    }
    if std::fs::symlink_metadata(&kept).is_ok() {
        return Err(HookError::Input(format!(
            "{} is in the way: a hook that is kept has that name and is called; move it away",
            kept.display()
        )));
    }
    if std::fs::symlink_metadata(&path).is_ok() {
        report.steps.push(Step::Keep(path.clone(), kept));
    }
    report.steps.push(Step::Write(path, event));
    Ok(())
}

fn uninstall(repo: &Repo, report: &mut InitReport) -> Result<()> {
    let dir = report.hooks.clone();
    remove_shims(&dir, report);
    let common = repo.common_dir().join("hooks");
    if common != dir {
        remove_shims(&common, report);
    }
    for event in Event::ALL {
        if repo.config_here(&format!("{}.command", section(event))) {
            report.steps.push(Step::UnsetSection(section(event)));
        }
    }
    let exclude = repo.common_dir().join("info/exclude");
    if let Some(bytes) = read(&exclude)? {
        let at = |text: &str| gix::bstr::ByteSlice::find(&*bytes, text);
        if bytes == EXCLUDE_ALONE.as_bytes() {
            let folder = exclude.parent().map(Path::to_owned).unwrap_or_default();
            report.steps.push(Step::Include(exclude, None));
            remove_made(&folder, 1, report);
        } else if let Some(start) = at(EXCLUDE) {
            let rest = [&bytes[..start], &bytes[start + EXCLUDE.len()..]].concat();
            report.steps.push(Step::Include(exclude, Some(rest)));
        }
    }
    if repo.config_is_true(NOTES_SHOWN) {
        report.steps.push(Step::Unset(DISPLAY.to_owned(), NOTES_REF.to_owned()));
        report.steps.push(Step::Unset(NOTES_SHOWN.to_owned(), "true".to_owned()));
    }
    Ok(())
}

fn remove_shims(dir: &Path, report: &mut InitReport) {
    let before = report.steps.len();
    for event in Event::ALL {
        let (path, kept) = (dir.join(event.name()), local(dir, event));
        let has_kept = std::fs::symlink_metadata(&kept).is_ok();
        if is_shim(&path, event) {
            report.steps.push(if has_kept { Step::Restore(kept, path) } else { Step::Remove(path) });
        } else if has_kept && std::fs::symlink_metadata(&path).is_ok() {
            let (path, kept) = (path.display(), kept.display());
            report.left.push(format!("{path} is not as git devlyn wrote it; it and {kept} were left as they are"));
        }
    }
    let removed = report.steps[before..].iter().filter(|step| matches!(step, Step::Remove(_))).count();
    remove_made(dir, removed, report);
}

fn apply(repo: &Repo, step: &Step) -> Result<()> {
    match step {
        Step::MakeDir(path) => {
            std::fs::create_dir(path).map_err(HookError::io(path))?;
            Ok(write_bytes(&path.join(MADE), b"")?)
        }
        // Both names for a moment: at no time is the hook that was there not called.
        Step::Keep(from, to) => match std::fs::hard_link(from, to) {
            Ok(()) => Ok(()),
            Err(_) => std::fs::rename(from, to).map_err(HookError::io(to)),
        },
        Step::Write(path, event) => write_shim(path, *event),
        Step::Restore(from, to) => std::fs::rename(from, to).map_err(HookError::io(to)),
        Step::Remove(path) => Ok(remove_file(path)?),
        Step::RemoveDir(path) => {
            remove_file(&path.join(MADE))?;
            std::fs::remove_dir(path).map_err(HookError::io(path))
        }
        Step::Exclude(path, bytes) | Step::Include(path, Some(bytes)) => {
            // Whoever made it a link, or chose its rights, finds it so.
            let real = std::fs::canonicalize(path).unwrap_or_else(|_| path.clone());
            let rights = std::fs::metadata(&real).map(|meta| meta.permissions());
            write_bytes(&real, bytes)?;
            rights.map_or(Ok(()), |rights| std::fs::set_permissions(&real, rights)).map_err(HookError::io(&real))
        }
        Step::Include(path, None) => Ok(remove_file(path)?),
        Step::Set(key, value) if key == DISPLAY => change_config(repo, &["--add", key, value]),
        Step::Set(key, value) => change_config(repo, &["--replace-all", key, value]),
        Step::Unset(key, value) => change_config(repo, &["--fixed-value", "--unset", key, value]),
        Step::UnsetSection(section) => change_config(repo, &["--remove-section", section]),
    }
}

fn change_config(repo: &Repo, args: &[&str]) -> Result<()> {
    repo.git().args(["config", "--local"]).args(args).run()?;
    Ok(())
}

/// The name that Git knows our hook for `event` by: one for each, because Git does not tell a command which event it
/// is called for.
fn section(event: Event) -> String {
    format!("hook.devlyn-{}", event.name())
}

/// The command line that Git runs for `event` and puts the arguments behind: what the shim of that name does.
fn command(event: Event) -> String {
    let name = event.name();
    format!(
        "devlyn() {{ command -v git-devlyn >/dev/null && exec git-devlyn hook {name} \"$@\"; \
         echo \"git-devlyn is not on PATH, so {name} judges nothing\" >&2; \
         ! test \"$(git config --type=bool devlyn.hooksRequired)\" = true; }}; devlyn"
    )
}

fn read(path: &Path) -> Result<Option<Vec<u8>>> {
    match std::fs::read(path) {
        Ok(bytes) => Ok(Some(bytes)),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(StoreError::io(path)(error).into()),
    }
}
