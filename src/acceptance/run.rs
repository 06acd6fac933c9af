//! The runner: what an executor calls on its committed candidate before it submits. It judges as the drain will, and
//! leaves nothing but evidence.

use std::path::{Path, PathBuf};

use super::candidate::{Candidate, open_worktree};
use super::evidence::new_run;
use super::judge::{Commands, judge};
use super::terms::Terms;
use super::{AcceptanceError, Result};
use crate::exchange::{Checked, Digests, Kind, Packet};
use crate::os::disk::flush;
use crate::store::{read_state, write_state};

/// A candidate that was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ran {
    /// The result, absolute and durable.
    pub result: PathBuf,
    /// Whether nothing speaks against the candidate.
    pub passed: bool,
    /// What does.
    pub reasons: Vec<String>,
}

/// Checks the committed candidate in the worktree of the packet at `packet_path`, wherever it is called from.
///
/// # Errors
/// Where the packet cannot be relied on, the candidate cannot be checked, or evidence cannot be kept.
pub fn run(packet_path: &Path) -> Result<Ran> {
    let packet = read_packet(packet_path)?;
    let work = open_worktree(&packet.worktree)?;
    let terms = Terms::read(&work, &packet)?;
    let candidate = Candidate::new(&work, &packet.branch, packet.inputs_sha, &packet.task.loop_id);
    let source = candidate.examine(&candidate.head()?.to_string())?.map_err(AcceptanceError::Candidate)?;
    let folder = new_run(work.work_dir())?;
    let result = packet.worktree.join(&folder).join("result.json");
    let judgement = judge(&work, &candidate, &terms, (packet.inputs_sha, source), Commands::Run(folder.clone()))?;
    let contract = Digests::of(&packet);
    let checked = Checked {
        schema_version: 1,
        kind: Kind::LoopChecks,
        task: packet.task,
        source_sha: source,
        inputs_sha: packet.inputs_sha,
        allocation_base: packet.allocation_base,
        contract,
        commands: judgement.commands,
        guards: judgement.guards,
        reasons: judgement.reasons,
    };
    keep(&packet.worktree, &folder, &checked)?;
    write_state(&result, &checked)?;
    Ok(Ran { result, passed: checked.reasons.is_empty(), reasons: checked.reasons })
}

/// Flushes the streams of a run and every folder down to it: a drain may take the result over much later.
fn keep(worktree: &Path, run: &str, checked: &Checked) -> Result<()> {
    let streams = checked.commands.iter().flat_map(|record| [&record.stdout.path, &record.stderr.path]);
    let place = worktree.join(run);
    let folders = place.ancestors().take_while(|folder| folder.starts_with(worktree)).map(Path::to_owned);
    let paths: Vec<PathBuf> = streams.map(|path| worktree.join(path)).chain(folders).collect();
    flush(&paths).map_err(|error| AcceptanceError::io(&error.path)(error.source))
}

fn read_packet(path: &Path) -> Result<Packet> {
    let wrong = |why: String| AcceptanceError::Packet { path: path.to_owned(), why };
    let Some((object, _)) = read_state(path)? else { return Err(wrong("is not there".to_owned())) };
    let packet: Packet = serde_json::from_value(object.into()).map_err(|error| wrong(error.to_string()))?;
    if packet.schema_version != 1 {
        return Err(wrong(format!("its schema_version is {}, not 1", packet.schema_version)));
    }
    if packet.branch != packet.task.branch() {
        return Err(wrong(format!("its branch {:?} is not that of {}", packet.branch, packet.task)));
    }
    if !packet.worktree.is_absolute() {
        return Err(wrong(format!("its worktree {:?} is no absolute path", packet.worktree)));
    }
    Ok(packet)
}

#[cfg(test)]
mod tests {
    use super::super::testing::Bench;
    use super::*;
    use crate::json::json;
    use crate::store::write_bytes;

    fn ran(bench: &Bench) -> Result<Ran> {
        run(&bench.held().dir.packet())
    }

    #[test]
    fn a_result_is_written_for_every_run_and_nothing_else_changes() {
        let bench = Bench::new(&json!({}));
        let head = bench.commit(&[("t1.txt", "done")]);
        let seen = || {
            (
                bench.git(&["for-each-ref"]).line(),
                std::fs::read(bench.repo().common_dir().join("worktrees/tree/index")).unwrap(),
            )
        };
        let before = seen();
        for number in ["1", "2"] {
            let ran = ran(&bench).unwrap();
            assert_eq!(ran.result, bench.tree().join(".devlyn/loop/runs").join(number).join("result.json"));
            assert!(ran.passed && ran.reasons.is_empty());
        }
        assert!(seen() == before);
        let result = bench.object(".devlyn/loop/runs/2/result.json");
        let keys: Vec<&str> = result.keys().map(String::as_str).collect();
        assert_eq!(
            keys,
            [
                "allocation_base",
                "commands",
                "contract",
                "guards",
                "inputs_sha",
                "kind",
                "reasons",
                "schema_version",
                "source_sha",
                "task"
            ]
        );
        assert_eq!((&result["kind"], &result["source_sha"]), (&json!("loop-checks"), &json!(head)));
        assert_eq!(result["commands"][0]["stdout"]["path"], ".devlyn/loop/runs/2/cmd-0.stdout");
    }

    #[test]
    fn what_failed_and_what_changed_meanwhile_is_told() {
        let bench = Bench::new(&json!({
            "verification_commands": [{"cmd": "echo x >> old.txt; exit 1", "contract_refs": ["R1", "R2"]}],
            "required_files": ["missing.txt"]
        }));
        let ran = ran(&bench).unwrap();
        assert!(!ran.passed);
        assert_eq!(ran.reasons.len(), 3, "{:?}", ran.reasons);
        assert_eq!(ran.reasons[0], "failed: command 0 (R1, R2) exited with 1, expected 0");
        assert!(ran.reasons[1].starts_with("failed: guard required_files"), "{:?}", ran.reasons);
        assert!(ran.reasons[2].contains("old.txt"), "{:?}", ran.reasons);
    }

    #[test]
    fn a_candidate_that_cannot_be_checked_is_refused_by_name() {
        let bench = Bench::new(&json!({}));
        bench.commit(&[("docs/specs/inv/t1/spec.md", "weaker")]);
        bench.write(&[("left over.txt", "x")]);
        let error = ran(&bench).unwrap_err().to_string();
        assert!(error.contains("left over.txt") && error.contains("docs/specs/inv/t1/spec.md"), "{error}");
        assert!(!bench.tree().join(".devlyn/loop/runs").exists());
    }

    #[test]
    fn a_packet_that_cannot_be_relied_on_is_refused_by_its_path() {
        let bench = Bench::new(&json!({}));
        let path = bench.tree().join(".devlyn/broken.json");
        assert!(run(&path).unwrap_err().to_string().contains("broken.json"));
        let with = |key: &str, value: &str| {
            let mut packet = serde_json::to_value(bench.packet()).unwrap();
            packet[key] = json!(value);
            packet.to_string()
        };
        for text in ["{", "[]", "{}", &with("schema_version", "2"), &with("branch", "main"), &with("worktree", "tree")]
        {
            bench.write(&[(".devlyn/here", "")]);
            write_bytes(&path, text.as_bytes()).unwrap();
            assert!(run(&path).unwrap_err().to_string().contains("broken.json"), "{text}");
        }
    }
}
