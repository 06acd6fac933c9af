#!/bin/sh
# repository.sh DIR LOOPS TASKS: a repository with LOOPS pending loops of TASKS tasks each, all of them added.
#
# Captures come from `git fast-import` and add records from awk, by gitdevlyn-formats(5) and without the program that is
# measured, so that ten thousand loops are there in seconds.
set -eu
dir=$1 loops=$2 tasks=$3
export LC_ALL=C

git init --quiet --initial-branch=main "$dir"
dir=$(cd "$dir" && pwd)
cd "$dir"
git config user.name Bench
git config user.email bench@example.invalid
git config commit.gpgsign false
echo .devlyn/ >.gitignore
git add .gitignore
git commit --quiet --message "Begin"
base=$(git rev-parse HEAD)

awk -v loops="$loops" -v tasks="$tasks" -v base="$base" '
function file(path, text) { printf "M 100644 inline %s\ndata <<END_OF_FILE\n%s\nEND_OF_FILE\n", path, text }
function section(name, text) { return "## " name "\n\n" text "\n\n" }
BEGIN {
    for (l = 1; l <= loops; l++) {
        loop = sprintf("bench-%05d", l); root = "docs/specs/" loop "/"; list = ""; rows = ""
        for (t = 1; t <= tasks; t++) {
            id = sprintf("t%03d", t); before = t > 1 ? sprintf("\"t%03d\"", t - 1) : ""
            list = list sprintf("%s    {\"id\": \"%s\", \"spec\": \"%s/spec.md\", \"depends_on\": [%s]}", t > 1 ? ",\n" : "", id, id, before)
            rows = rows sprintf("%s- [ ] %s.%s [Step %d](%s%s/spec.md)", t > 1 ? "\n\n" : "", loop, id, t, root, id)
        }
        printf "commit refs/devlyn/captures/%s\ncommitter Bench <bench@example.invalid> 1750000000 +0000\n", loop
        printf "data <<END_OF_MESSAGE\ndevlyn loop: capture %s\nEND_OF_MESSAGE\n", loop
        manifest = "```json\n{\n  \"schema_version\": 1,\n  \"loop_id\": \"" loop "\",\n  \"base_ref\": \"main\",\n  \"base_sha\": \"" base \
            "\",\n  \"delivery\": \"local-only\",\n  \"tasks\": [\n" list "\n  ],\n  \"integration_task_id\": \"" id "\"\n}\n```"
        file(root "meta.md", "# " loop "\n\n" section("Intent", "A loop to measure with.") \
            section("Constraints and exclusions", "One file a task.") section("Tasks", "One after the other.\n\n" manifest) \
            section("Overall acceptance", "The last task.") section("Execution policy", "As usual.") \
            "## Decisions and assumptions\n\nNone.")
        for (t = 1; t <= tasks; t++) {
            id = sprintf("t%03d", t)
            file(root id "/spec.md", "---\nid: " id "\nloop_id: " loop "\ntitle: Step " t "\nkind: feature\nreview_requirements: []\n---\n" \
                section("Context and goal", "Something to measure.") section("Requirements", "- R1: A file of its own is there.") \
                section("Scope and constraints", "That file.") section("Out of scope", "The rest.") \
                section("Prerequisite inputs", "What stands there.") "<!-- devlyn:verification -->\n" \
                section("Verification", "A command.") "## Deliverable and cleanup\n\nThe file.")
            file(root id "/spec.expected.json", "{\n  \"verification_commands\": [{\"argv\": [\"true\"], \"contract_refs\": [\"R1\"]}]\n}")
        }
        file(root "queue.md", rows)
    }
}' | git fast-import --quiet --force

mkdir .git/devlyn-loops
git for-each-ref --format='%(refname:lstrip=3)' refs/devlyn/captures/ | (cd .git/devlyn-loops && xargs mkdir)
git for-each-ref --format='%(refname:lstrip=3) %(objectname) %(tree)' refs/devlyn/captures/ | awk -v origin="$dir" '{
    path = ".git/devlyn-loops/" $1 "/added.json"
    printf "{\n  \"branch\": \"main\",\n  \"capture\": \"refs/devlyn/captures/%s\",\n  \"commit\": \"%s\",\n", $1, $2 >path
    printf "  \"delivery\": \"local-only\",\n  \"loop_id\": \"%s\",\n  \"origin\": \"%s\",\n", $1, origin >path
    printf "  \"schema_version\": 1,\n  \"sequence\": %d,\n  \"tree\": \"%s\"\n}\n", NR, $3 >path
    close(path)
}'
