#!/bin/sh
# executor.sh PACKET: the least that an executor can do. One file, one commit, one submission.
set -e
get() { sed -n 's/^  "'"$1"'": "\(.*\)",*$/\1/p' "$2"; }
task=$(get task "$1")
echo "$task" >"$task"
git add "$task"
git commit -qm "$task"
echo "{\"schema_version\": 1, \"task\": \"$task\", \"source_sha\": \"$(git rev-parse HEAD)\"}" >"$(get submission "$1")"
