//! Small files that are there whole or not at all: written under another name, synced, renamed.

use std::io;
use std::path::Path;

use serde::de::DeserializeOwned;

use crate::NodeError;
use crate::world::{File, World};

/// Puts a file there, durably, in the place of one that may be there. Two who write the same path at once need a lock.
///
/// # Errors
/// As the system says; the old file is untouched then, unless only its name may not be durable.
pub(crate) fn write(world: &impl World, path: &Path, text: &str) -> io::Result<()> {
    let unfinished = path.with_added_extension("new");
    assert_ne!(unfinished.as_path(), path, "a file that is not whole has another name");
    let mut file = world.create_file(&unfinished)?;
    file.append(text.as_bytes())?;
    file.sync()?;
    world.rename(&unfinished, path)?;
    world.sync_dir(path.parent().unwrap_or(Path::new("")))
}

/// All that a file says.
///
/// # Errors
/// As the system says; `NotFound` if there is none.
pub(crate) fn read(world: &impl World, path: &Path) -> io::Result<String> {
    let file = world.open_file(path)?;
    let mut bytes = vec![0; usize::try_from(file.bytes()?).map_err(io::Error::other)?];
    file.fill(&mut bytes, 0)?;
    String::from_utf8(bytes).map_err(io::Error::other)
}

/// What a note says; `None` if there is none.
///
/// # Errors
/// [`NodeError::Read`] if it cannot be read, or says nothing that this build understands.
pub(crate) fn read_note<T: DeserializeOwned>(
    world: &impl World,
    path: &Path,
) -> Result<Option<T>, NodeError> {
    let understood = match read(world, path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        text => text.and_then(|text| toml::from_str(&text).map_err(io::Error::other)),
    };
    understood.map(Some).map_err(|source| NodeError::Read { path: path.into(), source })
}
