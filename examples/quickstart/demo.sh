#!/bin/sh
# demo.sh [--again]: a whole loop in a scratch repository, with a scripted executor instead of an agent.
#
# Plans three tasks, drains them, and shows the report and what to type next. One task fails its check, so that you see
# what that looks like. With --again it goes on and types the next commands for you: it brings the accepted work in,
# plans the failed work anew, drains that, and brings it in.
#
# GIT_DEVLYN names the program; without it, it is built. DEMO_DIR names the directory to work in, which must be absent.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
again=${1-}

if [ -z "${GIT_DEVLYN-}" ]; then
    root=$(cd "$here/../.." && pwd)
    target=${CARGO_TARGET_DIR:-$root/target}
    (cd "$root" && cargo build --release --locked --target-dir "$target")
    GIT_DEVLYN=$(cd "$root" && cd "$target" && pwd)/release/git-devlyn
fi
found=$(command -v git-devlyn || true)
PATH=$(dirname "$GIT_DEVLYN"):$PATH
export PATH

if [ -t 1 ]; then bold=$(printf '\033[1m') plain=$(printf '\033[0m'); else bold='' plain=''; fi
# A word as it would be typed.
typed() {
    case $1 in
    *[!A-Za-z0-9_./:=@%+,{}-]* | '') printf "'%s'" "$(printf %s "$1" | sed "s/'/'\\\\''/g")" ;;
    *) printf %s "$1" ;;
    esac
}
say() { printf '\n%s\n' "$*"; }
show() { printf '\n%s$ %s%s\n' "$bold" "$1" "$plain"; }
# Shows a command and runs it.
try() {
    line=
    for word in "$@"; do line="$line${line:+ }$(typed "$word")"; done
    show "$line" && "$@"
}
# The command that the report of a loop names for bringing its work in.
bring() { sed -n 's/^- Bring into [^:]*: //p' ".git/devlyn-loops/$1/drain-report.md"; }

if [ -n "${DEMO_DIR-}" ]; then
    mkdir "$DEMO_DIR"
    scratch=$(cd "$DEMO_DIR" && pwd)
else
    scratch=$(mktemp -d "${TMPDIR:-/tmp}/git-devlyn-demo.XXXXXX")
fi
repo=$scratch/greeter
executor=$scratch/executor.sh
cp "$here/executor.sh" "$executor"

git init --quiet --initial-branch=main "$repo"
cd "$repo"
git config user.name Demo
git config user.email demo@example.invalid
git config commit.gpgsign false
git config merge.stat false
echo .devlyn/ >.gitignore
echo "# greeter" >README.md
git add .
git commit --quiet --message "Begin"
# Two packages: what is planned now, and what will be planned after the failure. They are not committed; add keeps them.
for loop in greet greet-again; do
    mkdir -p docs/specs
    cp -R "$here/docs/specs/$loop" docs/specs/
    sed "s/@BASE@/$(git rev-parse HEAD)/" "$here/docs/specs/$loop/meta.md" >"docs/specs/$loop/meta.md"
done

say "A scratch repository with a plan for three tasks: $repo"
try git devlyn check docs/specs/greet/meta.md
try git devlyn add docs/specs/greet/meta.md
try git devlyn status
say "Now the part that runs while you sleep. In earnest the executor is an agent, here it is a script."
try git devlyn drain -- sh "$executor" '{packet}'
try git devlyn report greet

bring_in=$(bring greet)
if [ "$again" = --again ]; then
    say "greet.t02 said that all was well, and its check said otherwise. What was proven is brought in, the rest is
planned anew under a new name: a failed task is never run again."
    show "$bring_in" && eval "$bring_in"
    try git devlyn add greet-again
    try git devlyn drain -- sh "$executor" '{packet}'
    try git devlyn report greet-again
    bring_in=$(bring greet-again)
    show "$bring_in" && eval "$bring_in"
    try sh greet.sh --lang fr Ada
    say "Everything is in $repo; delete $scratch when you have seen enough."
    exit 0
fi

cat <<NEXT

greet.t02 said that all was well, and its check said otherwise: it is recorded as failed, with its evidence, and the
task that needs it was not started. Nothing is lost, and nothing of it is in your branch.

What to type next:

    cd $(typed "$repo")
NEXT
[ "$found" = "$GIT_DEVLYN" ] || printf '    export PATH="%s:$PATH"\n' "$(dirname "$GIT_DEVLYN")"
cat <<NEXT

  bring in what was accepted:
    $bring_in

  plan the failed work anew, as a new loop (a failed task is never run again):
    git devlyn add greet-again
    git devlyn drain -- sh $(typed "$executor") {packet}
    git devlyn report greet-again

To see all of it typed for you, in another scratch repository:
    sh $(typed "$here/demo.sh") --again
NEXT
