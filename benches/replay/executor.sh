#!/bin/sh
# executor.sh PACKET: brings in the newer version's files, a part of them for each task. Gets stuck once, to be killed.
set -eu
packet=$1
text() { sed -n 's/^  "'"$1"'": "\(.*\)",*$/\1/p' "$packet"; }
digest() { sed -n '/^  "'"$1"'": {/,/^  }/ s/^    "sha256": "\(.*\)",*$/\1/p' "$packet"; }
task=$(text task)
echo "$task" >>"$REPLAY/calls"
new=$REPLAY/1.3.0

case $task in
*.t01)
    cp -R "$new/src" .
    ;;
*.t02)
    cp "$new/Cargo.toml" Cargo.toml
    if [ ! -e "$REPLAY/stuck" ]; then
        echo $$ >"$REPLAY/stuck.part"
        mv "$REPLAY/stuck.part" "$REPLAY/stuck"
        exec sleep 600
    fi
    cp "$new/Cargo.toml.orig" Cargo.toml.orig
    ;;
*.t03)
    cp -R "$new/." .
    ;;
esac
git add --all
git commit --quiet --message "$(text title)"
source=$(git rev-parse HEAD)

set --
while IFS= read -r word; do
    set -- "$@" "$word"
done <<WORDS
$(sed -n '/^  "runner": \[/,/^  \]/ s/^    "\(.*\)",*$/\1/p' "$packet")
WORDS
result=$("$@" | sed -n 's/.*"result": *\("[^"]*"\).*/\1/p')

review=
if [ "${task#*.}" = t01 ]; then
    mkdir -p .devlyn/reviews
    review=$PWD/.devlyn/reviews/docs.json
    cat >"$review" <<RECORD
{
  "schema_version": 1,
  "kind": "devlyn-review",
  "task": "$task",
  "engine": "replay",
  "model": "replay-1",
  "source_sha": "$source",
  "contract_sha256": "$(digest contract)",
  "expected_sha256": "$(digest expected)",
  "requirements": ["R2"],
  "findings": [{"id": "F1", "binding": true, "disposition": "resolved", "requirement": "R2", "summary": "Names the cases."}]
}
RECORD
    review=\"$review\"
fi

cat >"$(text submission).part" <<SUBMISSION
{"schema_version": 1, "task": "$task", "source_sha": "$source", "runner_results": [$result], "reviews": [$review]}
SUBMISSION
mv "$(text submission).part" "$(text submission)"
