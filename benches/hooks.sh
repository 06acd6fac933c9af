#!/bin/sh
# What our hooks cost `git commit` of one file in a repository of FILES tracked files and LOOPS captured loops of eight
# tasks, measured side by side in one run: hooks.sh [FILES [LOOPS]]. Needs git, hyperfine and python3, and builds its own
# repository in a temporary directory. GIT_DEVLYN names the program; without it, the one in target/release is taken.
# Fails where the hooks cost more than LIMIT milliseconds (15).
set -eu

files=${1:-100000} loops=${2:-1000} limit=${LIMIT:-15} runs=${RUNS:-40}
here=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
program=${GIT_DEVLYN:-$here/target/release/git-devlyn}
test -x "$program" || { echo "no program at $program: run \`make build\`, or set GIT_DEVLYN" >&2; exit 2; }
temp=$(mktemp -d)
trap 'rm -rf "$temp"' EXIT INT TERM
mkdir "$temp/bin"
ln -s "$program" "$temp/bin/git-devlyn"
PATH=$temp/bin:$PATH HOME=$temp GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
export PATH HOME GIT_CONFIG_GLOBAL GIT_CONFIG_NOSYSTEM

repo=$temp/repo
git init -q -b main "$repo"
cd "$repo"
git config user.name Bench
git config user.email bench@example.invalid
git config gc.auto 0
git config maintenance.auto false

# The files, the packages of all loops with their queue files, and a capture of each loop, as one stream of objects.
python3 - "$files" "$loops" <<'PY' | git fast-import --quiet
import sys
files, loops = map(int, sys.argv[1:])
out = sys.stdout.buffer
def data(text):
    raw = text.encode()
    out.write(b"data %d\n%s\n" % (len(raw), raw))
def commit(ref, message, entries):
    out.write(f"commit {ref}\ncommitter Bench <bench@example.invalid> 1700000000 +0000\n".encode())
    data(message)
    for path, text in entries:
        out.write(f"M 100644 inline {path}\n".encode())
        data(text)
    out.write(b"\n")
def package(loop):
    tasks = [f"t{n:02}" for n in range(1, 9)]
    root = f"docs/specs/{loop}"
    yield f"{root}/meta.md", f"# Loop {loop}\n"
    for task in tasks:
        yield f"{root}/{task}/spec.md", f"# {task} of {loop}\n"
        yield f"{root}/{task}/spec.expected.json", "{}\n"
    rows = [f"- [ ] {loop}.{t} [Task {t}]({root}/{t}/spec.md)" for t in tasks]
    yield f"{root}/queue.md", "\n\n".join(rows) + "\n"
names = [f"loop{n:05}" for n in range(loops)]
def everything():
    yield ".gitignore", ".devlyn/\n"
    for n in range(files):
        yield f"src/d{n % 1000:03}/file-{n}.txt", f"{n}\n"
    for loop in names[: loops // 10]:
        yield from package(loop)
commit("refs/heads/main", "base\n", everything())
for loop in names:
    commit(f"refs/devlyn/captures/{loop}", f"devlyn loop: capture {loop}\n", package(loop))
PY
git pack-refs --all
git reset -q --hard
for n in $(seq 0 $((loops - 1))); do printf 'loop%05d\n' "$n"; done | while read -r loop; do
    mkdir -p ".git/devlyn-loops/$loop"
    printf '{"schema_version": 1}\n' > ".git/devlyn-loops/$loop/added.json"
done

cp -r .git/hooks "$temp/without"
git-devlyn init > /dev/null
echo "$(git ls-files | wc -l) files, $loops loops, $(git --version)"

# Each run commits one line more to one file.
change='echo x >> src/d000/file-0.txt'
hyperfine --style=basic --warmup 5 --runs "$runs" --export-json "$temp/result.json" --prepare "$change" \
    --command-name 'without hooks' "git -c core.hooksPath=$temp/without commit -qm x src/d000/file-0.txt" \
    --command-name 'with hooks' "git -c core.hooksPath=.git/hooks commit -qm x src/d000/file-0.txt" \
    --command-name 'without hooks, staged' "git add src/d000/file-0.txt && git -c core.hooksPath=$temp/without commit -qm x" \
    --command-name 'with hooks, staged' "git add src/d000/file-0.txt && git -c core.hooksPath=.git/hooks commit -qm x"

python3 - "$temp/result.json" "$limit" <<'PY'
import json, sys
results = json.load(open(sys.argv[1]))["results"]
limit, slow = float(sys.argv[2]), False
for without, with_hooks in zip(results[::2], results[1::2]):
    for what in ("min", "median"):
        a, b = without[what] * 1000, with_hooks[what] * 1000
        slow |= what == "median" and b - a > limit
        print(f"{with_hooks['command'][:30]:22} {what:7} {a:7.1f} ms -> {b:7.1f} ms: {b - a:+6.1f} ms, {b / a:.3f} times")
sys.exit(slow)
PY
