//! The files of a system that are copied besides its logs.

use std::collections::BTreeMap;
use std::io;
use std::path::Path;

use pares_mirror::{Class, class_of};

use super::{LogName, Scope};
use crate::world::{File, World};

/// Of longer checkpoints only the length is compared: each has a name of its own and is never written again.
const COMPARED_MAX: u64 = 64 << 10;

/// Which version of a file this is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Version {
    pub(super) bytes: u64,
    /// CRC-32C of what it says; 0 for a longer checkpoint.
    pub(super) digest: u32,
}

/// All files there are that are copied, of a system with these logs.
pub(super) fn list<W: World>(
    world: &W,
    logs: impl Iterator<Item = LogName>,
    scope: &Scope,
) -> io::Result<BTreeMap<String, Version>> {
    let recorders = logs.filter(|log| matches!(log, LogName::Recorder(_)));
    let folders = ["", "shut-out/", "left-out/"].map(str::to_owned).into_iter();
    let mut found = BTreeMap::new();
    for folder in folders.chain(recorders.map(|log| format!("{log}/checkpoints/"))) {
        for name in world.list(Path::new(&folder))? {
            let path = format!("{folder}{name}");
            if scope.class_of(&path).is_none() {
                continue;
            }
            match version(world, &path) {
                Ok(version) => _ = found.insert(path, version),
                // Removed meanwhile, or no file.
                Err(error)
                    if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::IsADirectory) => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(found)
}

fn version<W: World>(world: &W, path: &str) -> io::Result<Version> {
    let file = world.open_file(Path::new(path))?;
    let bytes = file.bytes()?;
    if bytes > COMPARED_MAX && class_of(path) == Some(Class::Checkpoint) {
        return Ok(Version { bytes, digest: 0 });
    }
    let mut text = vec![0; bytes as usize];
    file.fill(&mut text, 0)?;
    Ok(Version { bytes, digest: crc32c::crc32c(&text) })
}
