//! What can be typed: every command and flag as data, from which help, man pages and completions come.
//!
//! The doc comments here are what people read. Their first paragraph is the line of a list, the rest is the page.

use clap::{Args, Parser, Subcommand, ValueEnum, ValueHint};
use std::ffi::OsString;
use std::num::NonZeroUsize;
use std::path::PathBuf;

/// Leave coding agents alone with a repository, and find proven work in the morning.
///
/// A person plans a loop: a package of small tasks, each with the checks that decide whether it is done. git devlyn
/// keeps the package in Git, gives each task a worktree and a branch of its own, starts the agent that you name on
/// the command line, runs the checks on what the agent committed, and records the result as a commit of one line.
/// Nothing that an agent says is taken for evidence, nothing of yours is touched, and whatever is interrupted is
/// continued by typing the same command again.
#[derive(Debug, Parser)]
#[command(name = "git-devlyn", bin_name = "git devlyn", version, propagate_version = false)]
#[command(arg_required_else_help = true, subcommand_required = true, max_term_width = 100)]
#[command(after_help = "A loop: check, add, drain, report. `man gitdevlyn-workflow` tells the whole way.")]
pub struct Cli {
    /// Print one JSON object instead of text for people.
    ///
    /// Print one JSON object on one line, its keys sorted. The object is the same whether standard output is a
    /// terminal or not; gitdevlyn-formats(5) has its keys. The flag may stand anywhere before `--`.
    #[arg(long, global = true, display_order = 900)]
    pub json: bool,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Report every fault of a package.
    ///
    /// Reads the package and names everything that is wrong with it, each fault with its file, line and column and
    /// with what to write instead. Writes nothing.
    #[command(after_long_help = examples::CHECK)]
    Check(Package),

    /// Put a package into the queue.
    ///
    /// Keeps the package as a commit of its own under refs/devlyn/captures/, records on which branch it was added,
    /// and removes the package's untracked copies from the checkout. HEAD, branches, the index and tracked files
    /// stay as they are. A package that was added never changes again: revised work is a new loop with a new name.
    #[command(after_long_help = examples::ADD)]
    Add(Add),

    /// Show where every loop stands.
    ///
    /// Compares what the queue says with the receipts, the recovery refs and the task branches, and shows the result:
    /// how much is pending, active, accepted and failed, which task is next, what stands in the way, and which
    /// deliveries wait.
    #[command(after_long_help = examples::STATUS)]
    Status(Status),

    /// Work the queue until nothing can go on.
    ///
    /// Takes the tasks in order. Each gets a worktree and a branch; the executor is started there with a packet that
    /// holds all it needs to know; the checks are run on what it committed; the result is bound, recorded and
    /// delivered. A task that fails never stops independent work. A drain that was interrupted, by Ctrl-C or by a
    /// power cut, is continued by the next one.
    ///
    /// In the executor's arguments {packet} becomes the path of the task's packet and {worktree_git_dir} the
    /// absolute Git directory of its worktree. No shell reads them.
    #[command(after_long_help = examples::DRAIN)]
    Drain(Drain),

    /// Show what the last drain left.
    ///
    /// One page a loop: what was accepted and on what evidence, what failed and why, what waits for you, and the
    /// command that brings the accepted work into your branch.
    #[command(after_long_help = examples::REPORT)]
    Report(Report),

    /// Run the declared checks of a task on its candidate.
    ///
    /// For executors: the packet names this command as its runner.
    #[command(subcommand, subcommand_required = true, arg_required_else_help = true)]
    Acceptance(Acceptance),

    /// Lead a single task by hand, one step at a time.
    ///
    /// The steps that a drain takes, for the owner of one task. A refusal changes nothing.
    #[command(subcommand, subcommand_required = true, arg_required_else_help = true)]
    #[command(after_long_help = examples::TASK)]
    Task(Task),

    /// Check everything that is kept against everything else.
    ///
    /// Compares captures with records, rows with receipts, receipts with recovery refs, terminal commits, custody,
    /// notes, worktrees and branches, and prints a line for each finding with its remedy. Changes nothing but what
    /// is asked for with --rebuild-notes. Exits 1 when there are findings.
    #[command(after_long_help = examples::FSCK)]
    Fsck(Fsck),

