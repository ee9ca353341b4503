//! Where a store is kept, so that it can be opened again.

use std::path::Path;
use std::time::{Duration, Instant};

use pares_store::postgres::{Options, PostgresStore};
use pares_store::{Applied, Memory, RedbStore, Store, StoreError};
use pares_wice::{Key, Value, Version};
use tempfile::TempDir;

use pares_testbed::postgres::server;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Memory,
    Redb,
    Postgres,
}

pub(crate) struct Place {
    pub(crate) kind: Kind,
    pub(crate) address: String,
    memory: Memory,
    _directory: TempDir,
}

impl Place {
    /// A new, empty one; `None` if it cannot be had on this machine.
    pub(crate) fn new(kind: Kind) -> Option<Self> {
        let directory = tempfile::tempdir().unwrap();
        let address = match kind {
            Kind::Postgres => server()?.database(),
            _ => directory.path().to_str().unwrap().to_owned(),
        };
        Some(Self { kind, address, memory: Memory::default(), _directory: directory })
    }

    /// A second one of the same kind.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.kind).unwrap()
    }

    pub(crate) fn try_open(&self) -> Result<Box<dyn Store>, StoreError> {
        match self.kind {
            Kind::Memory => Ok(Box::new(self.memory.clone())),
            kind => open(kind, &self.address),
        }
    }

    /// Opens it. Where a process that has just died had it open, the server may need a moment to notice.
    pub(crate) fn open(&self) -> Box<dyn Store> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.try_open() {
                Err(StoreError::InUse(_)) if Instant::now() < deadline => {
                    std::thread::sleep(Duration::from_millis(5));
                }
                opened => return opened.unwrap(),
            }
        }
    }
}

pub(crate) fn open(kind: Kind, address: &str) -> Result<Box<dyn Store>, StoreError> {
    Ok(match kind {
        Kind::Memory => Box::new(Memory::default()),
        Kind::Redb => Box::new(RedbStore::open(Path::new(address))?),
        Kind::Postgres => Box::new(PostgresStore::open(Options::new(address))?),
    })
}

/// A version that writes these items.
pub(crate) fn version(number: u64, writes: &[(&str, Option<&str>)]) -> Applied {
    let writes = writes.iter().map(|(key, value)| (Key::from(*key), value.map(Value::from))).collect();
    Applied { version: Version(number), writes }
}
