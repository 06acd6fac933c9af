//! A repository that is open: where it is, what it is made of, its configuration and its `HEAD`.

use std::cell::{OnceCell, RefCell};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use gix::bstr::ByteSlice;

use super::hooked::Borrowed;
use super::refs::{Backend, Updater};
use super::{Author, Git, GitError, Oid, Result};

/// The extensions that this program, or the library inside it, knows how to live with.
const KNOWN_EXTENSIONS: [&str; 8] = [
    "noop",
    "preciousobjects",
    "partialclone",
    "worktreeconfig",
    "objectformat",
    "refstorage",
    "relativeworktrees",
    "compatobjectformat",
];

/// A repository, seen from one of its worktrees.
pub struct Repo {
    pub(super) inner: gix::Repository,
    common: PathBuf,
    git_dir: PathBuf,
    work: PathBuf,
    pub(super) backend: Backend,
    pub(super) updater: RefCell<Option<Updater>>,
    pub(super) author: OnceCell<Author>,
    /// The objects that this process knows to be flushed.
    pub(super) on_disk: RefCell<BTreeSet<Oid>>,
    /// Whether it has no checkout; then the top is its Git directory. Only a hook or a judge sees such a one.
    bare: bool,
    /// Where more objects are than in its own directory, as Git tells a hook.
    pub(super) borrowed: Option<Borrowed>,
}

/// What `HEAD` is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Head {
    /// On a branch (its short name) that has no commit yet.
    Unborn(String),
    /// On a branch (its short name), at a commit.
    Branch(String, Oid),
    /// At a commit, on no branch.
    Detached(Oid),
}

impl Head {
    /// The commit, where there is one.
    #[must_use]
    pub fn commit(&self) -> Option<Oid> {
        match self {
            Self::Unborn(_) => None,
            Self::Branch(_, id) | Self::Detached(id) => Some(*id),
        }
    }

    /// The short name of the branch, where there is one.
    #[must_use]
    pub fn branch(&self) -> Option<&str> {
        match self {
            Self::Unborn(name) | Self::Branch(name, _) => Some(name),
            Self::Detached(_) => None,
        }
    }
}

impl std::fmt::Debug for Repo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Repo").field("common", &self.common).field("work", &self.work).finish_non_exhaustive()
    }
}

impl Repo {
    /// The repository that the current directory `dir` lies in, as Git would find it: `GIT_DIR` and its kin count.
    ///
    /// # Errors
    /// Where there is none, it is bare, it belongs to another user, or uses an extension that we do not know.
    pub fn from_current_dir(dir: &Path) -> Result<Self> {
        Self::open(dir, true)?.with_checkout()
    }

    /// The repository that `dir` lies in, whatever the environment says.
    ///
    /// # Errors
    /// As [`Repo::from_current_dir`].
    pub fn at(dir: &Path) -> Result<Self> {
        Self::open(dir, false)?.with_checkout()
    }

    fn with_checkout(self) -> Result<Self> {
        if self.bare { Err(GitError::Bare(self.git_dir)) } else { Ok(self) }
    }

