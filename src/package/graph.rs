//! Which task waits for which: ids that are unique, dependencies that point backwards, an end that reaches all.
//!
//! Works on what could be read, so that one broken task does not hide what is wrong with the others.

use std::collections::{HashMap, HashSet};

use super::diagnostics::{Faults, quoted};

/// A task as far as it could be read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Task<'a> {
    /// Where it stands in the file.
    pub(crate) at: usize,
    pub(crate) id: Option<&'a str>,
    /// Each name with its place; nothing where it is no list of names.
    pub(crate) depends_on: Option<&'a [(usize, String)]>,
}

impl<'a> Task<'a> {
    fn names(&self) -> impl Iterator<Item = (usize, &'a str)> + use<'a> {
        self.depends_on.unwrap_or_default().iter().map(|(at, name)| (*at, name.as_str()))
    }
}

/// As many faults as a file may have until circles are no longer told from a wrong order.
const SEARCHED: usize = 50;

/// Notes what is wrong with ids and dependencies.
pub(crate) fn check(tasks: &[Task<'_>], faults: &mut Faults) {
    let mut first: HashMap<&str, usize> = HashMap::new();
    for (index, task) in tasks.iter().enumerate() {
        let Some(id) = task.id else { continue };
        if first.contains_key(id) {
            faults.push(task.at, format!("the task id {id:?} is given twice"), "give one of the two tasks another id");
        } else {
            first.insert(id, index);
        }
    }
    // Where an id could not be read, a name that nobody has may be that task's.
    let all_known = tasks.iter().all(|task| task.id.is_some());
    for (index, task) in tasks.iter().enumerate() {
        let subject = task.id.map_or_else(|| format!("tasks[{index}]"), |id| format!("task {id:?}"));
        let mut named = HashSet::new();
        for (at, name) in task.names() {
            if !named.insert(name) {
                let message = format!("depends_on of {subject} names {} twice", quoted(name));
                faults.push(at, message, "keep one of them");
                continue;
            }
            match first.get(name) {
                None if all_known => {
                    let message =
                        format!("depends_on of {subject} names {}, which is no task of this loop", quoted(name));
                    faults.push(at, message, "name tasks of this manifest by their ids");
                }
                None => {}
                Some(_) if task.id == Some(name) => {
                    faults.push(at, format!("{subject} depends on itself"), "take its own id out of depends_on");
                }
                Some(target) if *target >= index => later(tasks, &first, index, *target, at, faults),
                Some(_) => {}
            }
        }
    }
}

fn later(tasks: &[Task<'_>], first: &HashMap<&str, usize>, from: usize, to: usize, at: usize, faults: &mut Faults) {
    let name = |index: usize| tasks[index].id.unwrap_or("?");
    // A search for each of many would be a burden; the first few tell what is wrong.
    let path = if faults.len() < SEARCHED { path(tasks, first, to, from) } else { None };
    if let Some(path) = path {
        let circle: Vec<&str> = std::iter::once(from).chain(path).map(name).collect();
        let message = format!("tasks depend on each other in a circle: {}", circle.join(" → "));
        faults.push(at, message, "take one of these dependencies away");
    } else {
        let message = format!("task {:?} depends on {:?}, which is listed later", name(from), name(to));
        faults.push(at, message, format!("list {:?} first: tasks run in this order", name(to)));
    }
}

/// The tasks on a shortest way along dependencies from one to another, both included.
fn path(tasks: &[Task<'_>], first: &HashMap<&str, usize>, from: usize, to: usize) -> Option<Vec<usize>> {
    let mut came: HashMap<usize, usize> = HashMap::from([(from, from)]);
    let mut queue = std::collections::VecDeque::from([from]);
    while let Some(index) = queue.pop_front() {
        if index == to {
            let mut path = vec![to];
            while let Some(previous) = path.last().and_then(|last| came.get(last)).filter(|p| path.last() != Some(*p)) {
                path.push(*previous);
            }
            path.reverse();
            return Some(path);
        }
        for next in tasks[index].names().filter_map(|(_, name)| first.get(name).copied()) {
            came.entry(next).or_insert_with(|| {
                queue.push_back(next);
                index
            });
        }
    }
    None
}

/// The tasks that the last one does not depend on, directly or through others. None where a dependency could not be
/// read: nobody knows then.
pub(crate) fn unreached<'a>(tasks: &[Task<'a>]) -> Vec<&'a str> {
    if tasks.iter().any(|task| task.id.is_none() || task.depends_on.is_none()) {
        return Vec::new();
    }
    let by_id: HashMap<&str, &Task<'_>> = tasks.iter().filter_map(|task| Some((task.id?, task))).collect();
    let mut reached: HashSet<&str> = HashSet::new();
    let mut open: Vec<&str> = tasks.last().and_then(|task| task.id).into_iter().collect();
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(by_id.get(id).into_iter().flat_map(|task| task.names().map(|(_, name)| name)));
        }
    }
    tasks.iter().filter_map(|task| task.id).filter(|id| !reached.contains(id)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(tasks: &[(&str, &[&str])]) -> (Vec<String>, Vec<String>) {
        let names: Vec<Vec<(usize, String)>> =
            tasks.iter().map(|(_, names)| names.iter().map(|name| (0, (*name).to_owned())).collect()).collect();
        let tasks: Vec<Task<'_>> = tasks
            .iter()
            .zip(&names)
            .map(|((id, _), names)| Task { at: 0, id: Some(id), depends_on: Some(names) })
            .collect();
        let mut faults = Faults::new("f".into());
        check(&tasks, &mut faults);
        let faults = faults.into_sorted(b"").into_iter().map(|fault| fault.message).collect();
        (faults, unreached(&tasks).into_iter().map(str::to_owned).collect())
    }

    #[test]
    fn dependencies_point_backwards_at_tasks_that_are_there() {
        assert_eq!(messages(&[("a", &[]), ("b", &["a"]), ("c", &["b"])]), (vec![], vec![]));
        let (faults, unreached) = messages(&[("a", &["a", "x"]), ("b", &["a", "a"]), ("a", &[]), ("c", &[])]);
        assert_eq!(
            faults,
            [
                "the task id \"a\" is given twice",
                "task \"a\" depends on itself",
                "depends_on of task \"a\" names \"x\", which is no task of this loop",
                "depends_on of task \"b\" names \"a\" twice",
            ]
        );
        assert_eq!(unreached, ["a", "b", "a"]);
    }

    #[test]
    fn a_circle_is_told_from_a_wrong_order() {
        let (faults, _) = messages(&[("a", &["c"]), ("b", &["a"]), ("c", &["b"])]);
        assert_eq!(faults, ["tasks depend on each other in a circle: a → c → b → a"]);
        let (faults, _) = messages(&[("b", &["a"]), ("a", &[])]);
        assert_eq!(faults, ["task \"b\" depends on \"a\", which is listed later"]);
    }

    #[test]
    fn many_tasks_are_no_burden() {
        let ids: Vec<String> = (0..3000).map(|i| format!("t{i}")).collect();
        let names: Vec<Vec<(usize, String)>> =
            (0..3000).map(|i| if i == 0 { vec![] } else { vec![(0, ids[i - 1].clone())] }).collect();
        let tasks: Vec<Task<'_>> =
            ids.iter().zip(&names).map(|(id, names)| Task { at: 0, id: Some(id), depends_on: Some(names) }).collect();
        let mut faults = Faults::new("f".into());
        check(&tasks, &mut faults);
        assert_eq!((faults.len(), unreached(&tasks).len()), (0, 0));
    }
}
