//! What is mounted where, as far as it concerns one tree. Reads only; never mounts.

use std::ffi::OsString;
use std::io;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

/// One mount of a mount namespace.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Mount {
    /// The file system, as the kernel numbers it (`8:1`).
    device: Vec<u8>,
    /// The directory of the file system that is shown.
    root: PathBuf,
    /// Where it is shown.
    point: PathBuf,
}

/// The first mount strictly below `tree`, where there is one.
///
/// # Errors
/// Where `tree` cannot be resolved, or, on systems without `/proc`, cannot be walked.
pub fn mounted_below(tree: &Path) -> io::Result<Option<PathBuf>> {
    let tree = tree.canonicalize()?;
    match std::fs::read("/proc/self/mountinfo") {
        Ok(bytes) => Ok(parse(&bytes).into_iter().map(|m| m.point).find(|p| p.starts_with(&tree) && *p != tree)),
        Err(_) if cfg!(not(target_os = "linux")) => other_device(&tree),
        Err(error) => Err(error),
    }
}

/// The paths at which `tree` or a part of it is to be seen in the mount namespace that `mountinfo` describes: itself
/// (`own`, where the namespace is ours) and every bind mount of what holds it or of what it holds.
#[cfg(target_os = "linux")]
pub(super) fn views(tree: &Path, own: &[u8], mountinfo: &[u8]) -> Vec<PathBuf> {
    let Some((device, inside)) = locate(&parse(own), tree) else { return Vec::new() };
    let mut views = Vec::new();
    for mount in parse(mountinfo).into_iter().filter(|mount| mount.device == device) {
        if let Ok(rest) = inside.strip_prefix(&mount.root) {
            views.push(mount.point.join(rest));
        } else if mount.root.starts_with(&inside) {
            views.push(mount.point);
        }
    }
    views.sort();
    views.dedup();
    views
}

/// The file system that holds `path`, and the path within it.
#[cfg(target_os = "linux")]
fn locate(mounts: &[Mount], path: &Path) -> Option<(Vec<u8>, PathBuf)> {
    // Of mounts at one point the last one hides the others, and `max_by_key` takes the last of equals.
    let mount = mounts
        .iter()
        .filter(|mount| path.starts_with(&mount.point))
        .max_by_key(|mount| mount.point.components().count())?;
    let rest = path.strip_prefix(&mount.point).ok()?;
    Some((mount.device.clone(), mount.root.join(rest)))
}

fn parse(mountinfo: &[u8]) -> Vec<Mount> {
    mountinfo.split(|b| *b == b'\n').filter_map(parse_line).collect()
}

fn parse_line(line: &[u8]) -> Option<Mount> {
    // `36 35 98:0 /root /point options …`
    let mut fields = line.split(|b| *b == b' ').skip(2);
    let device = fields.next()?.to_vec();
    let (root, point) = (path(fields.next()?), path(fields.next()?));
    point.is_absolute().then_some(Mount { device, root, point })
}

/// The path that the kernel wrote with blanks, tabs, line feeds and backslashes as `\ooo`.
fn path(field: &[u8]) -> PathBuf {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((first, tail)) = rest.split_first() {
        match (first, tail) {
            (b'\\', [a @ b'0'..=b'3', b @ b'0'..=b'7', c @ b'0'..=b'7', tail @ ..]) => {
                bytes.push(((a - b'0') << 6) | ((b - b'0') << 3) | (c - b'0'));
                rest = tail;
            }
            _ => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    OsString::from_vec(bytes).into()
}

/// The first directory below `tree` that lies on another device than its parent.
fn other_device(tree: &Path) -> io::Result<Option<PathBuf>> {
    use std::os::unix::fs::MetadataExt;
    let device = tree.symlink_metadata()?.dev();
    let mut waiting = vec![tree.to_owned()];
    while let Some(directory) = waiting.pop() {
        for entry in directory.read_dir()? {
            let entry = entry?;
            let metadata = entry.metadata()?;
            if metadata.dev() != device {
                return Ok(Some(entry.path()));
            }
            if metadata.is_dir() {
                waiting.push(entry.path());
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(target_os = "linux")]
    const OWN: &[u8] = b"1 0 8:1 / / rw - ext4 /dev/sda rw\n\
        2 1 0:5 / /proc rw - proc proc rw\n\
        3 1 8:2 /sub /home/a\\040b rw - ext4 /dev/sdb rw\n\
        4 1 8:2 /sub/tree/deep /mnt/part rw - ext4 /dev/sdb rw\n\
        5 1 8:2 / /mnt/whole rw - ext4 /dev/sdb rw\n\
        6 1 8:1 /etc /mnt/etc rw - ext4 /dev/sda rw\nnonsense\n";

    #[test]
    fn the_kernel_s_escapes_are_undone() {
        assert_eq!(path(br"/a\040b\011c\134d\012"), Path::new("/a b\tc\\d\n"));
        assert_eq!(path(br"/a\09\"), Path::new(r"/a\09\"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_tree_is_seen_through_every_mount_of_it() {
        let tree = Path::new("/home/a b/tree");
        assert_eq!(locate(&parse(OWN), tree).unwrap(), (b"8:2".to_vec(), "/sub/tree".into()));
        let expected: Vec<PathBuf> = vec![tree.into(), "/mnt/part".into(), "/mnt/whole/sub/tree".into()];
        assert_eq!(views(tree, OWN, OWN), expected);
        let container = b"9 8 0:77 / / rw - overlay o rw\n10 9 8:2 /sub/tree /app rw - ext4 /dev/sdb rw\n";
        assert_eq!(views(tree, OWN, container), [PathBuf::from("/app")]);
        assert!(views(Path::new("/etc/x"), OWN, container).is_empty());
    }

    #[test]
    fn only_what_lies_strictly_below_counts() {
        assert_eq!(mounted_below(Path::new("/proc/self/fdinfo")).unwrap(), None);
        if cfg!(target_os = "linux") {
            assert!(mounted_below(Path::new("/")).unwrap().is_some());
        }
        let empty = tempfile::tempdir().unwrap();
        assert_eq!(mounted_below(empty.path()).unwrap(), None);
        std::fs::create_dir_all(empty.path().join("a/b")).unwrap();
        assert_eq!(other_device(empty.path()).unwrap(), None);
        assert!(mounted_below(&empty.path().join("nowhere")).is_err());
    }
}
