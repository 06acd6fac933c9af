//! What interruptions leave, and reports.

use super::{Spoils, clean, findings, finds, mended, worked};

#[test]
fn temporary_files_are_in_nobody_s_way_and_named() {
    let sandbox = worked();
    for path in [
        sandbox.receipt_dir("b.t1").join(".receipt.json.aB3dE6"),
        sandbox.receipt_dir("c.t1").join(".packet.json.aB3dE6"),
        sandbox.common().join("devlyn-loops/b/.added.json.aB3dE6"),
        sandbox.common().join("devlyn-loops/b/.drain-report.md.aB3dE6"),
    ] {
        std::fs::write(&path, "{").unwrap();
        mended(&sandbox, "warning", path.to_str().unwrap(), "its writer ended");
    }
}

#[test]
fn what_was_set_aside_is_shown_and_is_no_fault() {
    let sandbox = worked();
    let dir = sandbox.receipt_dir("c.t1");
    for (name, what) in [
        (".custody-1/log", "copied and never bound"),
        (".custody-copying-aB3dE6/log", "whose copying was interrupted"),
        ("custody/log", "is not bound yet"),
        (".submission-1", "cut off while it was written"),
    ] {
        let mut spoils = Spoils::new(&sandbox);
        spoils.dir(&dir.join(name.split('/').next().unwrap()));
        if name.contains('/') {
            spoils.file(&dir.join(name), "kept");
        }
        finds(&sandbox, "info", name.split('/').next().unwrap(), what);
        let text = sandbox.devlyn(&["fsck"]).ok().stdout;
        assert!(text.starts_with("info: ") && text.ends_with("Everything that is kept agrees.\n"), "{text}");
        spoils.restore();
    }
}

#[test]
fn reports_that_nobody_can_read_are_named() {
    let sandbox = worked();
    let report = sandbox.common().join("devlyn-loops/b/drain-report.md");
    let spoils = &mut Spoils::new(&sandbox);
    for text in [&b"\xff"[..], b"", b"# Drain report \xe2\x80\x94 a\n"] {
        spoils.file(&report, text);
        finds(&sandbox, "warning", "b/drain-report.md", "cannot be read as a report");
        spoils.restore();
    }
    spoils.gone(&report).dir(&report);
    finds(&sandbox, "warning", "b/drain-report.md", "is no regular file");
    spoils.restore();
    std::fs::remove_file(&report).unwrap();
    clean(&sandbox);
}

#[test]
fn findings_are_told_a_line_each_and_change_nothing() {
    let sandbox = worked();
    std::fs::write(sandbox.receipt_dir("b.t1").join("receipt.json"), "{").unwrap();
    std::fs::write(sandbox.common().join("devlyn-loops/a/added.json"), "\u{1b}[2J").unwrap();
    assert_eq!(findings(&sandbox).len(), 2);
    let ran = sandbox.devlyn(&["fsck"]).exits(1);
    let lines: Vec<&str> = ran.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{}", ran.stdout);
    assert!(lines[0].starts_with("error: /") && lines[1].starts_with("error: /"), "{}", ran.stdout);
    assert_eq!(lines[2], "2 findings.");
}
