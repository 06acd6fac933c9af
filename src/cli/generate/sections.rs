//! What the pages say beyond the definitions of the command line.

/// A section that stands after the options.
pub(super) struct Section {
    pub(super) heading: &'static str,
    pub(super) blocks: &'static [Block],
}

/// A part of a section.
pub(super) enum Block {
    Text(&'static str),
    Term(&'static str, &'static str),
    Code(&'static str),
}

use Block::{Code, Term, Text};

/// The sections of a page of its own.
pub(super) fn of(page: &str) -> &'static [Section] {
    match page {
        "git-devlyn" => MAIN,
        "git-devlyn-check" => CHECK,
        "git-devlyn-add" => ADD,
        "git-devlyn-status" => STATUS,
        "git-devlyn-drain" => DRAIN,
        "git-devlyn-acceptance-run" => ACCEPTANCE_RUN,
        "git-devlyn-task-accept" => TASK_ACCEPT,
        "git-devlyn-task-complete" => TASK_COMPLETE,
        "git-devlyn-init" => INIT,
        "git-devlyn-hook" => HOOK,
        _ => &[],
    }
}

/// What a command's exit status means.
pub(super) fn exit_status(page: &str) -> [(&'static str, &'static str); 3] {
    let (zero, one) = match page {
        "git-devlyn-check" => ("The package is sound.", "BLOCKED: the package has faults, all of which were shown."),
        "git-devlyn-drain" => (
            "The queue was worked as far as it goes: DRAINED, or WAITING for something that the report names.",
            BLOCKED,
        ),
        "git-devlyn-acceptance-run" => {
            ("The checks were run, whether they passed or not.", "BLOCKED: the candidate cannot be checked as it is.")
        }
        "git-devlyn-fsck" => ("Everything agrees.", "There are findings, or the repository cannot be read."),
        "git-devlyn-verify" => ("Every commit keeps the rules.", "There are violations, or the range cannot be read."),
        "git-devlyn-hook" => ("Git may go on.", "Git must not go on; standard error says why and what to do."),
        _ => ("The command did what it is for.", BLOCKED),
    };
    [("0", zero), ("1", one), ("2", "The command line is wrong.")]
}

const BLOCKED: &str = "BLOCKED: something stands in the way. The message, or reason in the object, says what it is and \
what to do.";

const MAIN: &[Section] = &[
    Section {
        heading: "CONFIGURATION",
        blocks: &[
            Term(
                "devlyn.completionMode",
                "auto or pr: how pull requests are merged where neither the command line nor the package says it. auto \
                 asks for a merge as soon as the rules of the repository allow it, pr leaves the merge to a person. Read \
                 from the repository's own configuration only; any other value stops a delivery before it has an effect. \
                 Default: auto.",
            ),
            Term(
                "devlyn.forge",
                "The host that opens and merges requests: github, through gh and your login there, or none to push the \
                 task's branch and wait until a person has merged it by whatever means: a merge, a squash or a rebase is \
                 recognised by its commits or its patches. Without it the remote must be a repository on GitHub.",
            ),
            Term(
                "devlyn.hooksRequired",
                "true makes the installed hooks refuse a commit where git-devlyn cannot be found. Default: false, and the \
                 hook says that it did nothing.",
            ),
            Term(
                "devlyn.sign",
                "true signs the commits that git devlyn makes itself, as commit.gpgSign does for yours. Default: false, \
                 whatever commit.gpgSign says: a drain at night has nobody to type a passphrase. The executor's commits \
                 are its own affair.",
            ),
            Term(
                "devlyn.writers",
                "strict counts every process that cannot be looked into as one that may write to a task's worktree. \
                 Without it only those of the same user count that started after the worktree was made.",
            ),
        ],
    },
    Section {
        heading: "FILES",
        blocks: &[
            Text(
                "$GIT_COMMON_DIR is what `git rev-parse --git-common-dir` prints; all worktrees of a repository share it.",
            ),
            Term(
                "docs/specs/<loop>/",
                "A package that is being written, and the queue file of a loop that was brought in.",
            ),
            Term("refs/devlyn/captures/<loop>", "The package as it was added."),
            Term(
                "refs/devlyn/completed/<key>",
                "The recovery ref of a task: what it produced is never lost to `git gc`.",
            ),
            Term("refs/heads/devlyn/<loop>/<task>", "The branch of a task."),
            Term("refs/notes/devlyn", "Results in brief, for `git log --notes=devlyn`."),
            Term("$GIT_COMMON_DIR/devlyn-loops/", "Locks, add records and reports."),
            Term(
                "$GIT_COMMON_DIR/devlyn-completion/<key>/",
                "One task: receipt, packet, submission, custody, scratch.",
            ),
            Term("<worktree>/.devlyn/", "Evidence, while the task's worktree is there. Git must ignore it."),
        ],
    },
];

const CHECK: &[Section] = &[Section {
    heading: "OUTPUT",
    blocks: &[
        Text("Each fault is a line with its place, and below it what to write instead:"),
        Code(
            "docs/specs/inventory/t02/spec.md:14:1: the requirement R2 is there twice\n  \
             = help: give one of the two another number",
        ),
    ],
}];

const ADD: &[Section] = &[Section {
    heading: "WHAT IS REFUSED",
    blocks: &[
        Text(
            "A package with faults; a loop name that was used before with another package; package files that are \
             committed with other bytes, or staged in the index; a detached HEAD; a HEAD whose CLAUDE.md or AGENTS.md is \
             not the one of the checkout, because the tasks would work by other instructions than you see. Whatever is \
             refused leaves everything as it was.",
        ),
        Text(
            "A copy in the checkout that differs from the capture is kept and named; every later add, status and drain \
             tries to finish the cleanup.",
        ),
    ],
}];

const STATUS: &[Section] = &[Section {
    heading: "NOTES",
    blocks: &[Text(
        "Status works beside a drain. It writes nothing but what an interrupted add left to do. What it shows was \
         compared: a row alone makes nothing accepted.",
    )],
}];

const DRAIN: &[Section] = &[
    Section {
        heading: "EXECUTORS",
        blocks: &[
            Text(
                "Any program that can read a file and commit. It is started in the task's worktree, with the null device \
                 as standard input, in a process group of its own; what it prints goes to executor.stdout and \
                 executor.stderr in the task's evidence directory. It reads the packet, does the task, commits, runs the \
                 packet's runner, and writes the submission; gitdevlyn-workflow(7) has the whole exchange.",
            ),
            Text(
                "Its exit status is no evidence, and neither is its summary. An executor that ends without a submission \
                 leaves its task waiting; the next drain starts it again. One that is not found on PATH stops the drain \
                 before anything is allocated.",
            ),
            Text(
                "A program that is typed as a path is the one that stands there from where you type it. Where none does, \
                 each task looks for it in its own worktree, and waits where it is not there either.",
            ),
        ],
    },
    Section {
        heading: "SIGNALS",
        blocks: &[
            Text(
                "SIGINT, SIGTERM and SIGHUP are passed on to the executor, which gets a moment to end; the task stays \
                 resumable and the next drain goes on with it. A second signal ends the drain at once. Nothing is lost \
                 either way.",
            ),
            Text("One drain works in a repository at a time; a second one is refused, from whatever worktree."),
        ],
    },
    Section {
        heading: "PROGRESS",
        blocks: &[
            Text("Where standard error is no terminal, each durable step is a line on it:"),
            Code("devlyn-loop: inventory.t01: allocated\ndevlyn-loop: inventory.t01: accepted"),
        ],
    },
];

const ACCEPTANCE_RUN: &[Section] = &[Section {
    heading: "NOTES",
    blocks: &[Text(
        "The worktree must be clean, with the head of the task's branch checked out, and the package in it must be the \
         one that was handed out. Commands run one after the other, each with its own time limit on its whole process \
         group.",
    )],
}];

const TASK_ACCEPT: &[Section] = &[Section {
    heading: "A DIRECT ACCEPTANCE",
    blocks: &[
        Text("For work without a loop, the acceptance names what was run and where its output is kept:"),
        Code(
            "{\n  \"kind\": \"direct\",\n  \"task\": \"fix\",\n  \"source_sha\": \"<full commit id>\",\n  \"checks\": [\n    \
             {\"command\": \"make test\", \"evidence\": \".devlyn/test.log\"}\n  ]\n}",
        ),
        Text("Evidence is a file or a directory inside the worktree; links are refused."),
    ],
}];

const TASK_COMPLETE: &[Section] = &[Section {
    heading: "OUTCOMES",
    blocks: &[
        Term("LOCAL_ONLY", "The result is kept here: source, custody and recovery ref. Nothing was pushed."),
        Term("PENDING", "The pull request is open and its merge was asked for."),
        Term("PR", "The pull request is open and waits for a person."),
        Term("COMPLETE", "The merge is on the base, and what the task used is cleaned up."),
        Term("CLEANUP_PENDING", "The merge is on the base; something was retained, with its reason and how to go on."),
        Term("FAILED", "The bound result is a failed one. It is never published."),
    ],
}];

const INIT: &[Section] = &[Section {
    heading: "NOTES",
    blocks: &[
        Text(
            "From Git 2.54 on the hooks are registered in the repository's configuration and leave every hook file alone. \
             Before that they are files in the directory that Git uses (core.hooksPath, or hooks/ in the common \
             directory); a hook that is there already is kept beside ours as <name>.local and called first.",
        ),
        Text(
            "Installed are pre-commit, pre-merge-commit, pre-applypatch, prepare-commit-msg, pre-push and pre-receive; \
             update does the same as pre-receive for each ref, for a server that wants that. prepare-commit-msg judges \
             only what cherry-pick, revert and rebase make, which call none of the others. The hooks of husky, lefthook \
             and pre-commit are left to them: the lines to add to their own files are printed.",
        ),
        Text("Running init twice changes nothing the second time, and --uninstall leaves every byte as it was before."),
    ],
}];

const HOOK: &[Section] = &[
    Section {
        heading: "RULES",
        blocks: &[
            Term("H1", "No path at or below .devlyn/ is committed."),
            Term("H2", "In a repository with a loop, .devlyn/ stays ignored."),
            Term(
                "H3",
                "A loop's queue file changes in one way only: one pending row becomes [x], or [F] with its reason and \
                 receipt, and every other byte stays.",
            ),
            Term("H4", "That change is alone in its commit."),
            Term("H5", "It says what the task's receipt says, where this repository has one."),
            Term("H6", "A queue file that is new beside a capture is the captured one, with legal marks at most."),
            Term("H7", "The files of a captured package do not change, and its queue file is not deleted."),
            Term("H8", "A task's own branch changes neither its package nor the legacy queue."),
            Text(
                "A merge is judged against all its parents: each row is one that some parent has, a row that one of them \
                 has settled stays settled, and the files of a package are those of a parent.",
            ),
        ],
    },
    Section {
        heading: "WHAT IS JUDGED WHEN",
        blocks: &[
            Text(
                "A commit is judged on the index that Git hands to the hook, on top of HEAD. `git commit --amend` is not told \
                 to a hook, nor is the squash of a rebase; both are judged as they are when they are pushed. \
                 `--no-verify` lets a commit through, and so does `git -c core.hooksPath=/dev/null` where a command has no \
                 such option; pre-push, pre-receive and `git devlyn verify` find it.",
            ),
            Text(
                "Of commits that are made already, H2 is asked of the last one and of those that take the rule away, and H7 \
                 lets drafts pass that become the captured text: what is older than the loop could not know of it.",
            ),
        ],
    },
    Section {
        heading: "ON A SERVER",
        blocks: &[
            Text(
                "`git devlyn init` in a bare repository installs pre-receive too. A push is judged while its objects are in \
                 quarantine: nothing of one that is refused is kept. Where another program makes the hook, it calls:",
            ),
            Code("exec git-devlyn hook pre-receive \"$@\""),
        ],
    },
];
