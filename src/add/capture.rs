//! The six steps of an `add`, each refusal before the first thing that is written.

use super::{AddError, Place};
use crate::git::{Head, NewCommit, Oid, RefChange, Repo};
use crate::package::{FileState, Manifest, Package, Source};
use crate::queue::{Claim, LEGACY_QUEUE, LegacyRow, Mark, QueueFile, Row};
use crate::store::{Layout, Record};
use crate::view::{Captures, CheckoutSource, Queue, drifted, unix_lines};

/// The record of the loop at `place`: the one that is there, where it is of the same package, else a new one.
pub(super) fn record(place: &Place, layout: &Layout, materialize: Option<usize>) -> Result<Record, AddError> {
    let queue = Queue::read(&place.repo, layout, &Captures::default())?;
    if let Some(record) = Record::read(layout, &place.loop_id)? {
        return same(place, &queue, record, materialize);
    }
    let existing = place.repo.resolve(&place.loop_id.capture_ref())?;
    let package = match (place.parse(), existing) {
        (Ok(package), _) => package,
        (Err(AddError::Faults(faults)), Some(commit)) => {
            return Err(left_capture(
                place,
                commit,
                &format!("the package in the checkout is not whole ({})", faults[0]),
            ));
        }
        (Err(error), _) => return Err(error),
    };
    let (branch, head) = refusals(place, &package)?;
    let claim = materialize.map(|line| claim(&queue, &package, line)).transpose()?;
    let files = files(place, &package, head, claim.clone())?;
    let (tree, commit) = match existing {
        Some(commit) => (adopted(place, commit, &files)?, commit),
        None => new_capture(place, &files)?,
    };
    let record = Record {
        schema_version: 1,
        loop_id: place.loop_id.clone(),
        delivery: package.meta.manifest.delivery,
        capture: place.loop_id.capture_ref(),
        commit,
        tree,
        origin: place.repo.work_dir().to_owned(),
        branch,
        sequence: next_sequence(&queue)?,
        materialize: claim,
    };
    if record.origin.to_str().is_none() {
        return Err(AddError::Refused(format!(
            "{} is not UTF-8, and a record can only name paths that are; move the checkout",
            record.origin.display()
        )));
    }
    record.write(layout)?;
    Ok(record)
}

/// The manifest that the record's capture holds.
pub(super) fn manifest(repo: &Repo, record: &Record) -> Result<Manifest, AddError> {
    let path = record.loop_id.meta_file();
    let meta = repo.file(record.commit, &path)?;
    let meta = meta.ok_or_else(|| AddError::Refused(format!("{} holds no {path}", record.capture)))?;
    Manifest::parse_meta(&record.loop_id, &meta.data).map_err(|fault| AddError::Faults(vec![fault]))
}

/// The record again, where what is left of the package in the checkout, and the row it is planned from, are its own.
fn same(place: &Place, queue: &Queue, record: Record, materialize: Option<usize>) -> Result<Record, AddError> {
    let reused = |why: String| {
        AddError::Refused(format!(
            "the loop id {} is taken: {why}; an added package never changes, so plan revised work under a new loop id",
            place.loop_id
        ))
    };
    let source = CheckoutSource::new(&place.repo);
    for path in Package::paths(&manifest(&place.repo, &record)?) {
        let captured = place.repo.file(record.commit, &path)?;
        let same = match source.file(&path) {
            FileState::Missing => true,
            FileState::Bytes(bytes) => captured.is_some_and(|blob| unix_lines(&blob.data) == unix_lines(&bytes)),
            FileState::Unreadable(_) => false,
        };
        if !same {
            return Err(reused(format!("{path} is not the one that {} holds", record.capture)));
        }
    }
    let wanted = materialize.map(|line| legacy_row(queue, line)).transpose()?;
    if wanted.map(|row| &row.claim) != record.materialize.as_ref() {
        let was =
            record.materialize.as_ref().map_or_else(|| "no legacy row".to_owned(), |claim| format!("{:?}", claim.line));
        return Err(reused(format!("it was added as the plan of {was}")));
    }
    Ok(record)
}

/// Everything that speaks against a package that is well formed; the branch and commit that it is added on.
fn refusals(place: &Place, package: &Package) -> Result<(String, Oid), AddError> {
    let refuse = |why: String| Err(AddError::Refused(why));
    let (repo, id) = (&place.repo, &place.loop_id);
    let (branch, head) = match repo.head()? {
        Head::Branch(name, head) => (name, head),
        Head::Unborn(name) => {
            return refuse(format!("{name} has no commit yet, so no work can start from it; commit something first"));
        }
        Head::Detached(head) => {
            return refuse(format!(
                "HEAD is detached at {head}; a loop is added on the branch that its work starts from: `git switch <branch>`"
            ));
        }
    };
    if repo.file(head, &id.queue_file())?.is_some() {
        return refuse(format!("{} is committed already: the loop id {id} is taken, use another one", id.queue_file()));
    }
    let source = CheckoutSource::new(repo);
    for path in &package.files {
        let (committed, here) = (repo.file(head, path)?, source.file(path));
        if let (Some(committed), FileState::Bytes(bytes)) = (committed, here)
            && unix_lines(&committed.data) != unix_lines(&bytes)
        {
            return refuse(format!("{path} is committed with other content; commit this one, or restore that one"));
        }
    }
    if let Some(name) = drifted(repo, head)? {
        return refuse(format!(
            "{name} of this checkout is not the one that {branch} has committed, and the tasks would run without it; \
             commit it, or put it back"
        ));
    }
    let staged =
        repo.git().args(["diff", "--cached", "--name-only", "-z", "--no-renames", "--", &id.directory()]).run()?;
    if !staged.stdout.is_empty() {
        return refuse(format!(
            "changes of the package are staged and would be left behind in the index; run \
             `git restore --staged -- {}` and add again",
            id.directory()
        ));
    }
    Ok((branch, head))
}