    /// Undo an allocation that was never finished.
    ///
    /// The one recovery that a drain leaves to a person. Shows the worktree, branch and receipt directory that the
    /// interrupted allocation left and what is in them, proves that nothing there would be lost, and removes them.
    /// Everything else is refused.
    #[command(after_long_help = examples::RECOVER)]
    Recover(Recover),

    /// Install the hooks that guard the queue.
    ///
    /// Registers the hooks in the place that Git uses for this repository, calls the hooks that are there already
    /// first, and has `.devlyn/` ignored. Hook directories that another tool manages are not written to; the line to
    /// add there is printed instead.
    #[command(after_long_help = examples::INIT)]
    Init(Init),

    /// Judge a commit, a merge or a push.
    ///
    /// What the installed hooks call. Arguments and standard input are those that Git gives to the hook.
    #[command(hide = true)]
    Hook(Hook),

    /// Judge every commit of a range by the rules of the hooks.
    ///
    /// For a CI job, and for whatever `git commit --no-verify` let through. Prints a line for each violation and exits
    /// 1 when there is one.
    #[command(after_long_help = examples::VERIFY)]
    Verify(Verify),

    /// Write man pages or completions
    #[command(hide = true)]
    Generate(Generate),
}

/// Which repository, where the current directory does not say it.
#[derive(Debug, Default, Args)]
pub struct Repository {
    /// Work in the repository of DIR instead of the current directory's
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub repo: Option<PathBuf>,
}

/// A package, by its file or by the name of its loop.
#[derive(Debug, Args)]
pub struct Package {
    /// Path of a meta.md, or the name of a loop.
    ///
    /// A path is taken from the current directory, and its place decides the repository. A name stands for
    /// docs/specs/<name>/meta.md in the repository at hand.
    #[arg(value_name = "META.MD|LOOP", value_hint = ValueHint::FilePath)]
    pub package: OsString,

    /// The repository in which a loop's name is looked up.
    #[command(flatten)]
    pub repository: Repository,
}

/// Arguments of `add`.
#[derive(Debug, Args)]
pub struct Add {
    /// The package.
    #[command(flatten)]
    pub package: Package,

    /// Let the loop stand for the pending row in LINE of docs/specs/queue.md.
    ///
    /// The package's Intent must repeat that row word for word. The legacy queue itself is never written: the loop's
    /// own queue file names the row that it replaces, and every checkout shows the loop in its place.
    #[arg(long, value_name = "LINE")]
    pub materialize: Option<NonZeroUsize>,
}

/// Whether anything may leave this machine.
#[derive(Debug, Default, Args)]
pub struct Locality {
    /// Push nothing and fetch nothing.
    ///
    /// Work with delivery auto or pr is treated as local work, unless some of it was pushed already. --no-push is the
    /// same.
    #[arg(long, visible_alias = "no-push")]
    pub local_only: bool,
}

/// Arguments of `status`.
#[derive(Debug, Args)]
pub struct Status {
    /// Whether loops are judged as local ones.
    #[command(flatten)]
    pub locality: Locality,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,
}

/// Arguments of `drain`.
#[derive(Debug, Args)]
pub struct Drain {
    /// Whether anything may leave this machine.
    #[command(flatten)]
    pub locality: Locality,

    /// Make the tasks' worktrees below DIR.
    ///
    /// Without it they are made beside the repository, in <name>.devlyn/<loop>/<task>.
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub worktree_root: Option<PathBuf>,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,

    /// The executor and its arguments, one of which holds {packet}
    #[arg(last = true, required = true, value_name = "EXECUTOR", value_hint = ValueHint::CommandName)]
    pub executor: Vec<OsString>,
}

/// Arguments of `report`.
#[derive(Debug, Args)]
pub struct Report {
    /// Show this loop only
    #[arg(value_name = "LOOP")]
    pub loop_id: Option<String>,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,
}

/// What can be done with a task's acceptance.
#[derive(Debug, Subcommand)]
pub enum Acceptance {
    /// Run the declared checks on the committed candidate.
    ///
    /// Runs every declared command and guard of the packet's task on the head of its branch and writes the outcome
    /// into the evidence directory. A result without any reason, listed in the submission, is taken over by the
    /// drain. Exits 0 whether the checks passed or not; a candidate that cannot be checked, an unclean worktree say,
    /// is BLOCKED.
    #[command(after_long_help = examples::ACCEPTANCE_RUN)]
    Run(AcceptanceRun),
}

