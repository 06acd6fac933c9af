//! The log of executions: a line an event, `<time> start`, `<time> exit <code> (pid <pid>)`, `<time> not started: <why>`.

/// How the last execution stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attempt {
    /// There was none.
    None,
    /// It began, and no end of it is known.
    Open,
    /// It ended; the rest of its line.
    Ended(String),
    /// It could not begin; why.
    NotStarted(String),
}

/// How the last execution in the log's text stands. A line that was cut off in the middle of its writing counts as
/// the beginning that it may have been.
#[must_use]
pub fn last_attempt(log: &str) -> Attempt {
    let Some(line) = log.lines().rfind(|line| !line.trim().is_empty()) else { return Attempt::None };
    let event = line.split_once(' ').map_or("", |(_, event)| event);
    if let Some(why) = event.strip_prefix("not started: ") {
        Attempt::NotStarted(why.to_owned())
    } else if event.starts_with("exit ") && log.ends_with('\n') {
        Attempt::Ended(event.to_owned())
    } else {
        Attempt::Open
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_whole_event_decides() {
        let stamp = "2026-01-02T03:04:05.000000+00:00";
        for (events, wanted) in [
            ("", Attempt::None),
            ("S start\n", Attempt::Open),
            ("S start\nS exit 0 (pid 7)\n", Attempt::Ended("exit 0 (pid 7)".into())),
            ("S start\nS exit 0 (pid", Attempt::Open),
            ("S start\nS not started: no such file\n", Attempt::NotStarted("no such file".into())),
            ("S start\nS exit 1 (pid 7)\nS start\n", Attempt::Open),
            ("S start\nS exit 0 (pid\nS start\n", Attempt::Open),
        ] {
            assert_eq!(last_attempt(&events.replace('S', stamp)), wanted, "{events}");
        }
    }
}
