#!/bin/sh
# least.sh REPOSITORY TASKS: the programs that a drain of TASKS tasks has to start, and nothing that it does itself.
#
# For each task a worktree with the package in it, the executor, `git status` on what it submitted, the check, `git
# status` again, and the checkout of the terminal commit. Nothing is flushed, recorded, copied, judged or locked, and no
# object is written but by the executor: no drain that keeps the contract can be faster than this.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
cd "$1"
repository=$PWD
export GIT_OPTIONAL_LOCKS=0
ours() { git -c core.fsmonitor=false -c gc.auto=0 -c maintenance.auto=false "$@"; }
look() { ours -C "$tree" status --porcelain=v2 -z --untracked-files=all --ignore-submodules=none --no-renames >/dev/null; }
from=$(git commit-tree -p HEAD -m inputs "$(git for-each-ref --format='%(tree)' refs/devlyn/captures)")
mkdir -p "$repository/.git/refs/heads/least" "$repository/.git/least"
for task in $(seq "$2"); do
    tree=$repository.least/$task packet=$repository/.git/least/$task.packet
    # As one open `git update-ref --stdin` does it: without a process.
    echo "$from" >"$repository/.git/refs/heads/least/$task"
    ours worktree add -q --lock --reason least "$tree" "least/$task"
    printf '{\n  "submission": "%s.submission",\n  "task": "least.%s"\n}\n' "$packet" "$task" >"$packet"
    (cd "$tree" && "$here/executor.sh" "$packet")
    look
    /usr/bin/env true
    look
    read -r from <"$repository/.git/refs/heads/least/$task"
    ours -C "$tree" read-tree -m -u "$from" "$from"
done