/// Arguments of `acceptance run`.
#[derive(Debug, Args)]
pub struct AcceptanceRun {
    /// The task's packet
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub packet: PathBuf,
}

/// The steps of one task.
#[derive(Debug, Subcommand)]
pub enum Task {
    /// Give a task a worktree and a branch of its own.
    ///
    /// Makes a new worktree on a new branch and the receipt that owns both; nothing that exists is ever adopted.
    /// Without one of --start, --local-base and --from-receipt the work starts from the freshly fetched head of the
    /// base branch.
    #[command(after_long_help = examples::TASK_ALLOCATE)]
    Allocate(Allocate),

    /// Bind a result to its task, once and for all.
    ///
    /// Copies the evidence that the acceptance names into the receipt's custody and points the recovery ref at the
    /// source. The same acceptance again changes nothing; another one is refused.
    Accept(Accept),

    /// Attach the commit that says how the task ended.
    ///
    /// The commit's only parent is the bound source and its only change is the task's row in the queue file. The
    /// recovery ref moves to it.
    Attach(Attach),

    /// Deliver a bound task, or say what its delivery waits for.
    ///
    /// Local work stays where it is. Other work is pushed to its branch and becomes a pull request; what it used is
    /// cleaned up once the request was merged. An interrupted delivery is continued by the same command.
    Complete(Complete),

    /// Empty a task's scratch directory.
    ///
    /// Only once its owner has said that nothing writes there any more. Links are removed, never followed.
    CleanScratch(CleanScratch),
}

/// A task, by its receipt.
#[derive(Debug, Args)]
pub struct Receipt {
    /// The task's receipt.json
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub receipt: PathBuf,
}

/// The word of a task's owner that nothing writes there any more.
#[derive(Debug, Default, Args)]
pub struct Release {
    /// Declare that every process that wrote to the task's worktree has ended.
    ///
    /// Cleanup needs this word, and still looks for itself. Refused from inside the worktree.
    #[arg(long)]
    pub writers_stopped: bool,
}

/// Arguments of `task allocate`.
#[derive(Debug, Args)]
pub struct Allocate {
    /// What the task is called in its receipt
    #[arg(long, value_name = "TASK")]
    pub task: String,

    /// The branch to create
    #[arg(long, value_name = "BRANCH")]
    pub branch: String,

    /// Where to make the worktree; must not exist yet
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub worktree: PathBuf,

    /// The branch that the work is meant for
    #[arg(long, value_name = "BRANCH")]
    pub base: String,

    /// Where the work starts.
    #[command(flatten)]
    pub start: Start,

    /// The remote to fetch from and to deliver to
    #[arg(long, value_name = "NAME", default_value = "origin")]
    pub remote: String,

    /// The repository that the remote must be.
    ///
    /// Every fetch and push URL of the remote has to name it. Not needed for local work.
    #[arg(long, value_name = "OWNER/NAME")]
    pub repository: Option<String>,

    /// The repository to work in.
    #[command(flatten)]
    pub place: Repository,
}

/// Where a task's work starts; without any of them at the fetched head of the base.
#[derive(Debug, Default, Args)]
#[group(multiple = false)]
pub struct Start {
    /// Start from this commit of the fetched base, given in full
    #[arg(long, value_name = "SHA")]
    pub start: Option<String>,

    /// Start from this commit, given in full, and stay local
    #[arg(long, value_name = "SHA")]
    pub local_base: Option<String>,

    /// Start from the accepted source of another task, and stay local
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub from_receipt: Option<PathBuf>,
}

/// Arguments of `task accept`.
#[derive(Debug, Args)]
pub struct Accept {
    /// The task.
    #[command(flatten)]
    pub receipt: Receipt,

    /// The acceptance to bind, a file inside the task's worktree
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub acceptance: PathBuf,
}

/// Arguments of `task attach`.
#[derive(Debug, Args)]
pub struct Attach {
    /// The task.
    #[command(flatten)]
    pub receipt: Receipt,

    /// The terminal commit, given in full
    #[arg(long, value_name = "SHA")]
    pub commit: String,

