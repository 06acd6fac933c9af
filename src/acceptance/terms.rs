//! What a task was asked: the contract and the expected acceptance as the inputs commit holds them, held against the
//! digests that its packet names. What lies in the worktree is never read for it.

use super::{AcceptanceError, Result};
use crate::exchange::{Digests, Packet};
use crate::git::{Oid, Repo};
use crate::package::{Contract, Expected, Identity, sha256_hex};

/// What a candidate is judged by.
#[derive(Debug)]
pub(super) struct Terms {
    /// `spec.md`.
    pub(super) contract: Contract,
    /// `spec.expected.json`.
    pub(super) expected: Expected,
}

impl Terms {
    /// What the task of `packet` was asked.
    ///
    /// # Errors
    /// Where a committed file is not there, is not what the packet names, or has a fault.
    pub(super) fn read(repo: &Repo, packet: &Packet) -> Result<Self> {
        let (task, inputs) = (&packet.task, packet.inputs_sha);
        let files = Files::read(repo, task, inputs)?;
        let wrong = |file: String, why: String| AcceptanceError::Contract { file, inputs, why };
        let (named, found) = (Digests::of(packet), files.digests());
        for (file, named, found) in [
            (task.spec_file(), &named.contract, &found.contract),
            (task.expected_file(), &named.expected, &found.expected),
            (task.loop_id.meta_file(), &named.meta, &found.meta),
        ] {
            if named != found {
                return Err(wrong(file, format!("its packet names the digest {named:?}, its bytes have {found}")));
            }
        }
        let first = |faults: Vec<crate::package::Fault>| faults.first().map_or_else(String::new, ToString::to_string);
        let contract =
            Contract::parse(task, &files.contract).map_err(|faults| wrong(task.spec_file(), first(faults)))?;
        let expected = Expected::parse(task, &files.expected, &contract)
            .map_err(|faults| wrong(task.expected_file(), first(faults)))?;
        Ok(Self { contract, expected })
    }
}

/// The files that a task is judged by.
struct Files {
    contract: Vec<u8>,
    expected: Vec<u8>,
    meta: Vec<u8>,
}

impl Files {
    fn read(repo: &Repo, task: &Identity, inputs: Oid) -> Result<Self> {
        let file = |file: String| match repo.file(inputs, &file)? {
            Some(blob) => Ok(blob.data),
            None => Err(AcceptanceError::Contract { file, inputs, why: "is not there".to_owned() }),
        };
        Ok(Self {
            contract: file(task.spec_file())?,
            expected: file(task.expected_file())?,
            meta: file(task.loop_id.meta_file())?,
        })
    }

    fn digests(&self) -> Digests {
        Digests {
            contract: sha256_hex(&self.contract),
            expected: sha256_hex(&self.expected),
            meta: sha256_hex(&self.meta),
        }
    }
}

/// The digests of what `task` is judged by, as the commit `inputs` holds it.
///
/// # Errors
/// Where one of the files is not there.
pub(super) fn committed_digests(repo: &Repo, task: &Identity, inputs: Oid) -> Result<Digests> {
    Ok(Files::read(repo, task, inputs)?.digests())
}
