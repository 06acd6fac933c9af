//! What the tests of this module share: a real repository with one allocated task.

use std::path::{Path, PathBuf};

use crate::exchange::Packet;
use crate::git::{Git, Oid, Output, Repo};
use crate::json::{Map, Value, json};
use crate::package::{Identity, sha256_hex};
use crate::store::{Layout, Receipt, make_dir, write_bytes, write_state};
use crate::view::Held;

const SPEC: &str = "---\nid: t1\nloop_id: inv\ntitle: Task\nkind: feature\nreview_requirements: [REVIEW]\n---\n# Task\n\n\
    ## Context and goal\n\nx\n\n## Requirements\n\n- R1: one\n- R2: two\n\n## Scope and constraints\n\nx\n\n\
    ## Out of scope\n\nx\n\n## Prerequisite inputs\n\nNone.\n\n<!-- devlyn:verification -->\n## Verification\n\nx\n\n\
    ## Deliverable and cleanup\n\nx\n";

/// A repository with the task `inv.t1` allocated in a worktree of its own, in which everything here works.
pub(super) struct Bench {
    _temp: tempfile::TempDir,
    root: PathBuf,
    inputs: Oid,
    packet: Packet,
}

impl Bench {
    /// A task without review requirements; `expected` is merged over one command that passes.
    pub(super) fn new(expected: &Value) -> Self {
        Self::reviewed("", expected)
    }

    /// A task whose requirement `review` needs a review.
    pub(super) fn reviewed(review: &str, expected: &Value) -> Self {
        let temp = tempfile::Builder::new().prefix("bench ✓ 한 ").tempdir().unwrap();
        let root = temp.path().canonicalize().unwrap();
        let (main, tree) = (root.join("repo"), root.join("tree"));
        make_dir(&main).unwrap();
        let git = |dir: &Path, args: &[&str]| call(dir, args).run().unwrap();
        git(&main, &["init", "-q", "-b", "main"]);
        write_bytes(&main.join(".gitignore"), b".devlyn/\nignored/\n").unwrap();
        write_bytes(&main.join("old.txt"), "in the inputs\n".repeat(9).as_bytes()).unwrap();
        git(&main, &["add", "-A"]);
        git(&main, &["commit", "-q", "-m", "base"]);
        git(&main, &["worktree", "add", "-q", "-b", "devlyn/inv/t1", tree.to_str().unwrap()]);
        let task = Identity::parse("inv.t1").unwrap();
        let mut whole = json!({"verification_commands": [{"cmd": "echo ok", "contract_refs": ["R1", "R2"]}]});
        whole.as_object_mut().unwrap().extend(expected.as_object().unwrap().clone());
        let files = [
            (task.spec_file(), SPEC.replace("REVIEW", review)),
            (task.expected_file(), whole.to_string()),
            (task.loop_id.meta_file(), "# inv\n".to_owned()),
            (task.loop_id.queue_file(), "- [ ] inv.t1 [Task](docs/specs/inv/t1/spec.md)\n".to_owned()),
        ];
        put(&tree, &files);
        let base = Repo::at(&tree).unwrap().head().unwrap().commit().unwrap();
        git(&tree, &["add", "-A"]);
        git(&tree, &["commit", "-q", "-m", "inputs"]);
        let repo = Repo::at(&tree).unwrap();
        let inputs = repo.head().unwrap().commit().unwrap();
        let dir = Layout::new(repo.common_dir()).receipt_dir(&task.key());
        make_dir(dir.path()).unwrap();
        let named = |at: usize| json!({"path": tree.join(&files[at].0), "sha256": sha256_hex(files[at].1.as_bytes())});
        let packet = json!({
            "schema_version": 1, "task": "inv.t1", "title": "Task", "kind": "feature", "worktree": tree,
            "branch": task.branch(), "receipt": dir.receipt(), "scratch": dir.scratch(),
            "allocation_base": base, "inputs_sha": inputs, "contract": named(0), "expected": named(1), "meta": named(2),
            "requirements": ["R1", "R2"], "review_requirements": [], "shared_constraints": "", "dependencies": [],
            "methodology": [], "delivery": "local-only", "evidence_dir": tree.join(".devlyn/loop"), "runner": [],
            "submission": dir.submission(), "obligations": []
        });
        write_state(&dir.packet(), &packet).unwrap();
        Self { _temp: temp, root, inputs, packet: serde_json::from_value(packet).unwrap() }
    }

