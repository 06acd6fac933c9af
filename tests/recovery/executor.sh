#!/bin/sh
# executor.sh PACKET: does for each task what the file $PLAN/<identity> says, one word a line; all the words:
#   runner    runs the packet's runner and lists its result
#   review    writes a review record for the requirements that need one
#   nothing   ends without a submission
#   half      writes half a submission and ends
#   doubt     gives up with a question
#   bare      commits nothing
#   astray    makes its worktree lead to the main checkout's Git directory once it has submitted
#   wait      waits until $PLAN/<identity>.go is there (asked for twenty times a second)
#   ignore    is deaf to SIGINT, SIGTERM and SIGHUP
#   stray     leaves a process behind in its own group, and one in a session of its own
set -eu
packet=$1
member() { sed -n 's/^  "'"$1"'": "\(.*\)",\{0,1\}$/\1/p' "$packet"; }
digest() { sed -n '/^  "'"$1"'": {/,/^  }/ s/^    "sha256": "\(.*\)"$/\1/p' "$packet"; }
listed() { sed -n '/^  "'"$1"'": \[/,/^  \]/ s/^    "\(.*\)",\{0,1\}$/\1/p' "$packet"; }

task=$(member task)
echo "$$" >>"$CALLS/$task"
words=" $(tr '\n' ' ' <"$PLAN/$task") "
does() { case $words in *" $1 "*) return 0 ;; *) return 1 ;; esac; }

! does ignore || trap '' INT TERM HUP
if does stray; then
    sleep 6011 </dev/null >/dev/null 2>&1 &
    echo $! >"$PLAN/$task.child"
    setsid sh -c 'echo $$ >"$1"; exec sleep 6012' sh "$PLAN/$task.stray" </dev/null >/dev/null 2>&1 &
    while ! [ -s "$PLAN/$task.stray" ]; do sleep 0.02; done
fi
if does wait; then
    : >"$PLAN/$task.waits"
    while ! [ -e "$PLAN/$task.go" ]; do sleep 0.05; done
fi
! does nothing || exit 3

name=${task#*.}.txt
if ! does bare && ! [ -e "$name" ]; then
    echo "$task" >"$name"
    git add -- "$name"
    git commit -q -m "Do $task"
elif ! does bare && ! git cat-file -e "HEAD:$name" 2>/dev/null; then
    # An earlier execution was cut off between its two commands.
    rm -f "$(git rev-parse --git-path index.lock)"
    echo "$task" >"$name"
    git add -- "$name"
    git commit -q -m "Do $task"
fi
source=$(git rev-parse HEAD)

results=
if does runner; then
    set --
    while IFS= read -r word; do set -- "$@" "$word"; done <<WORDS
$(listed runner)
WORDS
    results=$("$@" | sed -n 's/.*"result": *\("[^"]*"\).*/\1/p')
fi
reviews=
if does review; then
    record=$(member evidence_dir)/review.json
    needed=$(listed review_requirements | sed 's/.*/"&"/' | paste -sd, -)
    cat >"$record" <<RECORD
{"schema_version": 1, "kind": "devlyn-review", "task": "$task", "engine": "suite", "model": "one", "source_sha": "$source",
 "contract_sha256": "$(digest contract)", "expected_sha256": "$(digest expected)", "requirements": [$needed], "findings": []}
RECORD
    reviews="\"$record\""
fi
blockers=
! does doubt || blockers='{"kind": "needs-review", "detail": "which of the two?"}'

submission=$(member submission)
if does half; then
    printf '{"schema_version": 1, "task"' >"$submission"
    exit 0
fi
cat >"$submission.part" <<SUBMISSION
{"schema_version": 1, "task": "$task", "source_sha": "$source", "runner_results": [$results], "reviews": [$reviews],
 "blockers": [$blockers]}
SUBMISSION
mv "$submission.part" "$submission"
! does astray || echo "gitdir: $(git rev-parse --path-format=absolute --git-common-dir)" >.git