    /// The queue file that the commit changes, docs/specs/<loop>/queue.md
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub file: PathBuf,
}

/// Arguments of `task complete`.
#[derive(Debug, Args)]
pub struct Complete {
    /// The task.
    #[command(flatten)]
    pub receipt: Receipt,

    /// Bind this acceptance first
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub acceptance: Option<PathBuf>,

    /// How the pull request is merged.
    ///
    /// Kept in the receipt. Without it the receipt's mode counts, then devlyn.completionMode, then `auto`.
    #[arg(long, value_name = "MODE")]
    pub mode: Option<Mode>,

    /// Whether anything may leave this machine.
    #[command(flatten)]
    pub locality: Locality,

    /// Whether the writers have ended.
    #[command(flatten)]
    pub release: Release,
}

/// How a pull request is merged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Mode {
    /// Ask for a merge as soon as the repository's rules allow it
    Auto,
    /// Open the pull request and leave the merge to a person
    Pr,
}

/// Arguments of `task clean-scratch`.
#[derive(Debug, Args)]
pub struct CleanScratch {
    /// The task.
    #[command(flatten)]
    pub receipt: Receipt,

    /// Whether the writers have ended.
    #[command(flatten)]
    pub release: Release,
}

/// Arguments of `fsck`.
#[derive(Debug, Args)]
pub struct Fsck {
    /// Write the notes on refs/notes/devlyn anew from the receipts
    #[arg(long)]
    pub rebuild_notes: bool,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,
}

/// Arguments of `recover`.
#[derive(Debug, Args)]
pub struct Recover {
    /// The task, as <loop>.<task>
    #[arg(value_name = "TASK")]
    pub task: String,

    /// Show what would be removed, and remove nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,
}

/// Arguments of `init`.
#[derive(Debug, Args)]
pub struct Init {
    /// Take the hooks out again and put everything back as it was
    #[arg(long)]
    pub uninstall: bool,

    /// Guard the capture and recovery refs too.
    ///
    /// Installs a reference-transaction hook, which Git runs for every ref that changes: fetches of many refs become
    /// slower.
    #[arg(long, conflicts_with = "uninstall")]
    pub protect_refs: bool,

    /// Show results in `git log` of this repository.
    ///
    /// Adds refs/notes/devlyn to notes.displayRef.
    #[arg(long, conflicts_with = "uninstall")]
    pub notes: bool,

    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,
}

/// Arguments of `hook`.
#[derive(Debug, Args)]
pub struct Hook {
    /// The hook that Git runs
    pub name: HookName,

    /// The arguments that Git gave to it
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub args: Vec<OsString>,
}

/// The hooks that git devlyn knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum HookName {
    /// Before a commit is made
    PreCommit,
    /// Before a merge is committed
    PreMergeCommit,
    /// Before a mailed patch is committed
    PreApplypatch,
    /// Before a commit is made again elsewhere, by cherry-pick, revert or rebase
    PrepareCommitMsg,
    /// Before anything is pushed
    PrePush,
    /// Before a server takes a push
    PreReceive,
    /// Before a server moves one ref
    Update,
    /// While refs change
    ReferenceTransaction,
}

/// Arguments of `verify`.
#[derive(Debug, Args)]
pub struct Verify {
    /// A revision range, as `git log` takes it
    #[arg(value_name = "RANGE")]
    pub range: OsString,

    /// The repository.
    #[command(flatten)]
    pub repository: Repository,
}

/// Arguments of `generate`.
#[derive(Debug, Args)]
pub struct Generate {
    /// What to write
    pub what: Artifact,

    /// The directory to write into
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub dir: PathBuf,
}

/// What comes from these definitions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Artifact {
    /// The pages of section 1
    Man,
    /// The files for bash, zsh and fish
    Completions,
}

/// What the long help of a command ends with: a heading, then lines to type, each under a comment.
mod examples {
    pub(super) const CHECK: &str = "\
Examples:
  # every fault of a package that is being written
  git devlyn check docs/specs/inventory/meta.md
  # the same, by the loop's name
  git devlyn check inventory";

    pub(super) const ADD: &str = "\
Examples:
  # plan the loop
  git devlyn add docs/specs/inventory/meta.md
  # plan it in place of the row in line 5 of the legacy queue
  git devlyn add inventory --materialize 5
  # look at what was captured
  git show refs/devlyn/captures/inventory:docs/specs/inventory/meta.md";

