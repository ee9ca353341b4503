//! Writes the seeds of a target into its corpus, where libFuzzer begins: `write_seeds TARGET FOLDER`.
//! `cargo xtask fuzz` calls it.

use std::io::{Error, Result};
use std::path::PathBuf;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (Some(name), Some(folder)) = (arguments.next(), arguments.next().map(PathBuf::from)) else {
        return Err(Error::other("usage: write_seeds TARGET FOLDER"));
    };
    let target = pares_fuzz::TARGETS.iter().find(|target| target.name == name);
    let target = target.ok_or_else(|| Error::other(format!("no target is called {name}")))?;
    std::fs::create_dir_all(&folder)?;
    for (number, seed) in (target.seeds)().iter().enumerate() {
        std::fs::write(folder.join(format!("seed-{number}")), seed)?;
    }
    Ok(())
}
