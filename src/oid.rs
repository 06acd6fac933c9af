//! The id of an object: a word that names, and nothing that reads.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The id of an object, SHA-1 or SHA-256, always whole.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Oid(pub(crate) gix::ObjectId);

impl Oid {
    /// The all-zero id of this one's kind, which stands for "no object" in a reference transaction.
    #[must_use]
    pub fn null_like(self) -> Self {
        Self(gix::ObjectId::null(self.0.kind()))
    }

    /// The tree that holds nothing, with an id of this one's kind.
    #[must_use]
    pub fn empty_tree_like(self) -> Self {
        Self(gix::ObjectId::empty_tree(self.0.kind()))
    }

    /// Whether it is the all-zero id.
    #[must_use]
    pub fn is_null(self) -> bool {
        self.0.is_null()
    }
}

impl FromStr for Oid {
    type Err = String;
    fn from_str(text: &str) -> Result<Self, String> {
        let whole =
            matches!(text.len(), 40 | 64) && text.bytes().all(|b| b.is_ascii_hexdigit() && !b.is_ascii_uppercase());
        if !whole {
            return Err(format!("{text:?} is no whole object id"));
        }
        gix::ObjectId::from_hex(text.as_bytes()).map(Self).map_err(|error| error.to_string())
    }
}

impl TryFrom<String> for Oid {
    type Error = String;
    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Oid> for String {
    fn from(id: Oid) -> String {
        id.to_string()
    }
}

impl fmt::Display for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.to_hex().fmt(f)
    }
}

impl fmt::Debug for Oid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}