    pub(super) fn open(dir: &Path, environment: bool) -> Result<Self> {
        use gix::discover::upwards::Options as Upwards;
        let dir = std::path::absolute(dir).map_err(GitError::io(dir))?;
        let options = || {
            let options = gix::open::Options::default().bail_if_untrusted(true).cli_overrides(config_parameters());
            // As for the `git` of the tests.
            #[cfg(test)]
            let options = options.permissions(gix::open::Permissions {
                config: gix::open::permissions::Config::isolated(),
                ..gix::open::Permissions::all()
            });
            options
        };
        let trust = gix::sec::trust::Mapping { full: options(), reduced: options() };
        let upwards = Upwards { match_ceiling_dir_or_error: false, ..Default::default() };
        let found = if environment && in_git_dir(&dir) {
            // The library would look for `./.git` where Git says that `.` is the Git directory.
            gix::ThreadSafeRepository::open_opts(&dir, options())
        } else if environment {
            gix::ThreadSafeRepository::discover_with_environment_overrides_opts(&dir, upwards, trust)
        } else {
            gix::ThreadSafeRepository::discover_opts(&dir, upwards, trust)
        };
        let mut inner = found.map_err(|error| not_opened(&dir, &error))?.to_thread_local();
        inner.clear_namespace();
        // The library applies this variable to every repository that it opens; it means the caller's alone.
        if !environment && std::env::var_os("GIT_WORK_TREE").is_some() {
            let (found, _) = gix::discover::upwards(&dir).map_err(|error| not_opened(&dir, &error))?;
            let (_, work) = found.into_repository_and_work_tree_directories();
            inner.set_workdir(work).map_err(GitError::gix)?;
        }
        // Deltas of neighbouring captures share their bases: unpacking each of them once makes a thousand loops cheap.
        inner.object_cache_size_if_unset(4 << 20);
        let common = std::fs::canonicalize(inner.common_dir()).map_err(GitError::io(inner.common_dir()))?;
        let git_dir = std::fs::canonicalize(inner.git_dir()).map_err(GitError::io(inner.git_dir()))?;
        let work = inner.workdir().map(|work| std::fs::canonicalize(work).map_err(GitError::io(work))).transpose()?;
        let (bare, work) = (work.is_none(), work.unwrap_or_else(|| git_dir.clone()));
        let backend = backend(&inner)?;
        let (updater, author, on_disk) = (RefCell::new(None), OnceCell::new(), RefCell::default());
        Ok(Self { inner, common, git_dir, work, backend, updater, author, on_disk, bare, borrowed: None })
    }

    /// The common Git directory, absolute and without links, the same from every worktree.
    #[must_use]
    pub fn common_dir(&self) -> &Path {
        &self.common
    }

    /// The Git directory of this worktree, absolute and without links.
    #[must_use]
    pub fn git_dir(&self) -> &Path {
        &self.git_dir
    }

    /// The top of this worktree, absolute and without links.
    #[must_use]
    pub fn work_dir(&self) -> &Path {
        &self.work
    }

    /// The top of the main worktree; of this one where the repository's main directory is bare.
    #[must_use]
    pub fn main_work_dir(&self) -> PathBuf {
        let main = self.inner.main_repo().ok().and_then(|main| main.workdir().map(PathBuf::from));
        let main = main.map(|path| std::fs::canonicalize(&path).unwrap_or(path));
        main.unwrap_or_else(|| self.work.clone())
    }

    /// Whether it has no checkout; only a hook or a judge sees such a one.
    #[must_use]
    pub fn is_bare(&self) -> bool {
        self.bare
    }

    /// A call of `git` on this worktree, whatever the caller's environment named.
    #[must_use]
    pub fn git(&self) -> Git {
        let mut call = Git::new(&self.work).env("GIT_DIR", &self.git_dir);
        if !self.bare {
            call = call.env("GIT_WORK_TREE", &self.work);
        }
        match &self.borrowed {
            Some(borrowed) => borrowed.environment().fold(call, |call, (key, value)| call.env(key, value)),
            None => call,
        }
    }

    /// The configured value of `key`, the last one where there are several.
    #[must_use]
    pub fn config(&self, key: &str) -> Option<String> {
        self.inner.config_snapshot().string(key).map(|value| value.to_str_lossy().into_owned())
    }

    /// Whether the configuration says yes to `key`.
    #[must_use]
    pub fn config_is_true(&self, key: &str) -> bool {
        self.inner.config_snapshot().boolean(key).unwrap_or(false)
    }

    /// What `HEAD` of this worktree is now.
    ///
    /// # Errors
    /// Where it cannot be read.
    pub fn head(&self) -> Result<Head> {
        match self.backend {
            Backend::Git => self.head_by_git(),
            Backend::Files => {
                let head = self.inner.head().map_err(GitError::gix)?;
                Ok(match head.kind {
                    gix::head::Kind::Unborn(name) => Head::Unborn(name.shorten().to_str_lossy().into_owned()),
                    gix::head::Kind::Detached { target, .. } => Head::Detached(Oid(target)),
                    gix::head::Kind::Symbolic(reference) => {
                        let name = reference.name.shorten().to_str_lossy().into_owned();
                        match self.resolve(&reference.name.as_bstr().to_str_lossy())? {
                            Some(id) => Head::Branch(name, id),
                            None => Head::Unborn(name),
                        }
                    }
                })
            }
        }
    }

