#!/bin/sh
# compare.sh [RUNS]: the times that matter, side by side in one run, with the bars that they are held to.
#
# Needs hyperfine. GIT_DEVLYN names the program (default: target/release/git-devlyn); LOOPS the sizes of the queue to
# look at (default: 100 1000 10000). A ratio is worth more than a time: the drain and Git's own part of it are measured
# in turns on the same machine.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
runs=${1:-10}
program=${GIT_DEVLYN:-${CARGO_TARGET_DIR:-$here/../target}/release/git-devlyn}
command -v hyperfine >/dev/null || { echo "compare.sh: hyperfine is needed" >&2; exit 1; }
[ -x "$program" ] || { echo "compare.sh: no program at $program: make build" >&2; exit 1; }
work=$(mktemp -d "${TMPDIR:-/tmp}/git-devlyn-bench.XXXXXX")
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT TERM

# The median of the n-th command of the last measurement, in milliseconds.
median() { awk -F, -v n="$1" 'NR == n + 1 { printf "%.1f", $6 * 1000 }' "$work/last.csv"; }
measure() { hyperfine --style basic --export-csv "$work/last.csv" "$@" >"$work/last.txt" 2>&1 || { cat "$work/last.txt" >&2; exit 1; }; }
row() { printf '%-44s %12s   %s\n' "$1" "$2" "$3"; }

row "what" "median" "bar"

measure --shell none --warmup 5 --runs 50 "$program --version"
row "--version" "$(median 1) ms" "8 ms"

for loops in ${LOOPS:-100 1000 10000}; do
    repo=$work/status-$loops
    "$here/repository.sh" "$repo" "$loops" 5
    measure --shell none --warmup 2 --runs "$runs" "$program status --json --repo $repo"
    case $loops in
    100) bar="25 ms" ;;
    1000) bar="200 ms, 60 MB" ;;
    *) bar="in proportion" ;;
    esac
    memory=
    if [ -x /usr/bin/time ]; then
        memory=$(/usr/bin/time -f %M "$program" status --json --repo "$repo" 2>&1 >/dev/null | tail -n 1)
        memory=", $((memory / 1024)) MB"
    fi
    row "status --json, $loops loops of 5" "$(median 1) ms$memory" "$bar"
    rm -rf "$repo"
done

# Every run has a repository of its own, all made alike and none removed before the end: a file system without a journal
# looks for a while at every inode that was just freed before it gives out another one, and that would be measured.
"$here/repository.sh" "$work/fresh" 1 10
mkdir "$work/runs"
cat >"$work/next" <<NEXT
n=\$((\$(ls "$work/runs" | wc -l) + 1))
cp -a "$work/fresh" "$work/runs/\$n" && ln -sfn "$work/runs/\$n" "$work/repo" && sync -f "$work"
NEXT
# In turns, and each held against those beside it: a machine is not as fast in one minute as in the next.
for round in $(seq 0 "$runs"); do
    measure --runs 1 --prepare "sh $work/next" \
        "$here/floor.sh \$(readlink $work/repo) 10" \
        "$here/least.sh \$(readlink $work/repo) 10" \
        "$program drain --repo \$(readlink $work/repo) -- $here/executor.sh {packet}"
    # The first round warms up.
    test "$round" = 0 || echo "$(median 1) $(median 2) $(median 3)" >>"$work/turns"
done
middle() { awk "{ print $1 }" "$work/turns" | sort -n | awk '{ all[NR] = $1 } END { print all[int((NR + 1) / 2)] }'; }
row "Git's own part of ten tasks" "$(middle '$1') ms" ""
row "the programs that ten tasks have to start" "$(middle '$2') ms" ""
row "drain of ten tasks" "$(middle '$3') ms" ""
row "  the programs to Git's own part" "$(middle 'sprintf("%.2f", $2 / $1)')" ""
row "  the drain to Git's own part" "$(middle 'sprintf("%.2f", $3 / $1)')" "1.20"
row "  the drain to the programs" "$(middle 'sprintf("%.2f", $3 / $2)')" ""
# A drain that does nothing is fast.
"$program" status --json --repo "$work/repo" | grep -q '"accepted": *10' || { echo "compare.sh: the drain did not accept its ten tasks" >&2; exit 1; }
