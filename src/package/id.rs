//! The names of loops and tasks, and what is derived from them. Never anything that comes from a disk.

use std::fmt;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// A name that is not of the grammar `[a-z0-9][a-z0-9-]{0,62}`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no id: write 1 to 63 of a-z, 0-9 and -, the first no dash")]
pub struct InvalidId(pub String);

fn is_id(text: &str) -> bool {
    let bytes = text.as_bytes();
    (1..=63).contains(&bytes.len())
        && bytes[0] != b'-'
        && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(String);

        impl $name {
            /// The id in `text`.
            ///
            /// # Errors
            /// [`InvalidId`] where `text` is outside the grammar.
            pub fn new(text: impl Into<String>) -> Result<Self, InvalidId> {
                let text = text.into();
                if is_id(&text) { Ok(Self(text)) } else { Err(InvalidId(text)) }
            }

            /// The id as it is written.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = InvalidId;
            fn try_from(text: String) -> Result<Self, InvalidId> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(id: $name) -> String {
                id.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id! {
    /// The name of a loop: its directory below `docs/specs/`, its capture, its record.
    LoopId
}
id! {
    /// The name of a task within its loop.
    TaskId
}

impl LoopId {
    /// The directory of the loop's package, relative to the repository's root, without a final slash.
    #[must_use]
    pub fn directory(&self) -> String {
        format!("docs/specs/{self}")
    }

    /// The loop's queue file, relative to the repository's root.
    #[must_use]
    pub fn queue_file(&self) -> String {
        format!("docs/specs/{self}/queue.md")
    }

    /// The loop's meta-prompt, relative to the repository's root.
    #[must_use]
    pub fn meta_file(&self) -> String {
        format!("docs/specs/{self}/meta.md")
    }

    /// The full name of the ref that holds the captured package.
    #[must_use]
    pub fn capture_ref(&self) -> String {
        format!("refs/devlyn/captures/{self}")
    }

    /// The identity of a task of this loop.
    #[must_use]
    pub fn task(&self, task: &TaskId) -> Identity {
        Identity { loop_id: self.clone(), task: task.clone() }
    }
}

/// A task anywhere in the repository, written `<loop>.<task>`. Never reused.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Identity {
    /// The loop.
    pub loop_id: LoopId,
    /// The task within it.
    pub task: TaskId,
}

impl Identity {
    /// The identity in `text`.
    ///
    /// # Errors
    /// [`InvalidId`] where `text` is not two ids with one dot between them.
    pub fn parse(text: &str) -> Result<Self, InvalidId> {
        let (loop_id, task) = text.split_once('.').ok_or_else(|| InvalidId(text.to_owned()))?;
        Ok(Self { loop_id: LoopId::new(loop_id)?, task: TaskId::new(task)? })
    }

    /// The branch that the task owns, without `refs/heads/`.
    #[must_use]
    pub fn branch(&self) -> String {
        format!("devlyn/{}/{}", self.loop_id, self.task)
    }

    /// The key of the task's receipt and recovery ref.
    #[must_use]
    pub fn key(&self) -> Key {
        Key::of_branch(&self.branch())
    }

    /// The task's contract, relative to the repository's root.
    #[must_use]
    pub fn spec_file(&self) -> String {
        format!("docs/specs/{}/{}/spec.md", self.loop_id, self.task)
    }

    /// The task's expected acceptance, relative to the repository's root.
    #[must_use]
    pub fn expected_file(&self) -> String {
        format!("docs/specs/{}/{}/spec.expected.json", self.loop_id, self.task)
    }
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.loop_id, self.task)
    }
}

impl TryFrom<String> for Identity {
    type Error = InvalidId;
    fn try_from(text: String) -> Result<Self, InvalidId> {
        Self::parse(&text)
    }
}

impl From<Identity> for String {
    fn from(identity: Identity) -> String {
        identity.to_string()
    }
}

/// The first 24 hex digits of the SHA-256 of an owned branch's short name: the receipt directory's name, the
/// receipt's `id` and the last part of the recovery ref.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Key(String);

impl Key {
    /// The key of the branch `branch` (no `refs/heads/`).
    #[must_use]
    pub fn of_branch(branch: &str) -> Self {
        Self(hex(&Sha256::digest(branch.as_bytes()))[..24].to_owned())
    }

    /// The 24 digits.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The full name of the ref that keeps the task's result.
    #[must_use]
    pub fn recovery_ref(&self) -> String {
        format!("refs/devlyn/completed/{}", self.0)
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The bytes as lower-case hex digits.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    use fmt::Write;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The SHA-256 of the bytes as hex digits, as every digest in a state file is written.
#[must_use]
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&Sha256::digest(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_keep_to_their_grammar() {
        for good in ["a", "0", "2--", &"l".repeat(63)] {
            assert_eq!(LoopId::new(good).unwrap().as_str(), good);
        }
        for bad in ["", "-a", "A", "a_b", "a.b", "é", &"l".repeat(64), "a\n"] {
            assert!(TaskId::new(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn an_identity_names_branch_key_and_files() {
        let identity = Identity::parse("inv.t1").unwrap();
        assert_eq!(identity.branch(), "devlyn/inv/t1");
        assert_eq!(identity.key().as_str(), &sha256_hex(b"devlyn/inv/t1")[..24]);
        assert_eq!(identity.spec_file(), "docs/specs/inv/t1/spec.md");
        for bad in ["inv", "inv.", ".t1", "inv.t1.t2", "Inv.t1"] {
            assert!(Identity::parse(bad).is_err(), "{bad:?}");
        }
    }
}
