//! The manifest: the order of the tasks, what each waits for, and how the loop is delivered.
//!
//! Never says where a task stands; that is the queue's.

use std::collections::HashSet;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::diagnostics::{Faults, one_of, quoted};
use super::places::{Node, Object};
use super::{LoopId, TaskId, graph, is_branch_name};

/// A manifest that keeps every rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// The loop.
    pub loop_id: LoopId,
    /// The branch that the work is for, without `refs/heads/`.
    pub base_ref: String,
    /// The commit that the plan was made against, 40 or 64 hex digits.
    pub base_sha: String,
    /// How results leave the repository.
    pub delivery: Delivery,
    /// The tasks, each after all it depends on.
    pub tasks: Vec<ManifestTask>,
    /// The last task, which depends on every other and checks the assembled product.
    pub integration_task_id: TaskId,
}

/// A task as the manifest has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManifestTask {
    /// The task.
    pub id: TaskId,
    /// The earlier tasks that must be accepted before it.
    pub depends_on: Vec<TaskId>,
}

/// How the results of a loop leave the repository.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Delivery {
    /// A pull request that is merged when its checks pass.
    Auto,
    /// A pull request that a person merges.
    Pr,
    /// Nothing leaves.
    LocalOnly,
}

impl Delivery {
    const ALL: [Self; 3] = [Self::Auto, Self::Pr, Self::LocalOnly];

    /// As it is written in the manifest.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Pr => "pr",
            Self::LocalOnly => "local-only",
        }
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What could be read of a manifest, whole or not.
#[derive(Debug, Default)]
pub(crate) struct Reading {
    /// The manifest, where it keeps every rule.
    pub(crate) manifest: Option<Manifest>,
    /// Every task that has a readable id, in order, each once.
    pub(crate) tasks: Vec<TaskId>,
}

const KEYS: [&str; 7] =
    ["schema_version", "loop_id", "base_ref", "base_sha", "delivery", "tasks", "integration_task_id"];
const TASK_KEYS: [&str; 3] = ["id", "spec", "depends_on"];

/// Whether a text is a commit of the repository that the package is for.
pub(crate) type IsCommit<'a> = &'a dyn Fn(&str) -> bool;

/// Reads the manifest in `value`, noting every fault. Without `is_commit` only the form of `base_sha` is judged.
pub(crate) fn read(loop_id: &LoopId, value: &Node, is_commit: Option<IsCommit<'_>>, faults: &mut Faults) -> Reading {
    let Some(object) = value.object() else {
        faults.push(value.at, format!("the manifest is {}, not an object", value.shown()), "write { … } with its keys");
        return Reading::default();
    };
    let before = faults.len();
    let no_status =
        |key: &str| (key == "status").then(|| "take it out: where work stands is kept elsewhere".to_owned());
    object.refuse_others(&KEYS, "the manifest", no_status, faults);
    read_version(object, faults);
    read_loop(loop_id, object, faults);
    let base_ref = read_base_ref(object, faults);
    let base_sha = read_base_sha(object, is_commit, faults);
    let delivery = read_delivery(object, faults);
    let tasks = read_tasks(object, faults);
    let ids: Vec<graph::Task<'_>> = tasks.iter().map(ReadTask::as_graph).collect();
    graph::check(&ids, faults);
    let integration = read_integration(object, &ids, faults);

    let mut seen = HashSet::new();
    let ids = tasks.iter().filter_map(|task| task.id.as_ref());
    let known: Vec<TaskId> = ids.filter(|id| seen.insert(*id)).cloned().collect();
    let whole = || {
        let tasks = tasks.into_iter().map(ReadTask::into_task).collect::<Option<Vec<_>>>()?;
        let integration_task_id = integration?;
        let (base_ref, base_sha) = (base_ref?, base_sha?);
        Some(Manifest { loop_id: loop_id.clone(), base_ref, base_sha, delivery: delivery?, tasks, integration_task_id })
    };
    let manifest = if faults.len() == before { whole() } else { None };
    Reading { manifest, tasks: known }
}

fn read_version(object: &Object, faults: &mut Faults) {
    let help = "write \"schema_version\": 1";
    if let Some(value) = object.required("schema_version", "the manifest", help, faults)
        && value.whole() != Some(1)
    {
        faults.push(value.at, format!("schema_version is {}, not the number 1", value.shown()), "write 1");
    }
}

fn read_loop(loop_id: &LoopId, object: &Object, faults: &mut Faults) {
    let help = format!("write \"loop_id\": \"{loop_id}\", the name of the directory");
    if let Some(value) = object.required("loop_id", "the manifest", &help, faults)
        && value.text() != Some(loop_id.as_str())
    {
        let message = format!("loop_id is {}, but the directory is \"{loop_id}\"", value.shown());
        faults.push(value.at, message, format!("write \"{loop_id}\", or rename the directory"));
    }
}

fn read_base_ref(object: &Object, faults: &mut Faults) -> Option<String> {
    let help = "name the branch that the work is for, such as \"main\"";
    let value = object.required("base_ref", "the manifest", help, faults)?;
    let name = value.text().filter(|name| is_branch_name(name));
    if name.is_none() {
        faults.push(value.at, format!("base_ref is {}, which is no name of a branch", value.shown()), help);
    }
    name.map(str::to_owned)
}

