//! What a repository looks like when everything is settled, less what differs from run to run: times, identities, ids of
//! commits, numbers of runs, and where it stands.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::sandbox::{Sandbox, files, lines};

/// The state as lines that can be compared.
pub(crate) fn of(sandbox: &Sandbox) -> String {
    let names = Names::read(sandbox);
    let mut all = vec![format!("user: {}", user(sandbox))];
    let refs = sandbox.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    for line in refs.lines().filter(|line| !line.starts_with("refs/notes/")) {
        all.push(format!("ref {}", names.name(line)));
    }
    let grep = sandbox.command("git").args(["grep", "-h", "", "refs/notes/devlyn"]).output().unwrap();
    let mut notes: Vec<String> =
        String::from_utf8_lossy(&grep.stdout).lines().map(|line| format!("note {}", names.name(line))).collect();
    notes.sort();
    all.extend(notes);
    let listed = sandbox.git(&["worktree", "list", "--porcelain"]);
    all.extend(listed.lines().map(|line| format!("worktree {}", names.name(&place(sandbox, line)))));
    for (dir, receipt) in sandbox.receipts() {
        let text = serde_json::to_string_pretty(&plain(receipt)).unwrap();
        all.push(format!("receipt {}", names.name(&place(sandbox, &text))));
        all.extend(kept(&dir).into_iter().map(|path| format!("kept {}/{path}", dir.file_name().unwrap().display())));
    }
    for path in files(&sandbox.common().join("devlyn-loops")) {
        all.push(format!("file {}", place(sandbox, &path.display().to_string())));
        if path.ends_with("drain-report.md") {
            let text = fs::read_to_string(&path).unwrap();
            let text = text.lines().filter(|line| !line.starts_with("- Generated")).map(without_runs);
            all.push(names.name(&place(sandbox, &lines(text))));
        }
    }
    lines(all)
}

/// The state less its notes.
pub(crate) fn without_notes(state: &str) -> String {
    lines(state.lines().filter(|line| !line.starts_with("note ")).map(str::to_owned))
}

/// What is the user's: it must never change.
pub(crate) fn user(sandbox: &Sandbox) -> String {
    let branches = sandbox.git(&["for-each-ref", "refs/heads", "refs/tags", "refs/remotes", "refs/stash"]);
    let branches = branches.lines().filter(|line| !line.contains("\trefs/heads/devlyn/")).map(str::to_owned);
    lines([
        fs::read_to_string(sandbox.common().join("HEAD")).unwrap(),
        lines(branches),
        sandbox.git(&["ls-files", "-s"]),
        sandbox.git(&["status", "--porcelain=v2", "--ignored", "--untracked-files=all"]),
    ])
}

/// What must be nowhere, whatever happened: locks and temporary files that somebody left.
pub(crate) fn litter(sandbox: &Sandbox) -> Vec<String> {
    // What Git itself cleans is no litter.
    sandbox.git(&["prune", "--expire=now"]);
    let own = ["drain.lock", "queue.lock", "worktree.lock"];
    let mut found: Vec<String> = files(&sandbox.common())
        .iter()
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let lock = name.ends_with(".lock") && !own.contains(&&*name);
            let temporary = name.starts_with(".tmp");
            let state = name.starts_with('.') && (name.contains(".json.") || name.contains(".md."));
            lock || temporary || state
        })
        .map(|path| path.display().to_string())
        .collect();
    for entry in fs::read_dir(sandbox.common().join("worktrees")).into_iter().flatten().flatten() {
        if entry.path().join("locked").exists() {
            found.push(format!("{} is locked", entry.path().display()));
        }
    }
    found
}

/// Whether Git finds everything whole.
pub(crate) fn sound(sandbox: &Sandbox) -> Result<(), String> {
    let fsck = sandbox.command("git").args(["fsck", "--no-progress", "--no-dangling"]).output().unwrap();
    let said = String::from_utf8_lossy(&[fsck.stdout, fsck.stderr].concat()).into_owned();
    if fsck.status.success() && said.is_empty() { Ok(()) } else { Err(format!("git fsck: {said}")) }
}

