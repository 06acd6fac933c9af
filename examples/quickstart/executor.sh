#!/bin/sh
# executor.sh PACKET: stands in for a coding agent, so that the demo needs none.
#
# It does what every executor does: read the packet, work in the current directory, which is the task's worktree, commit,
# run the packet's runner on the commit, and write the submission. One task it does badly, and says that all is well.
set -eu
packet=$1

# A member of the packet that is a string. (The packet is JSON, one member a line; a real executor reads it as such.)
member() { sed -n 's/^  "'"$1"'": "\(.*\)",\{0,1\}$/\1/p' "$packet"; }

# The words of the packet's runner, one a line.
runner() { sed -n '/^  "runner": \[/,/^  \]/ s/^    "\(.*\)",\{0,1\}$/\1/p' "$packet"; }

greeting() {
    cat >greet.sh <<'PROGRAM'
#!/bin/sh
[ $# -eq 1 ] || { echo "usage: greet.sh NAME" >&2; exit 2; }
echo "Hello, $1!"
PROGRAM
}

languages() {
    cat >greet.sh <<PROGRAM
#!/bin/sh
lang=en
[ "\${1-}" != --lang ] || { lang=\${2-}; shift 2; }
[ \$# -eq 1 ] || { echo "usage: greet.sh [--lang LANG] NAME" >&2; exit 2; }
case \$lang in
en) echo "Hello, \$1!" ;;
fr) echo "Bonjour, \$1!" ;;
*) $1 ;;
esac
PROGRAM
}

page() {
    cat >USAGE.txt <<'PAGE'
Greets whom you name:

$ sh greet.sh Ada

The same in French:

$ sh greet.sh --lang fr Ada
PAGE
}

task=$(member task)
checked=yes
case $task in
greet.t01) greeting ;;
greet.t02) languages 'echo "Hello, $1!"' && checked=no ;; # forgets R2, and does not look
greet-again.t01) languages 'echo "greet.sh: no such language: $lang" >&2; exit 2' ;;
greet.t03 | greet-again.t02) page ;;
*) echo "executor.sh: what is $task?" >&2 && exit 1 ;;
esac
git add --all
git commit --quiet --message "$(member title)"
source=$(git rev-parse HEAD)

results=
if [ $checked = yes ]; then
    set --
    while IFS= read -r word; do
        set -- "$@" "$word"
    done <<WORDS
$(runner)
WORDS
    results=$("$@" | sed -n 's/.*"result": *\("[^"]*"\).*/\1/p')
fi

# Written beside its place and moved there, so that nobody ever reads half of it.
submission=$(member submission)
cat >"$submission.part" <<SUBMISSION
{
  "schema_version": 1,
  "task": "$task",
  "source_sha": "$source",
  "runner_results": [$results],
  "summary": "Everything works, all checks pass."
}
SUBMISSION
mv "$submission.part" "$submission"