    pub(super) const STATUS: &str = "\
Examples:
  # where things stand
  git devlyn status
  # the next task, for a script
  git devlyn status --json | jq -r .next";

    pub(super) const DRAIN: &str = "\
Examples:
  # with Claude Code, which must be allowed to commit and to write its submission
  git devlyn drain -- claude -p \"Do the task in {packet}\" --permission-mode acceptEdits --allowedTools Bash
  # with Codex, whose sandbox must let it write to both Git directories
  git devlyn drain -- codex exec --sandbox workspace-write --add-dir {worktree_git_dir} --add-dir \"$PWD/.git\" \"Do the task in {packet}\"
  # with a script, and nothing leaves this machine
  git devlyn drain --local-only -- ./executor.sh {packet}";

    pub(super) const REPORT: &str = "\
Examples:
  # everything
  git devlyn report
  # one loop
  git devlyn report inventory";

    pub(super) const ACCEPTANCE_RUN: &str = "\
Examples:
  # in the task's worktree, once the work is committed
  git devlyn acceptance run --packet \"$packet\" --json";

    pub(super) const TASK: &str = "\
Examples:
  # a task of your own, without any loop, that stays on this machine
  git devlyn task allocate --task fix --branch fix --worktree ../fix --base main --local-base \"$(git rev-parse main)\"
  # bind what was proven
  git devlyn task accept --receipt \"$receipt\" --acceptance ../fix/.devlyn/acceptance.json
  # and settle it
  git devlyn task complete --receipt \"$receipt\" --local-only";

    pub(super) const TASK_ALLOCATE: &str = "\
Examples:
  # work that stays on this machine
  git devlyn task allocate --task fix --branch fix --worktree ../fix --base main --local-base \"$(git rev-parse main)\"
  # work that becomes a pull request
  git devlyn task allocate --task fix --branch fix --worktree ../fix --base main --repository owner/name";

    pub(super) const FSCK: &str = "\
Examples:
  # is everything as it should be?
  git devlyn fsck
  # after cloning anew, or after the notes were lost
  git devlyn fsck --rebuild-notes";

    pub(super) const RECOVER: &str = "\
Examples:
  # what did the interrupted allocation leave?
  git devlyn recover inventory.t02 --dry-run
  # take it away
  git devlyn recover inventory.t02";

    pub(super) const INIT: &str = "\
Examples:
  # what would change?
  git devlyn init --dry-run
  # install
  git devlyn init
  # and take it out again
  git devlyn init --uninstall";

    pub(super) const VERIFY: &str = "\
Examples:
  # what a pull request brings
  git devlyn verify origin/main..HEAD";
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use clap::error::ErrorKind;

    fn parse(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(std::iter::once("git-devlyn").chain(line.split_whitespace()))
    }

    fn command(line: &str) -> Command {
        parse(line).unwrap_or_else(|error| panic!("{line}: {error}")).command
    }

    fn refused(line: &str) -> ErrorKind {
        let error = parse(line).expect_err(line);
        assert_eq!(error.exit_code(), 2, "{line}");
        error.kind()
    }

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn json_may_stand_anywhere_before_the_executor() {
        for line in
            ["--json status", "status --json", "status --json --local-only", "task clean-scratch --json --receipt r"]
        {
            assert!(parse(line).expect(line).json, "{line}");
        }
        assert!(parse("drain --json -- agent {packet}").expect("drain").json);
        assert!(!parse("drain -- agent --json {packet}").expect("drain").json);
    }

    #[test]
    fn a_drain_takes_the_executor_as_it_is() {
        let Command::Drain(drain) = command("drain --no-push --worktree-root ../w -- sh -c x --local-only {packet}")
        else {
            panic!("a drain")
        };
        assert!(drain.locality.local_only);
        assert_eq!(drain.worktree_root, Some(PathBuf::from("../w")));
        assert_eq!(drain.executor, ["sh", "-c", "x", "--local-only", "{packet}"]);
    }