/// The files of a receipt's directory, less those that are kept of interrupted work.
fn kept(dir: &Path) -> Vec<String> {
    let mut found: Vec<String> = files(dir)
        .iter()
        .filter_map(|path| {
            let inside = path.strip_prefix(dir).unwrap();
            let set_aside = inside.to_str()?.starts_with(".custody-") || inside.to_str()?.starts_with(".submission-");
            (!set_aside).then(|| without_runs(&inside.display().to_string()))
        })
        .collect();
    found.sort();
    found.dedup();
    found
}

/// A receipt without what differs from run to run.
fn plain(mut receipt: Value) -> Value {
    let Some(object) = receipt.as_object_mut() else { return receipt };
    for key in ["worktree_identity", "scratch_identity", "acceptance_digest"] {
        object.remove(key);
    }
    if let Some(kept) = object.get_mut("files").and_then(Value::as_object_mut) {
        let paths: BTreeMap<String, Value> =
            kept.iter().map(|(path, record)| (without_runs(path), record["mode"].clone())).collect();
        *kept = paths.into_iter().collect();
    }
    if let Some(acceptance) = object.get_mut("acceptance") {
        for list in ["reviews", "evidence"] {
            let items = acceptance.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten();
            for item in items {
                match item {
                    Value::String(path) => *path = without_runs(path),
                    other => drop(other.as_object_mut().map(|review| review.remove("sha256"))),
                }
            }
        }
        for command in acceptance.get_mut("commands").and_then(Value::as_array_mut).into_iter().flatten() {
            let reused = command.as_object_mut().and_then(|command| command.remove("reused_from"));
            drop(reused);
            for stream in ["stdout", "stderr"] {
                if let Some(Value::String(path)) = command.get_mut(stream).and_then(|stream| stream.get_mut("path")) {
                    *path = without_runs(path);
                }
            }
        }
        if let Some(evidence) = acceptance.get_mut("evidence").and_then(Value::as_array_mut) {
            evidence.sort_by_key(ToString::to_string);
            evidence.dedup();
        }
    }
    receipt
}

fn place(sandbox: &Sandbox, text: &str) -> String {
    text.replace(sandbox.root.to_str().unwrap(), "<root>")
}

/// The text without the numbers of runs.
fn without_runs(text: &str) -> String {
    let mut parts = text.split("/runs/");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| format!("{all}/runs/<n>{}", part.trim_start_matches(|c: char| c.is_ascii_digit())))
}

/// A name for each commit that says what it is and not when it was made.
struct Names(BTreeMap<String, String>);

impl Names {
    fn read(sandbox: &Sandbox) -> Self {
        let log = sandbox.git(&["log", "--all", "--topo-order", "--reverse", "--format=%H %T <%P> %s"]);
        let mut names = Self(BTreeMap::new());
        for line in log.lines() {
            let (id, rest) = line.split_once(' ').unwrap();
            let described = names.name(rest);
            // Short enough to be read, and different where anything below it is.
            let digest = described
                .bytes()
                .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3));
            let subject = rest.split_once("> ").map_or("", |(_, subject)| subject);
            names.0.insert(id.to_owned(), format!("[{subject} {digest:016x}]"));
        }
        names
    }

    /// The text with every commit named.
    fn name(&self, text: &str) -> String {
        let mut named = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find(|c: char| c.is_ascii_hexdigit()) {
            let (before, from) = rest.split_at(at);
            let length = from.find(|c: char| !c.is_ascii_hexdigit()).unwrap_or(from.len());
            let (word, after) = from.split_at(length);
            named.push_str(before);
            named.push_str(self.0.get(word).map_or(word, String::as_str));
            rest = after;
        }
        named.push_str(rest);
        named
    }
}