fn legacy_row(queue: &Queue, line: usize) -> Result<&LegacyRow, AddError> {
    let row = queue.legacy.iter().find(|row| row.line == line && row.mark == Mark::Pending);
    row.ok_or_else(|| AddError::Refused(format!("line {line} of {LEGACY_QUEUE} is no pending row of it")))
}

/// The claim of the pending legacy row on `line`, which no other loop has and which the package's intent repeats.
fn claim(queue: &Queue, package: &Package, line: usize) -> Result<Claim, AddError> {
    let row = legacy_row(queue, line)?;
    if let Some(other) = queue.loops.iter().find(|found| found.queue.claim.as_ref() == Some(&row.claim)) {
        return Err(AddError::Refused(format!(
            "line {line} of {LEGACY_QUEUE} is planned as the loop {} already",
            other.id
        )));
    }
    let squeezed = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if !squeezed(package.meta.intent()).contains(&squeezed(&row.text)) {
        return Err(AddError::Refused(format!(
            "## Intent of {} does not hold line {line} of {LEGACY_QUEUE} word for word: {:?}",
            package.loop_id.meta_file(),
            row.text
        )));
    }
    Ok(row.claim.clone())
}

/// What the capture holds: each package file as it is committed, else as the checkout has it with plain line endings,
/// and the queue file.
fn files(
    place: &Place,
    package: &Package,
    head: Oid,
    claim: Option<Claim>,
) -> Result<Vec<(String, Vec<u8>)>, AddError> {
    let source = CheckoutSource::new(&place.repo);
    let mut files = Vec::new();
    for path in &package.files {
        let data = match (place.repo.file(head, path)?, source.file(path)) {
            (Some(committed), _) => committed.data,
            (None, FileState::Bytes(bytes)) => unix_lines(&bytes),
            (None, FileState::Missing | FileState::Unreadable(_)) => {
                return Err(AddError::Refused(format!("{path} went away while it was added; add again")));
            }
        };
        files.push((path.clone(), data));
    }
    let rows = package
        .tasks
        .iter()
        .map(|task| Row::pending(package.loop_id.task(&task.id), task.contract.title.clone()))
        .collect();
    files.push((package.loop_id.queue_file(), QueueFile { claim, rows }.to_bytes()));
    Ok(files)
}

fn new_capture(place: &Place, files: &[(String, Vec<u8>)]) -> Result<(Oid, Oid), AddError> {
    let message = format!("devlyn loop: capture {}\n", place.loop_id);
    let author = place.repo.author()?;
    let (tree, commit) =
        place.repo.commit_new(&NewCommit { base: None, files, parents: &[], message: &message, author })?;
    place.repo.update_refs(&[RefChange::Create { name: place.loop_id.capture_ref(), new: commit }])?;
    Ok((tree, commit))
}

/// The tree of the capture that an interrupted add left, where it is this package's.
fn adopted(place: &Place, commit: Oid, files: &[(String, Vec<u8>)]) -> Result<Oid, AddError> {
    let found = place.repo.commit(commit)?.filter(|found| found.parents.is_empty());
    let found = found.ok_or_else(|| left_capture(place, commit, "it is no capture"))?;
    for (path, data) in files {
        let captured = place.repo.file(commit, path)?;
        if captured.is_none_or(|blob| unix_lines(&blob.data) != unix_lines(data)) {
            return Err(left_capture(place, commit, &format!("its {path} differs from the checkout's")));
        }
    }
    Ok(found.tree)
}

fn left_capture(place: &Place, commit: Oid, why: &str) -> AddError {
    let name = place.loop_id.capture_ref();
    AddError::Refused(format!(
        "an interrupted add left {name} at {commit}, and {why}; put that package back with `git checkout {name} -- {}` \
         and `git restore --staged -- {}`, or give the loop id up with `git update-ref -d {name} {commit}`",
        place.loop_id.directory(),
        place.loop_id.directory()
    ))
}

/// One more than the highest sequence of a loop.
fn next_sequence(queue: &Queue) -> Result<u64, AddError> {
    let known = queue.loops.iter().filter_map(|found| found.record.as_ref()).max_by_key(|record| record.sequence);
    let highest = known.map_or(0, |record| record.sequence);
    highest.checked_add(1).ok_or_else(|| {
        let loop_id = known.map_or_else(String::new, |record| record.loop_id.to_string());
        AddError::Refused(format!(
            "the record of {loop_id} has the highest sequence there is; put a smaller one into it"
        ))
    })
}
