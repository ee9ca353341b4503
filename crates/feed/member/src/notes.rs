//! Numbers that outlive processes: small files with a checksum, written whole or not at all.
//!
//! ```text
//!   DIR/epoch      7 8f2b1c55        the number, and a checksum of it
//! ```

use std::io;
use std::path::Path;

use pares_roles::World;
use pares_roles::world::File;

fn text(number: u64) -> String {
    format!("{number} {:08x}\n", crc32c::crc32c(number.to_string().as_bytes()))
}

/// Notes a number, durably.
///
/// # Errors
/// As the system says; the old note is untouched then.
pub(crate) fn write(world: &impl World, name: &str, number: u64) -> io::Result<()> {
    let (path, unfinished) = (Path::new(name), Path::new(name).with_added_extension("new"));
    let mut file = world.create_file(&unfinished)?;
    file.append(text(number).as_bytes())?;
    file.sync()?;
    world.rename(&unfinished, path)?;
    world.sync_dir(Path::new(""))
}

/// The number noted; none if there is none that can be believed.
pub(crate) fn read(world: &impl World, name: &str) -> Option<u64> {
    let file = world.open_file(Path::new(name)).ok()?;
    let mut bytes = vec![0; usize::try_from(file.bytes().ok()?).ok().filter(|&bytes| bytes < 64)?];
    file.fill(&mut bytes, 0).ok()?;
    let said = String::from_utf8(bytes).ok()?;
    let number = said.split_once(' ')?.0.parse().ok()?;
    (text(number) == said).then_some(number)
}
