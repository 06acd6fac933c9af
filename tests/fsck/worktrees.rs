//! Worktrees: gone, unknown to Git, exchanged, on another branch, locked.

use super::{Sandbox, Spoils, clean, finds, mended, worked};

/// The directory that Git has of a task's worktree.
fn registration(sandbox: &Sandbox, task: &str) -> std::path::PathBuf {
    let receipt = sandbox.receipt(task);
    receipt["worktree_gitdir"].as_str().unwrap().into()
}

#[test]
fn worktrees_of_open_work_are_needed() {
    let sandbox = worked();
    let place = sandbox.worktree("c.t1");
    let (path, spoils) = (place.to_str().unwrap(), &mut Spoils::new(&sandbox));
    spoils.gone(&place);
    finds(&sandbox, "error", path, "is gone, and Git still has it on record");
    spoils.gone(&registration(&sandbox, "c.t1"));
    finds(&sandbox, "error", path, "the worktree of c.t1 is gone");
    spoils.restore();
    spoils.gone(&registration(&sandbox, "c.t1"));
    finds(&sandbox, "error", path, "is there, and Git does not know it");
    spoils.restore();
    spoils.gone(&place);
    sandbox.run("cp", &sandbox.root, &["-a", "aside-0", path]).ok();
    finds(&sandbox, "error", path, "is not the worktree that was allocated");
    spoils.restore();
    sandbox.run("git", &place, &["switch", "-q", "-c", "other"]).ok();
    mended(&sandbox, "error", path, "has other checked out, and not devlyn/c/t1");
    sandbox.run("git", &place, &["switch", "-q", "--detach"]).ok();
    mended(&sandbox, "error", path, "has no branch checked out");
}

#[test]
fn worktrees_of_delivered_work_are_their_owner_s() {
    let sandbox = worked();
    let place = sandbox.worktree("b.t1");
    let (path, spoils) = (place.to_str().unwrap(), &mut Spoils::new(&sandbox));
    sandbox.run("git", &place, &["switch", "-q", "--detach"]).ok();
    clean(&sandbox);
    sandbox.git(&["worktree", "lock", "--reason", "mine", path]);
    clean(&sandbox);
    sandbox.git(&["worktree", "unlock", path]);
    sandbox.git(&["worktree", "lock", "--reason", "git-devlyn is making it", path]);
    mended(&sandbox, "warning", path, "is locked as if it were being made");
    spoils.gone(&registration(&sandbox, "b.t1"));
    finds(&sandbox, "warning", path, "is there, and Git does not know it");
    spoils.restore();
    std::fs::remove_dir_all(&place).unwrap();
    mended(&sandbox, "warning", path, "is gone, and Git still has it on record");

    let half = sandbox.common().join("worktrees/half");
    std::fs::create_dir_all(&half).unwrap();
    std::fs::write(half.join("locked"), "git-devlyn is making it").unwrap();
    mended(&sandbox, "warning", "worktrees/half", "a worktree that was never made");
    let other = sandbox.root.join("other");
    sandbox.git(&[
        "worktree",
        "add",
        "-q",
        "--detach",
        "--lock",
        "--reason",
        "git-devlyn is making it",
        other.to_str().unwrap(),
    ]);
    mended(&sandbox, "warning", "other", "whose making was interrupted");
    // Somebody else's worktrees are none of our business, whatever their state.
    sandbox.git(&["worktree", "add", "-q", "--detach", other.to_str().unwrap()]);
    std::fs::remove_dir_all(&other).unwrap();
    clean(&sandbox);
}
