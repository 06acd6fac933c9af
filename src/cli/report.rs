//! `git devlyn report`.

use super::args::Report;
use super::reply::Reply;
use super::{repository, text};
use crate::package::LoopId;
use crate::store::{Layout, read_bytes};
use crate::view::{Captures, Queue};

pub(super) fn run(asked: &Report) -> Reply {
    let repo = match repository(asked.repository.repo.as_deref()) {
        Ok(repo) => repo,
        Err(error) => return Reply::blocked(error),
    };
    let layout = Layout::new(repo.common_dir());
    let loops = match &asked.loop_id {
        Some(name) => match LoopId::new(name.clone()) {
            Ok(id) => vec![id],
            Err(error) => return Reply::blocked(error),
        },
        None => match Queue::read(&repo, &layout, &Captures::default()) {
            Ok(queue) => queue.in_order().map(|found| found.id.clone()).collect(),
            Err(error) => return Reply::blocked(error),
        },
    };
    let mut pages = Vec::new();
    for id in loops {
        let path = layout.report(&id);
        match read_bytes(&path) {
            Ok(Some(page)) => pages.push((id, path, String::from_utf8_lossy(&page).into_owned())),
            Ok(None) => {}
            Err(error) => return Reply::blocked(error),
        }
    }
    if pages.is_empty() {
        return Reply::blocked("there is no report yet; `git devlyn drain -- <executor> '{packet}'` writes one");
    }
    let object = crate::json::json!({
        "status": "OK",
        "reports": pages.iter().map(|(id, path, page)| crate::json::json!({
            "loop_id": id, "path": path, "text": page,
        })).collect::<Vec<_>>(),
    });
    let colours = text::colours();
    let text: Vec<String> =
        pages.iter().map(|(_, _, page)| page.lines().map(|line| shown(line, colours)).collect()).collect();
    Reply::new(&object, text.join("\n"))
}

/// A line of a report as a terminal shows it.
fn shown(line: &str, colours: bool) -> String {
    let line = text::visible(line);
    if line.starts_with('#') {
        return format!("{}\n", text::painted(&line, text::Colour::Bold, colours));
    }
    match line.strip_prefix("- Product: ") {
        Some(result) => format!("- Product: {}\n", text::painted(result, text::of_result(result), colours)),
        None => format!("{line}\n"),
    }
}
