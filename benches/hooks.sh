#!/bin/sh
# What our hooks cost `git commit` of one file in a repository of FILES tracked files and LOOPS captured loops of eight
# tasks, measured side by side in one run: hooks.sh [FILES [LOOPS]]. Needs git, hyperfine and python3, and builds its own
# repository in a temporary directory. GIT_DEVLYN names the program; without it, the one in target/release is taken.
# Fails where the rules cost more than LIMIT milliseconds (15) beyond what Git itself does for any hook.
set -eu

files=${1:-100000} loops=${2:-1000} limit=${LIMIT:-15} runs=${RUNS:-5} rounds=${ROUNDS:-8}
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

mkdir "$temp/none" "$temp/empty"
printf '#!/bin/sh\nexit 0\n' > "$temp/empty/pre-commit"
chmod +x "$temp/empty/pre-commit"
git-devlyn init > /dev/null
echo "$(git ls-files | wc -l) files, $loops loops, $(git --version)"

# Each run commits one line more of one file. The three take turns, so that what else the machine does hits all alike.
# Git itself reads the index again after a hook, whatever the hook does: that is what the empty one shows.
commit='commit -qm x'
for round in $(seq "$rounds"); do
    for form in staged path; do
        if test "$form" = staged; then stage='git add src/d000/file-0.txt' path=; else stage=: path=' src/d000/file-0.txt'; fi
        hyperfine --style=none --warmup 1 --runs "$runs" --export-json "$temp/$form-$round.json" \
            --prepare "echo x >> src/d000/file-0.txt && $stage" \
            --command-name none "git -c core.hooksPath=$temp/none $commit$path" \
            --command-name empty "git -c core.hooksPath=$temp/empty $commit$path" \
            --command-name ours "git -c core.hooksPath=.git/hooks $commit$path"
    done
done

python3 - "$temp" "$rounds" "$limit" <<'PY'
import json, statistics, sys
temp, rounds, limit = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
slow = False
for form in ("staged", "path"):
    times, cpu = {}, {}
    for n in range(1, rounds + 1):
        for result in json.load(open(f"{temp}/{form}-{n}.json"))["results"]:
            times.setdefault(result["command"], []).extend(result["times"])
            cpu.setdefault(result["command"], []).append(result["user"] + result["system"])
    print(f"git commit ({form}), ms:        min   median      CPU   more than without, CPU")
    base = statistics.median(cpu["none"])
    for name, what in (("none", "no hook"), ("empty", "an empty pre-commit"), ("ours", "git devlyn init")):
        used = statistics.median(cpu[name])
        row = [min(times[name]), statistics.median(times[name]), used]
        print(f"  {what:26}" + "".join(f"{value * 1000:9.1f}" for value in row) + f"{(used - base) * 1000:+9.1f}")
    more = (statistics.median(cpu["ours"]) - statistics.median(cpu["empty"])) * 1000
    ratio = min(times["ours"]) / min(times["none"])
    print(f"  the rules: {more:+.1f} ms of CPU beyond an empty hook; the whole commit {ratio:.3f} times as long")
    slow |= more > limit
sys.exit(slow)
PY