    /// The owned worktree.
    pub(super) fn tree(&self) -> PathBuf {
        self.root.join("tree")
    }

    /// The packet.
    pub(super) fn packet(&self) -> &Packet {
        &self.packet
    }

    /// The repository as the main checkout sees it.
    pub(super) fn repo(&self) -> Repo {
        Repo::at(&self.root.join("repo")).unwrap()
    }

    /// The inputs commit.
    pub(super) fn inputs(&self) -> Oid {
        self.inputs
    }

    /// The head of the owned branch.
    pub(super) fn head(&self) -> Oid {
        self.repo().resolve("refs/heads/devlyn/inv/t1").unwrap().unwrap()
    }

    /// Runs `git` in the worktree.
    pub(super) fn git(&self, args: &[&str]) -> Output {
        call(&self.tree(), args).run().unwrap()
    }

    /// Writes files into the worktree.
    pub(super) fn write(&self, files: &[(&str, &str)]) {
        put(&self.tree(), files);
    }

    /// Writes files into the worktree and commits everything; the commit.
    pub(super) fn commit(&self, files: &[(&str, &str)]) -> Oid {
        self.write(files);
        self.git(&["add", "-A"]);
        self.git(&["commit", "-q", "--allow-empty", "-m", "work"]);
        self.head()
    }

    /// The receipt and its place.
    pub(super) fn held(&self) -> Held {
        let repo = self.repo();
        let dir = Layout::new(repo.common_dir()).receipt_dir(&self.packet.task.key());
        let receipt: Receipt = serde_json::from_value(json!({
            "id": dir.key(), "task": "inv.t1", "branch": "devlyn/inv/t1", "base": "main", "repository": null,
            "recovery_ref": self.packet.task.key().recovery_ref(), "common_gitdir": repo.common_dir(),
            "anchor": repo.work_dir(), "worktree": self.tree(), "baseline": self.packet.allocation_base,
            "local_only": true, "allocation": "owned"
        }))
        .unwrap();
        Held { dir, receipt }
    }

    /// Submits the head of the branch, `more` merged over it.
    pub(super) fn submit(&self, more: &Value) {
        let mut whole = json!({"schema_version": 1, "task": "inv.t1", "source_sha": self.head()});
        whole.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.submit_bytes(whole.to_string().as_bytes());
    }

    /// Submits `bytes`.
    pub(super) fn submit_bytes(&self, bytes: &[u8]) {
        write_bytes(&self.packet.submission, bytes).unwrap();
    }

    /// The object in a file of the worktree.
    pub(super) fn object(&self, path: &str) -> Map<String, Value> {
        crate::json::parse_object(&std::fs::read(self.tree().join(path)).unwrap()).unwrap()
    }
}

fn call(dir: &Path, args: &[&str]) -> Git {
    let mut call = Git::new(dir).args(args);
    for who in ["AUTHOR", "COMMITTER"] {
        call = call.env(format!("GIT_{who}_NAME"), "Test").env(format!("GIT_{who}_EMAIL"), "test@example.invalid");
    }
    call
}

fn put<P: AsRef<str>, T: AsRef<[u8]>>(tree: &Path, files: &[(P, T)]) {
    for (path, text) in files {
        let path = tree.join(path.as_ref());
        make_dir(path.parent().unwrap()).unwrap();
        write_bytes(&path, text.as_ref()).unwrap();
    }
}
