//! A disk small enough to be filled, under one log.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::error::{LabError, LabResult};

/// A file system of its own, mounted until this is dropped.
pub struct SmallDisk {
    at: PathBuf,
}

impl SmallDisk {
    /// Mounts it on `at`, which is created, with room for `mib` MiB.
    ///
    /// # Errors
    /// [`LabError::Skipped`] if this machine does not let us mount.
    pub fn mount(at: &Path, mib: u64) -> Result<Self, LabError> {
        std::fs::create_dir_all(at).map_err(LabError::io(format!("creating {}", at.display())))?;
        let size = format!("size={mib}m");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(at).stderr(Stdio::null());
        match mount.status().is_ok_and(|status| status.success()) {
            true => Ok(Self { at: at.to_owned() }),
            false => Err(LabError::Skipped(
                "this needs permission to mount a small tmpfs under a log: run it as root".into(),
            )),
        }
    }

    /// Uses up all room that is left.
    ///
    /// # Errors
    /// If it cannot be written for another reason than that it is full.
    pub fn fill(&self) -> LabResult {
        use std::io::Write;
        let path = self.filler();
        let fail = || LabError::io(format!("filling {}", path.display()));
        let mut filler = std::fs::File::create(&path).map_err(fail())?;
        loop {
            match filler.write_all(&[1; 4_096]) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::StorageFull => return Ok(()),
                Err(error) => return Err(fail()(error)),
            }
        }
    }

    /// Gives back what [`SmallDisk::fill`] took.
    ///
    /// # Errors
    /// If it was not filled.
    pub fn make_room(&self) -> LabResult {
        let path = self.filler();
        std::fs::remove_file(&path).map_err(LabError::io(format!("removing {}", path.display())))
    }

    fn filler(&self) -> PathBuf {
        self.at.join("filler")
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        // Lazily: a process may still use it.
        let _ = Command::new("umount").arg("-l").arg(&self.at).stderr(Stdio::null()).status();
    }
}
