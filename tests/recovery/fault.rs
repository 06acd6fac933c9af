//! The fault matrix: at each of its durable steps in turn the program is told that there is no room, or that the disk
//! is broken. It says so by the file's name, everything stays readable, and the next drains end where an undisturbed
//! one would have ended.

use std::fs;

use git_devlyn::package::Key;

use crate::crash::{IDENTITIES, Settled, calls, compare, matrix, prepared, same, settle, tasks, telling, time};
use crate::sandbox::{Said, Sandbox, Task};
use crate::state;
use crate::trace::{self, Alone, Point};

/// The calls that a full or broken disk fails. An open counts where it makes a file.
const CALLS: &str = "write,writev,pwrite64,fsync,fdatasync,syncfs,ftruncate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,\
                     mkdir,mkdirat,unlink,unlinkat,rmdir,openat";

/// A place where something is written, and what is said to be wrong with it.
#[derive(Debug)]
struct Fault {
    point: Point,
    error: &'static str,
    says: &'static str,
}

/// Whether the call is one that such a fault can hit: not the progress, not a pipe, not what is only read.
fn is_hit(point: &Point, shown: &str) -> bool {
    match point.call.as_str() {
        "openat" => shown.contains("O_CREAT"),
        "write" | "writev" | "pwrite64" => ["/.git/", "/.devlyn/"].iter().any(|ours| shown.contains(ours)),
        _ => true,
    }
}

/// A part of the path that the call is about, without what differs from run to run.
fn about(shown: &str) -> Option<String> {
    let shown = shown.rsplit_once(" = ").map_or(shown, |(call, _)| call);
    let path = match shown.split_once("</") {
        Some((_, rest)) if !shown.starts_with("rename") && !shown.starts_with("openat") => rest.split('>').next()?,
        _ => shown.split('"').rfind(|part| part.contains('/'))?,
    };
    let inside =
        path.rsplit_once("/repo/.git/").or_else(|| path.rsplit_once("/repo.devlyn/")).map(|(_, inside)| inside)?;
    Some(inside.to_owned())
}

/// Each place of `points` with each of the two faults.
fn faults(points: Vec<(Point, String)>) -> (Vec<Fault>, usize) {
    // One kind of call alone, where a person looks for one.
    let only = std::env::var("DEVLYN_CALL").ok();
    let wanted = |call: &str| only.as_ref().is_none_or(|only| only == call);
    let points: Vec<_> =
        points.into_iter().filter(|(point, shown)| is_hit(point, shown) && wanted(&point.call)).collect();
    let (points, first) = telling(points);
    let both = |(point, _): (Point, String)| {
        [("ENOSPC", "No space left on device"), ("EIO", "Input/output error")].map(|(error, says)| Fault {
            point: point.clone(),
            error,
            says,
        })
    };
    (points.into_iter().flat_map(both).collect(), 2 * first)
}

impl Fault {
    /// Runs the program with the fault; what it said, where the fault was met and what must hold of any answer does.
    fn met(&self, sandbox: &Sandbox, argv: &[String], done: &str) -> Result<Option<Said>, String> {
        let what = format!("error={}", self.error);
        let (said, hit) = trace::injected(sandbox, Alone::No, &self.point, &what, argv);
        // Where it hit another call than it was meant for, one that only reads: such a one knows no full disk.
        let reads = hit.starts_with("openat") && !hit.contains("O_CREAT");
        if hit.is_empty() || said.code == Some(127) || (reads && self.error == "ENOSPC") {
            return Ok(None);
        }
        let told = format!("{} {}", said.object, said.stderr);
        // All was done, and the answer itself met the fault.
        if said.code == Some(1) && said.stderr.contains("the answer cannot be written") && told.contains(self.says) {
            return Ok(Some(said));
        }
        if !matches!(said.code, Some(0 | 1)) || said.status().is_empty() || told.contains("panicked") {
            return Err(format!("it ended badly: {said:?}"));
        }
        if (said.code == Some(1)) != (said.status() == "BLOCKED") {
            return Err(format!("exit status and answer differ: {said:?}"));
        }
        let status = sandbox.devlyn(&["status"]);
        if (status.code, status.status()) != (Some(0), "OK") {
            return Err(format!("the status cannot be read afterwards: {status:?}"));
        }
        // What goes on without the step needs to say nothing; who stops says what stopped it, and where.
        if said.status() != done && !reads {
            if !told.contains(self.says) {
                return Err(format!("it does not say what is wrong with {hit}: {told}"));
            }
            if let Some(place) = about(&hit)
                && !names(&told, &place)
            {
                return Err(format!("it does not name {place} of {hit}: {told}"));
            }
        }
        Ok(Some(said))
    }
}

#[test]
fn no_room_or_a_broken_disk_loses_nothing() {
    if !trace::possible() || !trace::namespaces() {
        return;
    }
    let prepared = prepared();
    let argv =
        |sandbox: &Sandbox| sandbox.devlyn_argv(&sandbox.drain_args().iter().map(String::as_str).collect::<Vec<_>>());
    let example = prepared.copy();
    let (said, points) = trace::points(&example, Alone::No, CALLS, &argv(&example));
    assert_eq!((said.code, said.status()), (Some(0), "DRAINED"), "{said:?}");
    let undisturbed = state::of(&example);
    let without_notes = state::without_notes(&undisturbed);
    let (faults, first) = faults(points);
    matrix("drain without room or disk", &faults, first, time(), |fault| {
        let sandbox = prepared.copy();
        let Some(said) = fault.met(&sandbox, &argv(&sandbox), "DRAINED")? else { return Ok(None) };
        let calls = calls(&sandbox, &IDENTITIES);
        let settled = settle(&sandbox)?;
        // No task waits for its notes: that they are missing is told once, with how to make them again.
        let noteless = said.object["cleanup"].to_string().contains("refs/notes/devlyn");
        compare(&sandbox, if noteless { &without_notes } else { &undisturbed }, noteless, &calls)?;
        Ok(Some(settled))
    });
}

