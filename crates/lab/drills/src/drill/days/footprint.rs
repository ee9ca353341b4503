//! What a system takes of memory and disk.

use std::collections::BTreeSet;
use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use pares_load::LabError;
use pares_node::{Layout, SystemConfig};

use crate::drill::overload::memory::Sample;

/// One look.
#[derive(Clone, Copy, Debug)]
pub(super) struct Footprint {
    /// Anonymous memory of all nodes.
    pub(super) anon_mib: f64,
    /// All files in the system's directory.
    pub(super) disk_mib: f64,
}

impl Footprint {
    pub(super) fn take(layout: &Layout, config: &SystemConfig) -> Result<Self, LabError> {
        let anon_kib: u64 = Sample::take(layout, config)?.anon_kib.values().sum();
        Ok(Self { anon_mib: anon_kib as f64 / 1_024.0, disk_mib: disk_mib(layout.root())? })
    }
}

/// What the files below a directory take, each once however many names it has. They may come and go meanwhile.
pub(super) fn disk_mib(dir: &Path) -> Result<f64, LabError> {
    let (mut dirs, mut seen, mut blocks) = (vec![dir.to_owned()], BTreeSet::new(), 0);
    while let Some(dir) = dirs.pop() {
        let entries = match fs::read_dir(&dir) {
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            entries => entries.map_err(LabError::io(format!("listing {}", dir.display())))?,
        };
        for entry in entries.flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if metadata.is_dir() {
                dirs.push(entry.path());
            } else if seen.insert((metadata.dev(), metadata.ino())) {
                blocks += metadata.blocks();
            }
        }
    }
    Ok(blocks as f64 * 512.0 / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_two_names_counts_once() {
        let dir = tempfile::tempdir().unwrap();
        let (one, other) = (dir.path().join("one"), dir.path().join("below/other"));
        fs::create_dir(dir.path().join("below")).unwrap();
        fs::write(&one, vec![1; 1 << 20]).unwrap();
        fs::hard_link(&one, &other).unwrap();
        assert!((disk_mib(dir.path()).unwrap() - 1.0).abs() < 0.1);
    }
}