fn read_base_sha(object: &Object, is_commit: Option<IsCommit<'_>>, faults: &mut Faults) -> Option<String> {
    let help = "write the full id that `git rev-parse HEAD` prints on the base branch";
    let value = object.required("base_sha", "the manifest", help, faults)?;
    let hex =
        |text: &&str| matches!(text.len(), 40 | 64) && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let Some(id) = value.text().filter(hex) else {
        let message = format!("base_sha is {}, not a full commit id of 40 or 64 lower-case hex digits", value.shown());
        faults.push(value.at, message, help);
        return None;
    };
    if is_commit.is_some_and(|is_commit| !is_commit(id)) {
        faults.push(value.at, format!("base_sha {id} is no commit of this repository"), help);
    }
    Some(id.to_owned())
}

fn read_delivery(object: &Object, faults: &mut Faults) -> Option<Delivery> {
    let help = format!("write {}", one_of(&Delivery::ALL.map(Delivery::as_str)));
    let value = object.required("delivery", "the manifest", &help, faults)?;
    let delivery = Delivery::ALL.into_iter().find(|way| value.text() == Some(way.as_str()));
    if delivery.is_none() {
        faults.push(value.at, format!("unknown delivery {}", value.shown()), help);
    }
    delivery
}

/// A task as far as it can be read.
struct ReadTask {
    at: usize,
    id: Option<TaskId>,
    /// Nothing where it is no list of texts.
    depends_on: Option<Vec<(usize, String)>>,
}

impl ReadTask {
    fn as_graph(&self) -> graph::Task<'_> {
        graph::Task { at: self.at, id: self.id.as_ref().map(TaskId::as_str), depends_on: self.depends_on.as_deref() }
    }

    fn into_task(self) -> Option<ManifestTask> {
        let ids = self.depends_on?.into_iter().map(|(_, id)| TaskId::new(id).ok()).collect::<Option<_>>()?;
        Some(ManifestTask { id: self.id?, depends_on: ids })
    }
}

fn read_tasks(object: &Object, faults: &mut Faults) -> Vec<ReadTask> {
    let help = "list at least one task: {\"id\": \"t1\", \"spec\": \"t1/spec.md\", \"depends_on\": []}";
    let Some(value) = object.required("tasks", "the manifest", help, faults) else { return Vec::new() };
    let Some(items) = value.list().filter(|items| !items.is_empty()) else {
        faults.push(value.at, format!("tasks is {}, not a list of tasks", value.shown()), help);
        return Vec::new();
    };
    items.iter().enumerate().map(|(index, item)| read_task(index, item, faults)).collect()
}

fn read_task(index: usize, item: &Node, faults: &mut Faults) -> ReadTask {
    let Some(object) = item.object() else {
        let help = "write {\"id\": …, \"spec\": …, \"depends_on\": […]}";
        faults.push(item.at, format!("tasks[{index}] is {}, not an object", item.shown()), help);
        return ReadTask { at: item.at, id: None, depends_on: None };
    };
    let id = read_task_id(index, object, faults);
    let subject = id.as_ref().map_or_else(|| format!("tasks[{index}]"), |id| format!("task {:?}", id.as_str()));
    let no_status =
        |key: &str| (key == "status").then(|| "take it out: where a task stands is kept elsewhere".to_owned());
    object.refuse_others(&TASK_KEYS, &subject, no_status, faults);

    let path = id.as_ref().map_or_else(|| "<id>/spec.md".to_owned(), |id| format!("{id}/spec.md"));
    let spec = object.required("spec", &subject, &format!("write \"spec\": \"{path}\""), faults);
    if let Some(spec) = spec
        && id.is_some()
        && spec.text() != Some(path.as_str())
    {
        let message = format!("the spec of {subject} is {}", spec.shown());
        faults.push(spec.at, message, format!("write \"{path}\"; a contract stands nowhere else"));
    }

    let help = "list the earlier tasks that it needs, or write []";
    let depends_on = object.required("depends_on", &subject, help, faults).and_then(|value| {
        let items = value.list().unwrap_or_default();
        let ids: Option<Vec<_>> = items.iter().map(|item| Some((item.at, item.text()?.to_owned()))).collect();
        let ids = ids.filter(|_| value.list().is_some());
        if ids.is_none() {
            let bad = items.iter().find(|item| item.text().is_none()).unwrap_or(value);
            let message = format!("depends_on of {subject} is no list of task ids: here is {}", bad.shown());
            faults.push(bad.at, message, help);
        }
        ids
    });
    ReadTask { at: item.at, id, depends_on }
}

fn read_task_id(index: usize, object: &Object, faults: &mut Faults) -> Option<TaskId> {
    let help = "write 1 to 63 of a-z, 0-9 and -, the first no dash";
    let value = object.required("id", &format!("tasks[{index}]"), help, faults)?;
    let id = value.text().and_then(|text| TaskId::new(text).ok());
    if id.is_none() {
        faults.push(value.at, format!("the id of tasks[{index}] is {}, which is no id", value.shown()), help);
    }
    id
}

fn read_integration(object: &Object, tasks: &[graph::Task<'_>], faults: &mut Faults) -> Option<TaskId> {
    let last = tasks.last().and_then(|task| task.id);
    let help = last.map_or_else(|| "name the last task".to_owned(), |last| format!("write \"{last}\", the last task"));
    let value = object.required("integration_task_id", "the manifest", &help, faults)?;
    // What the last task is cannot be told where the list is not readable.
    let last = last?;
    let Some(id) = value.text().filter(|id| *id == last) else {
        faults.push(value.at, format!("integration_task_id is {}, not the last task", value.shown()), help);
        return None;
    };
    let unreached: Vec<String> = graph::unreached(tasks).iter().map(|id| quoted(id)).collect();
    if !unreached.is_empty() {
        let message = format!("integration_task_id {id:?} does not depend on {}", unreached.join(", "));
        let help = "let its depends_on reach every other task, or add a last task that checks the assembled product";
        faults.push(value.at, message, help);
    }
    TaskId::new(id).ok()
}
