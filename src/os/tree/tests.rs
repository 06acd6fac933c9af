//! Emptying, on real directories.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};

use super::*;
use crate::os::process::testing::{again, shell};

fn put(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    File::create(path).unwrap().write_all(text.as_bytes()).unwrap();
}

fn is_empty(directory: &Path) -> bool {
    fs::read_dir(directory).unwrap().next().is_none()
}

fn emptied(directory: &Path) -> Result<u64, EmptyError> {
    empty(directory, identity(directory).unwrap())
}

#[test]
fn everything_goes_but_the_directory_and_what_links_lead_to() {
    let root = tempfile::tempdir().unwrap();
    let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
    put(&outside.join("precious"), "precious");
    put(&tree.join("deep/er/object.o"), "object");
    put(&tree.join(".gitignore"), "1234");
    for (to, name) in
        [(&outside, "dir"), (&outside.join("precious"), "file"), (&root.path().join("none"), "deep/broken")]
    {
        symlink(to, tree.join(name)).unwrap();
    }
    fs::hard_link(outside.join("precious"), tree.join("hard")).unwrap();
    assert!(shell("mkfifo fifo", &[], &tree).status().unwrap().success());
    let before = identity(&tree).unwrap();
    assert_eq!(emptied(&tree).unwrap(), 6 + 4 + 8);
    assert!(is_empty(&tree));
    assert_eq!((identity(&tree).unwrap(), emptied(&tree).unwrap()), (before, 0));
    assert_eq!(fs::read_to_string(outside.join("precious")).unwrap(), "precious");
}

#[test]
fn git_s_data_in_any_case_keeps_everything() {
    for (name, directory) in [(".git", true), (".GiT", true), (".git", false), (".GIT", false)] {
        let tree = tempfile::tempdir().unwrap();
        put(&tree.path().join("artifact"), "x");
        let git = tree.path().join("sub/checkout").join(name);
        put(&if directory { git.join("HEAD") } else { git.clone() }, "x");
        let sub = tree.path().join("sub");
        fs::set_permissions(&sub, fs::Permissions::from_mode(0o311)).unwrap();
        assert!(matches!(emptied(tree.path()), Err(EmptyError::GitData(path)) if path == git));
        assert!(tree.path().join("artifact").exists());
        assert_eq!(sub.metadata().unwrap().permissions().mode() & 0o7777, 0o311, "as it was");
        // Nobody but root could take it away like that.
        fs::set_permissions(&sub, fs::Permissions::from_mode(0o700)).unwrap();
    }
}

#[test]
fn another_directory_or_a_link_in_its_place_is_not_ours() {
    let root = tempfile::tempdir().unwrap();
    let (tree, moved) = (root.path().join("tree"), root.path().join("moved"));
    put(&tree.join("mine"), "x");
    let expected = identity(&tree).unwrap();
    fs::rename(&tree, &moved).unwrap();
    assert!(matches!(empty(&tree, expected), Err(EmptyError::Io { .. })));
    symlink(&moved, &tree).unwrap();
    assert!(matches!(empty(&tree, expected), Err(EmptyError::Replaced(path)) if path == tree));
    assert!(matches!(empty(&tree, identity(&tree).unwrap()), Err(EmptyError::Replaced(_))));
    fs::remove_file(&tree).unwrap();
    put(&tree.join("theirs"), "x");
    assert!(matches!(empty(&tree, expected), Err(EmptyError::Replaced(_))));
    assert!(moved.join("mine").exists() && tree.join("theirs").exists());
}

#[test]
fn no_depth_is_too_deep() {
    let tree = tempfile::tempdir().unwrap();
    let mut open = openat(CWD, tree.path(), READ, Mode::empty()).unwrap();
    for _ in 0..1100 {
        rustix::fs::mkdirat(&open, "directory", Mode::RWXU).unwrap();
        open = openat(&open, "directory", READ, Mode::empty()).unwrap();
    }
    emptied(tree.path()).unwrap();
    assert!(is_empty(tree.path()));
}

