//! The fault matrix: at each of its durable steps in turn the program is told that there is no room, or that the disk
//! is broken. It says so by the file's name, everything stays readable, and the next drains end where an undisturbed
//! one would have ended.

use crate::crash::{IDENTITIES, calls, compare, matrix, prepared, settle, telling, time};
use crate::sandbox::Sandbox;
use crate::state;
use crate::trace::{self, Alone, Point};

/// The calls that a full or broken disk fails. An open counts where it makes a file.
const CALLS: &str = "write,writev,pwrite64,fsync,fdatasync,ftruncate,rename,renameat,renameat2,link,linkat,symlink,symlinkat,\
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
        "write" | "writev" | "pwrite64" => shown.contains("</") && !shown.contains("/dev/"),
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
    let points: Vec<_> = points.into_iter().filter(|(point, shown)| is_hit(point, shown)).collect();
    let (points, first) = telling(points);
    let both = |(point, _): (Point, String)| {
        [("ENOSPC", "No space left on device"), ("EIO", "Input/output error")].map(|(error, says)| Fault {
            point: point.clone(),
            error,
            says,
        })
    };
    let faults: Vec<Fault> = points.into_iter().flat_map(both).collect();
    matrix("drain without room or disk", &faults, 2 * first, time(), |fault| {
        let sandbox = prepared.copy();
        let what = format!("error={}", fault.error);
        let (said, hit) = trace::injected(&sandbox, Alone::No, &fault.point, &what, &argv(&sandbox));
        // Where it hit another call than it was meant for, one that only reads: such a one knows no full disk.
        let reads = hit.starts_with("openat") && !hit.contains("O_CREAT");
        if hit.is_empty() || said.code == Some(127) || (reads && fault.error == "ENOSPC") {
            return Ok(None);
        }
        let told = format!("{} {}", said.object, said.stderr);
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
        if said.status() != "DRAINED" && !reads {
            if !told.contains(fault.says) {
                return Err(format!("it does not say what is wrong with {hit}: {told}"));
            }
            if let Some(place) = about(&hit)
                && !names(&told, &place)
            {
                return Err(format!("it does not name {place} of {hit}: {told}"));
            }
        }
        let calls = calls(&sandbox, &IDENTITIES);
        let settled = settle(&sandbox)?;
        // No task waits for its notes: that they are missing is told once, with how to make them again.
        let noteless = said.object["cleanup"].to_string().contains("refs/notes/devlyn");
        let undisturbed = if noteless { &without_notes } else { &undisturbed };
        compare(&sandbox, undisturbed, noteless, &calls)?;
        Ok(Some(settled))
    });
}

/// Whether the text names the place: the file, the one that a temporary one is for, or the folder that it stands in.
fn names(text: &str, place: &str) -> bool {
    let (folder, name) = place.rsplit_once('/').unwrap_or(("", place));
    let plain = name.trim_start_matches('.').rsplit_once('.').map_or(name, |(plain, _)| plain);
    text.contains(name) || text.contains(plain) || (!folder.is_empty() && text.contains(folder))
}
