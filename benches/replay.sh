#!/bin/sh
# replay.sh: the way of a published crate from one version to the next, as a loop that is broken in the middle.
#
# Takes shlex 1.2.0 and 1.3.0 from the crate registry, makes the older a repository, and plans three tasks whose checks are
# the crate's own tests and, in the end, a comparison with what was published. The executor brings in the newer sources. The
# first drain is killed while it works on the second task; the second drain has to finish. What was accepted is then brought
# into the branch, where it must be the published version to the byte.
#
# GIT_DEVLYN names the program (default: target/release/git-devlyn).
set -eu
here=$(cd "$(dirname "$0")" && pwd)
program=${GIT_DEVLYN:-${CARGO_TARGET_DIR:-$here/../target}/release/git-devlyn}
program=$(cd "$(dirname "$program")" && pwd)/$(basename "$program")
PATH=$(dirname "$program"):$PATH
REPLAY=$(mktemp -d "${TMPDIR:-/tmp}/git-devlyn-replay.XXXXXX")
CARGO_TARGET_DIR=$REPLAY/target
export PATH REPLAY CARGO_TARGET_DIR
drain=
trap '[ -z "$drain" ] || kill -9 "$drain" 2>/dev/null || true' EXIT
trap 'exit 130' INT TERM

say() { printf '\n== %s\n' "$*"; }
fail() { printf 'replay.sh: %s\n(everything is in %s)\n' "$*" "$REPLAY" >&2; exit 1; }

# A version as it was published, without the mark that cargo leaves.
published() {
    mkdir -p "$REPLAY/dummy-$1/src"
    : >"$REPLAY/dummy-$1/src/lib.rs"
    printf '[package]\nname = "dummy"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\nshlex = "=%s"\n' "$1" \
        >"$REPLAY/dummy-$1/Cargo.toml"
    (cd "$REPLAY/dummy-$1" && cargo vendor --quiet "$REPLAY/vendor-$1" >/dev/null)
    mv "$REPLAY/vendor-$1/shlex" "$REPLAY/$1"
    rm "$REPLAY/$1/.cargo-checksum.json"
}

say "two published versions"
published 1.2.0
published 1.3.0
repo=$REPLAY/shlex
cp -R "$REPLAY/1.2.0" "$repo"
cd "$repo"
git init --quiet --initial-branch=main
git config user.name Replay
git config user.email replay@example.invalid
git config commit.gpgsign false
printf '.devlyn/\ntarget/\nCargo.lock\n' >>.git/info/exclude
git add .
git commit --quiet --message "shlex 1.2.0"
mkdir -p docs/specs
cp -R "$here/replay" docs/specs/shlex-next
rm docs/specs/shlex-next/executor.sh
for file in docs/specs/shlex-next/meta.md docs/specs/shlex-next/t03/spec.expected.json; do
    sed -e "s/@BASE@/$(git rev-parse HEAD)/" -e "s|@PUBLISHED@|$REPLAY/1.3.0|" "$file" >"$file.new"
    mv "$file.new" "$file"
done

say "plan"
git devlyn check docs/specs/shlex-next/meta.md
git devlyn add docs/specs/shlex-next/meta.md

say "drain, and break it while the second task is at work"
"$program" drain -- sh "$here/replay/executor.sh" '{packet}' >"$REPLAY/first.out" 2>"$REPLAY/first.err" &
drain=$!
waited=0
until [ -e "$REPLAY/stuck" ]; do
    kill -0 "$drain" 2>/dev/null || { cat "$REPLAY/first.out" "$REPLAY/first.err"; fail "the first drain ended by itself"; }
    [ $waited -lt 300 ] || fail "the second task was not started within five minutes"
    waited=$((waited + 1))
    sleep 1
done
kill -9 "$drain"
wait "$drain" || true
drain=
kill -9 "$(cat "$REPLAY/stuck")" || true
cat "$REPLAY/first.err"
git devlyn status

say "drain again"
git devlyn drain -- sh "$here/replay/executor.sh" '{packet}'
git devlyn report shlex-next
git devlyn status --json | grep -q '"accepted": *3' || fail "not all three tasks were accepted"
calls=$(sort "$REPLAY/calls" | uniq -c | awk '{ printf "%s%s:%s", (NR > 1 ? " " : ""), $2, $1 }')
[ "$calls" = "shlex-next.t01:1 shlex-next.t02:2 shlex-next.t03:1" ] || fail "the executor was called for $calls"

say "bring it in"
bring_in=$(sed -n 's/^- Bring into [^:]*: //p' .git/devlyn-loops/shlex-next/drain-report.md)
[ -n "$bring_in" ] || fail "the report names no command that brings the work in"
echo "$bring_in"
eval "$bring_in"
diff -r --exclude=.git --exclude=docs --exclude=Cargo.lock "$REPLAY/1.3.0" . || fail "this is not what was published"
cargo test --offline --quiet 2>/dev/null || fail "the crate's tests do not pass on main"
git log --oneline --graph | head -n 12

rm -rf "$REPLAY"
printf '\nreplay: 3 tasks accepted, the interrupted one started twice, main is shlex 1.3.0\n'