    #[cfg(unix)]
    #[test]
    fn paths_and_executors_are_bytes() {
        use std::os::unix::ffi::OsStringExt;
        let odd = OsString::from_vec(b"caf\xe9".to_vec());
        let words = ["git-devlyn", "drain", "--repo"].map(OsString::from);
        let line = words.into_iter().chain([odd.clone(), "--".into(), odd.clone()]);
        let Command::Drain(drain) = Cli::try_parse_from(line).expect("bytes").command else { panic!("a drain") };
        assert_eq!(drain.repository.repo, Some(PathBuf::from(&odd)));
        assert_eq!(drain.executor, [odd]);
    }

    #[test]
    fn a_drain_needs_an_executor_behind_two_dashes() {
        assert_eq!(refused("drain"), ErrorKind::MissingRequiredArgument);
        assert_eq!(refused("drain agent {packet}"), ErrorKind::UnknownArgument);
    }

    #[test]
    fn a_task_starts_in_one_place() {
        let given = "task allocate --task t --branch b --worktree w --base main";
        let Command::Task(Task::Allocate(allocate)) = command(given) else { panic!("an allocation") };
        assert_eq!(allocate.remote, "origin");
        assert_eq!((allocate.start.start, allocate.start.local_base, allocate.start.from_receipt), (None, None, None));
        for pair in ["--start a --local-base b", "--start a --from-receipt r", "--local-base b --from-receipt r"] {
            assert_eq!(refused(&format!("{given} {pair}")), ErrorKind::ArgumentConflict);
        }
        assert_eq!(refused("task allocate --task t"), ErrorKind::MissingRequiredArgument);
    }

    #[test]
    fn lines_count_from_one() {
        let Command::Add(add) = command("add inventory --materialize 5") else { panic!("an add") };
        assert_eq!(add.materialize.map(NonZeroUsize::get), Some(5));
        for line in ["0", "-1", "two", ""] {
            assert_eq!(refused(&format!("add inventory --materialize={line}")), ErrorKind::ValueValidation);
        }
    }

    #[test]
    fn wrong_usage_is_told_by_its_exit_status() {
        for line in
            ["check", "add", "verify", "recover", "nothing", "task", "acceptance", "acceptance run", "task accept"]
        {
            refused(line);
        }
        assert_eq!(refused("task complete --receipt r --mode merge"), ErrorKind::InvalidValue);
        assert_eq!(refused("hook post-commit"), ErrorKind::InvalidValue);
        assert_eq!(refused("init --uninstall --protect-refs"), ErrorKind::ArgumentConflict);
    }

    #[test]
    fn modes_are_auto_and_pr() {
        for (word, mode) in [("auto", Mode::Auto), ("pr", Mode::Pr)] {
            let Command::Task(Task::Complete(complete)) = command(&format!("task complete --receipt r --mode {word}"))
            else {
                panic!("a completion")
            };
            assert_eq!(complete.mode, Some(mode));
        }
    }

    #[test]
    fn a_hook_gets_what_git_gives_it() {
        let Command::Hook(hook) = command("hook update refs/heads/main -x --json") else { panic!("a hook") };
        assert_eq!(hook.name, HookName::Update);
        assert_eq!(hook.args, ["refs/heads/main", "-x", "--json"]);
    }

    #[test]
    fn help_is_no_fault() {
        for (line, kind) in [
            ("-h", ErrorKind::DisplayHelp),
            ("--help", ErrorKind::DisplayHelp),
            ("drain -h", ErrorKind::DisplayHelp),
            ("task allocate --help", ErrorKind::DisplayHelp),
            ("--version", ErrorKind::DisplayVersion),
        ] {
            let error = parse(line).expect_err(line);
            assert_eq!((error.kind(), error.exit_code()), (kind, 0), "{line}");
        }
        assert_eq!(refused(""), ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand);
    }

    /// Every command that people see says in one line what it does and shows how to type it.
    #[test]
    fn every_command_is_described() {
        fn walk(command: &clap::Command) {
            for sub in command.get_subcommands().filter(|sub| !sub.is_hide_set() && sub.get_name() != "help") {
                let about = sub.get_about().expect("a line").to_string();
                assert!(about.len() <= 60 && !about.ends_with('.'), "{}: {about}", sub.get_name());
                walk(sub);
            }
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{} {}", command.get_name(), argument.get_id());
            }
        }
        walk(&Cli::command());
    }
}