/// Flushes are made by several threads at once, and a fault that counts calls meets the first thread alone: so all fail.
#[test]
fn a_disk_that_flushes_nothing_loses_nothing() {
    if !trace::possible() {
        return;
    }
    let prepared = prepared();
    let argv =
        |sandbox: &Sandbox| sandbox.devlyn_argv(&sandbox.drain_args().iter().map(String::as_str).collect::<Vec<_>>());
    let example = prepared.copy();
    assert_eq!(example.drain().status(), "DRAINED");
    let undisturbed = state::of(&example);
    for set in ["fsync", "fdatasync", "fsync,fdatasync"] {
        let sandbox = prepared.copy();
        let inject = format!("inject={set}:error=EIO");
        let options = ["-f", "-qq", "-o", "/dev/null", "-e", "signal=none", "-e", &inject];
        let said = Sandbox::run(&mut trace::strace(&sandbox, Alone::Yes, &options, &argv(&sandbox)));
        assert!(matches!(said.status(), "BLOCKED" | "WAITING"), "{said:?}");
        assert!(said.reason().contains("Input/output error") && said.reason().contains("/repo"), "{said:?}");
        assert_eq!(sandbox.devlyn(&["status"]).status(), "OK");
        let calls = calls(&sandbox, &IDENTITIES);
        settle(&sandbox).and_then(|_| compare(&sandbox, &undisturbed, false, &calls)).unwrap();
    }
}

/// What cannot be read says nothing of the work: no task fails for it, and none is executed again.
#[test]
fn a_disk_that_cannot_be_read_fails_no_task() {
    if !trace::possible() {
        return;
    }
    let prepared = Sandbox::new();
    prepared.add("inv", &[(Task::new("t1", &[]).reviewed(), "review")]);
    let mut met = 0;
    for call in ["statx", "openat", "read"] {
        for file in ["tree/.devlyn/loop/review.json", "tree/.devlyn/loop", "receipt/submission.json"] {
            let sandbox = prepared.copy();
            let path = match file.split_once('/').unwrap() {
                ("tree", rest) => sandbox.root.join("repo.devlyn/inv/t1").join(rest),
                (_, rest) => sandbox
                    .repo
                    .join(".git/devlyn-completion")
                    .join(Key::of_branch("devlyn/inv/t1").as_str())
                    .join(rest),
            };
            let (path, inject) = (path.to_str().unwrap().to_owned(), format!("inject={call}:error=EIO"));
            let log = sandbox.root.join("trace");
            let options = ["-qq", "-o", log.to_str().unwrap(), "-P", &path, "-e", "signal=none", "-e", &inject];
            let args = sandbox.drain_args();
            let argv = sandbox.devlyn_argv(&args.iter().map(String::as_str).collect::<Vec<_>>());
            let said = Sandbox::run(&mut trace::strace(&sandbox, Alone::Yes, &options, &argv));
            let hit = fs::read_to_string(&log).unwrap().contains("(INJECTED)");
            let item = said.item("inv.t1");
            assert_ne!(item["result"], "failed", "{call} of {file}: {said:?}");
            if hit && item["result"] != "accepted" {
                met += 1;
                assert!(said.reason().contains("Input/output error"), "{call} of {file}: {said:?}");
            }
            let said = sandbox.drain();
            assert_eq!(
                (said.item("inv.t1")["result"].as_str(), sandbox.calls("inv.t1")),
                (Some("accepted"), 1),
                "{said:?}"
            );
        }
    }
    assert!(met > 4, "only {met} of the faults were met");
}

#[test]
fn no_room_or_a_broken_disk_loses_no_add() {
    if !trace::possible() || !trace::namespaces() {
        return;
    }
    let prepared = Sandbox::new();
    prepared.add("old", &[(Task::new("t1", &[]), "")]);
    prepared.package("inv", &tasks());
    let argv = |sandbox: &Sandbox| sandbox.devlyn_argv(&["add", "inv"]);
    let example = prepared.copy();
    let (said, points) = trace::points(&example, Alone::No, CALLS, &argv(&example));
    assert_eq!((said.code, said.status()), (Some(0), "ADDED"), "{said:?}");
    let undisturbed = state::of(&example);
    let (faults, first) = faults(points);
    matrix("add without room or disk", &faults, first, time() / 3, |fault| {
        let sandbox = prepared.copy();
        if fault.met(&sandbox, &argv(&sandbox), "ADDED")?.is_none() {
            return Ok(None);
        }
        let again = sandbox.devlyn(&["add", "inv"]);
        if again.status() != "ADDED" || again.object["cleanup"] != serde_json::json!([]) {
            return Err(format!("the second add: {again:?}"));
        }
        same(&sandbox, &undisturbed, false)?;
        Ok(Some(Settled::default()))
    });
}

/// Whether the text names the place: the file, the one that a temporary one is for, or the folder that it stands in.
fn names(text: &str, place: &str) -> bool {
    let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
    let plain = name.trim_start_matches('.').rsplit_once('.').map_or(name, |(plain, _)| plain);
    text.contains(name) || text.contains(plain) || (!folder.is_empty() && text.contains(folder))
}
