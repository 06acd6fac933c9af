#!/bin/sh
# floor.sh REPOSITORY TASKS: what Git's own part of a drain costs, and nothing else.
#
# For each task a linked worktree on a branch of its own, a commit of inputs, the executor's file and commit, the commit
# that marks the row, and both refs, with objects and refs flushed as a drain has to. No locks, receipts, evidence or
# checks. What a drain takes beyond this is its own.
set -eu
cd "$1"
export GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=core.fsync GIT_CONFIG_VALUE_0=committed,reference
from=$(git rev-parse HEAD)
for task in $(seq "$2"); do
    tree=../$(basename "$1").floor/$task
    git worktree add --quiet -b "floor/$task" "$tree" "$from"
    inputs=$(git commit-tree -p "$from" -m "inputs $task" "$from^{tree}")
    git -C "$tree" reset --quiet --soft "$inputs"
    (
        cd "$tree"
        echo "$task" >"floor.$task"
        git add "floor.$task"
        git commit --quiet --message "$task"
    )
    from=$(git -C "$tree" rev-parse HEAD)
    marked=$(git commit-tree -p "$from" -m "mark $task" "$from^{tree}")
    git -C "$tree" update-ref "refs/heads/floor/$task" "$marked"
    git update-ref "refs/floor/$task" "$marked"
done