    fn head_by_git(&self) -> Result<Head> {
        let name = self.git().args(["symbolic-ref", "-q", "HEAD"]).output()?;
        let commit = self.git().args(["rev-parse", "-q", "--verify", "HEAD"]).output()?;
        let id = (commit.code == Some(0)).then(|| commit.line().parse().map_err(GitError::Object)).transpose()?;
        let name = (name.code == Some(0)).then(|| name.line().trim_start_matches("refs/heads/").to_owned());
        match (name, id) {
            (Some(name), Some(id)) => Ok(Head::Branch(name, id)),
            (Some(name), None) => Ok(Head::Unborn(name)),
            (None, Some(id)) => Ok(Head::Detached(id)),
            (None, None) => Err(GitError::Object(format!("HEAD of {} cannot be read", self.work.display()))),
        }
    }
}

/// Whether Git runs us in the Git directory itself, as it does for the hooks of a server.
fn in_git_dir(dir: &Path) -> bool {
    let here =
        std::env::var_os("GIT_DIR").filter(|named| !named.is_empty()).map(|named| dir.join(named).canonicalize());
    std::env::var_os("GIT_WORK_TREE").is_none() && here.is_some_and(|here| here.ok() == dir.canonicalize().ok())
}

/// How references are stored here, and whether all of the repository is of a kind that we know.
fn backend(inner: &gix::Repository) -> Result<Backend> {
    let snapshot = inner.config_snapshot();
    if snapshot.integer("core.repositoryFormatVersion").unwrap_or(0) >= 1
        && let Some(sections) = snapshot.plumbing().sections_by_name("extensions")
    {
        for name in sections.flat_map(|section| section.body().value_names().collect::<Vec<_>>()) {
            if !KNOWN_EXTENSIONS.contains(&name.to_ascii_lowercase().as_str()) {
                return Err(GitError::Extension(name));
            }
        }
    }
    let files = snapshot.string("extensions.refStorage").is_none_or(|value| value == "files");
    Ok(if files { Backend::Files } else { Backend::Git })
}

fn not_opened(dir: &Path, error: &dyn std::fmt::Display) -> GitError {
    match std::fs::metadata(dir) {
        Ok(meta) if !meta.is_dir() => return GitError::io(dir)(std::io::ErrorKind::NotADirectory.into()),
        Err(error) => return GitError::io(dir)(error),
        Ok(_) => {}
    }
    let text = format!("{error:#}");
    let lower = text.to_lowercase();
    if lower.contains("nogitrepository")
        || lower.contains("could not find a git repository")
        || lower.contains("no git repository")
        || lower.contains("not a git repository")
    {
        GitError::NotARepository(dir.to_owned())
    } else if lower.contains("trust") || lower.contains("ownership") || lower.contains("unsafe") {
        let top = dir.ancestors().find(|above| above.join(".git").exists()).unwrap_or(dir);
        GitError::Untrusted(top.to_owned())
    } else {
        GitError::Gix(format!("{} cannot be opened as a Git repository: {text}", dir.display()))
    }
}

/// The settings of `git -c …`, which reach us quoted in one variable that the library does not read.
fn config_parameters() -> Vec<String> {
    std::env::var_os("GIT_CONFIG_PARAMETERS").map_or_else(Vec::new, |text| unquoted(&text.to_string_lossy()))
}

/// The words of a line in which each is put in single quotes, as Git hands settings down: `'a'='b' 'c=d'`.
fn unquoted(text: &str) -> Vec<String> {
    let (mut words, mut word, mut within, mut begun) = (Vec::new(), String::new(), false, false);
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (c, within) {
            ('\'', _) => (within, begun) = (!within, true),
            ('\\', false) => word.extend(chars.next()),
            (c, false) if c.is_whitespace() => {
                if begun {
                    words.push(std::mem::take(&mut word));
                }
                begun = false;
            }
            (c, _) => word.push(c),
        }
    }
    if begun {
        words.push(word);
    }
    words
}

#[cfg(test)]
mod tests {
    use super::unquoted;

    #[test]
    fn settings_of_the_command_line_are_read_in_both_forms() {
        assert_eq!(unquoted("'a.b'='c d' 'e.f=g'"), ["a.b=c d", "e.f=g"]);
        assert_eq!(unquoted(r"'a.b=it'\''s'"), ["a.b=it's"]);
        assert!(unquoted("").is_empty());
    }
}
