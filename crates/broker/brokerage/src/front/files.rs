//! Files of users who have their logs written by HTTP: so many each, and no more.
//!
//! Each is a copy of all that the user has ever done, and twenty commands a second would each name another one, until the disk is full. So a user has a few names, and each of them is overwritten as
//! often as he likes. What lies there is counted: a front remembers nothing of the one before it, and fronts of one machine have one folder.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use pares_broker::{Asked, dump_path};

use crate::{dump, floor};

/// Files of a user.
const FILES_MAX: usize = 16;

/// See the [module](self).
pub(super) struct UserFiles {
    logs: PathBuf,
    /// Those that are being written, or will be, by their command's place among those that arrived.
    coming: BTreeMap<u64, PathBuf>,
}

impl UserFiles {
    /// In the folders of users below `logs`.
    pub(super) fn below(logs: &Path) -> Self {
        Self { logs: logs.to_owned(), coming: BTreeMap::new() }
    }

    /// The user's file that this has written.
    pub(super) fn of(&self, asked: &Asked) -> Option<PathBuf> {
        let command = floor::dumps(asked)?;
        command.user.as_ref()?;
        Some(self.logs.join(dump_path(command.user.as_ref(), command.file.as_ref()?)))
    }

    /// Whether its user may have this file.
    pub(super) fn has_room_for(&self, file: &Path) -> bool {
        let mut all: BTreeSet<PathBuf> =
            self.coming.values().filter(|other| other.parent() == file.parent()).cloned().collect();
        // Without a folder there is none.
        let entries = file.parent().and_then(|folder| folder.read_dir().ok()).into_iter().flatten();
        all.extend(entries.flatten().map(|entry| entry.path()).filter(|path| !dump::is_part(path)));
        all.len() < FILES_MAX || all.contains(file)
    }

    /// A command that has this written has arrived.
    pub(super) fn begun(&mut self, arrival: u64, file: Option<PathBuf>) {
        self.coming.extend(file.map(|file| (arrival, file)));
    }

    /// A command has its answer: what it was to write is there, or will not be.
    pub(super) fn over(&mut self, arrival: u64) {
        self.coming.remove(&arrival);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_sixteen_files_with_those_that_are_being_written() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("users/jo");
        std::fs::create_dir_all(&folder).unwrap();
        let mut files = UserFiles::below(dir.path());
        for number in 0..FILES_MAX as u64 {
            let file = folder.join(format!("log{number}"));
            assert!(files.has_room_for(&file), "{number}");
            if number % 2 == 0 {
                std::fs::write(file, []).unwrap();
            } else {
                std::fs::write(folder.join(format!(".log{number}.7.part")), []).unwrap();
                files.begun(number, Some(file));
            }
        }
        let another = folder.join("another");
        assert!(!files.has_room_for(&another) && files.has_room_for(&folder.join("log0")));
        assert!(
            files.has_room_for(&folder.join("log1")) && files.has_room_for(&dir.path().join("users/al/log"))
        );
        files.over(1);
        assert!(
            files.has_room_for(&another),
            "it was not written, and what a front that was killed left of it is none"
        );
    }
}