#[test]
fn a_directory_swapped_for_a_link_meanwhile_leads_nowhere() {
    let root = tempfile::tempdir().unwrap();
    let (tree, outside) = (root.path().join("tree"), root.path().join("outside"));
    put(&outside.join("sub/precious"), "precious");
    fs::create_dir(&tree).unwrap();
    let (victim, aside) = (tree.join("victim"), root.path().join("aside"));
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !over.load(Ordering::Relaxed) {
                let _ = fs::create_dir_all(victim.join("sub"));
                let _ = File::create(victim.join("sub/file"));
                let _ = fs::rename(&victim, &aside);
                let _ = symlink(&outside, &victim);
                let _ = fs::remove_file(&victim);
                let _ = fs::remove_dir_all(&aside);
            }
        });
        for _ in 0..500 {
            // Whether it succeeds is luck here.
            let _ = emptied(&tree);
        }
        over.store(true, Ordering::Relaxed);
    });
    assert_eq!(fs::read_to_string(outside.join("sub/precious")).unwrap(), "precious");
}

/// Runs the ignored test `name` of this module behind `prefix`; whether that was possible.
fn elsewhere(prefix: &str, name: &str) -> bool {
    let victim = again(&format!("os::tree::tests::{name}"), &[]);
    let mut command = shell(&format!("exec {prefix} \"$@\""), &[], Path::new("/"));
    command.arg(victim.get_program()).args(victim.get_args()).env("DEVLYN_TEST", "1");
    let output = command.stdout(Stdio::piped()).stderr(Stdio::piped()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    let possible = text.contains("running 1 test");
    assert!(!possible || output.status.success(), "{text}");
    possible
}

#[test]
#[ignore = "a part of the test below, which runs it as a user whom modes keep out"]
fn locked() {
    if std::env::var_os("DEVLYN_TEST").is_none() {
        return;
    }
    let tree = tempfile::tempdir().unwrap();
    for (name, mode) in [("a/read-only", 0o555), ("a/closed", 0o000), ("b/blind", 0o100), ("b/b/stuck", 0o600)] {
        let directory = tree.path().join(name);
        put(&directory.join("sub/file"), "12345");
        fs::set_permissions(&directory, fs::Permissions::from_mode(mode)).unwrap();
    }
    fs::create_dir(tree.path().join("x")).unwrap();
    put(&tree.path().join("x/.git"), "");
    let mode = |name: &str| tree.path().join(name).metadata().unwrap().permissions().mode() & 0o777;
    assert!(matches!(emptied(tree.path()), Err(EmptyError::GitData(_))));
    assert_eq!((mode("a/read-only"), mode("a/closed"), mode("b/blind")), (0o555, 0, 0o100));
    fs::remove_file(tree.path().join("x/.git")).unwrap();
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o500)).unwrap();
    assert_eq!(emptied(tree.path()).unwrap(), 20);
    assert!(is_empty(tree.path()));
    assert_eq!(tree.path().metadata().unwrap().permissions().mode() & 0o777, 0o500);
    fs::set_permissions(tree.path(), fs::Permissions::from_mode(0o700)).unwrap();
}

#[test]
fn a_mode_keeps_nobody_from_what_is_his() {
    if rustix::process::geteuid().is_root() {
        elsewhere("setpriv --reuid 65534 --regid 65534 --clear-groups --", "locked");
    } else {
        assert!(elsewhere("env", "locked"));
    }
}

#[test]
#[ignore = "a part of the test below, which runs it where it may mount"]
fn mounted() {
    if std::env::var_os("DEVLYN_TEST").is_none() {
        return;
    }
    let (tree, outside) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let point = tree.path().join("a b/mounted");
    fs::create_dir_all(&point).unwrap();
    put(&tree.path().join("artifact"), "x");
    put(&outside.path().join("precious"), "precious");
    let mut mount = shell("mount --bind \"$1\" \"$2\"", &[outside.path(), &point], Path::new("/"));
    assert!(mount.status().unwrap().success());
    assert!(matches!(emptied(tree.path()), Err(EmptyError::Mounted(path)) if path == point.canonicalize().unwrap()));
    // Where it is mounted only after that look, the walk itself does not go in.
    let walk = Walk::start(tree.path(), identity(tree.path()).unwrap(), Purpose::Survey).unwrap();
    assert!(matches!(walk.run(), Err(EmptyError::Mounted(path)) if path == point));
    assert!(tree.path().join("artifact").exists() && point.join("precious").exists());
    assert!(shell("umount \"$1\"", &[&point], Path::new("/")).status().unwrap().success());
}

#[cfg(target_os = "linux")]
#[test]
fn a_mount_of_the_same_file_system_keeps_everything() {
    let allowed = shell("unshare --mount true", &[], Path::new("/")).stderr(Stdio::null()).status().unwrap();
    if allowed.success() {
        elsewhere("unshare --mount", "mounted");
    }
}
