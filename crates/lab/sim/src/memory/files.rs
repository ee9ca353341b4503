//! Files in memory, and what a loss of power leaves of them.
//!
//! A file's bytes and its name reach the device apart: a file that was synced is nowhere if its directory was not, and a renamed one
//! may have its old name back, or its new name with the old bytes.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pares_flow::Random;

/// One file, by whatever name.
#[derive(Clone, Debug, Default)]
pub(crate) struct Content(Arc<Mutex<Bytes>>);

#[derive(Debug, Default)]
pub(super) struct Bytes {
    pub(super) now: Vec<u8>,
    pub(super) synced: Vec<u8>,
}

impl Content {
    /// The same with something else in the place of some text.
    pub(super) fn replaced(&self, from: &str, to: &str) -> Self {
        let now = String::from_utf8_lossy(&self.lock().now).replace(from, to).into_bytes();
        Self(Arc::new(Mutex::new(Bytes { now, synced: Vec::new() })))
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Bytes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug, Default)]
pub(crate) struct Files {
    now: BTreeMap<PathBuf, Content>,
    /// What a directory's names were when it was last synced.
    synced: BTreeMap<PathBuf, Content>,
    /// So often the machine has lost power.
    pub(super) power_failures: u128,
}

fn missing() -> io::Error {
    io::ErrorKind::NotFound.into()
}

impl Files {
    pub(crate) fn create(&mut self, path: &Path) -> Content {
        let content = Content::default();
        self.now.insert(path.into(), content.clone());
        content
    }

    pub(crate) fn open(&self, path: &Path) -> io::Result<Content> {
        self.now.get(path).cloned().ok_or_else(missing)
    }

    pub(crate) fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.now.get(path).map(|content| content.lock().now.clone())
    }

    /// A file holds something else, on the device too.
    pub(crate) fn overwrite(&mut self, path: &Path, bytes: Vec<u8>) {
        if let Some(content) = self.now.get(path) {
            let mut content = content.lock();
            (content.now, content.synced) = (bytes.clone(), bytes);
        }
    }

    /// A directory is renamed with all that is in it.
    pub(crate) fn rename(&mut self, from: &Path, to: &Path) -> io::Result<()> {
        let below: Vec<PathBuf> = self.now.keys().filter(|path| path.starts_with(from)).cloned().collect();
        if below.is_empty() {
            return Err(missing());
        }
        for path in below {
            let content = self.now.remove(&path).expect("just listed");
            let rest = path.strip_prefix(from).expect("it begins so");
            let name = if rest.as_os_str().is_empty() { to.to_path_buf() } else { to.join(rest) };
            self.now.insert(name, content);
        }
        Ok(())
    }

    pub(crate) fn remove(&mut self, path: &Path) -> io::Result<()> {
        self.now.remove(path).map(drop).ok_or_else(missing)
    }

    /// Removes a directory with all that is in it.
    pub(crate) fn remove_all(&mut self, dir: &Path) {
        self.now.retain(|path, _| !path.starts_with(dir));
    }

    pub(crate) fn list(&self, dir: &Path) -> Vec<String> {
        let inside = self.now.keys().filter_map(|path| path.strip_prefix(dir).ok()?.components().next());
        let mut names: Vec<String> =
            inside.map(|name| name.as_os_str().to_string_lossy().into_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    pub(crate) fn sync_dir(&mut self, dir: &Path) {
        let is_in = |path: &PathBuf| path.parent() == Some(dir);
        self.synced.retain(|path, _| !is_in(path));
        let names = self.now.iter().filter(|(path, _)| is_in(path));
        self.synced.extend(names.map(|(path, content)| (path.clone(), content.clone())));
    }

    /// What was synced stays; of the rest each name, and each file's bytes, may or may not have reached the device.
    pub(crate) fn power_failed(&mut self, random: &mut Random) {
        self.power_failures += 1;
        let mut names: Vec<PathBuf> = self.now.keys().chain(self.synced.keys()).cloned().collect();
        names.sort();
        names.dedup();
        let mut after = BTreeMap::new();
        for name in names {
            let from = if random.chance(500) { &self.now } else { &self.synced };
            if let Some(content) = from.get(&name) {
                after.insert(name, content.clone());
            }
        }
        for content in after.values() {
            let mut bytes = content.lock();
            if bytes.now != bytes.synced && random.chance(500) {
                bytes.now = bytes.synced.clone();
            }
            bytes.synced = bytes.now.clone();
        }
        (self.synced, self.now) = (after.clone(), after);
    }

    /// Flips a bit of a file below `dir`; says whether there was one.
    pub(crate) fn flip(&mut self, dir: &Path, random: &mut Random) -> bool {
        let below: Vec<&Content> =
            self.now.iter().filter(|(path, _)| path.starts_with(dir)).map(|(_, content)| content).collect();
        if below.is_empty() {
            return false;
        }
        let mut bytes = below[random.index(below.len())].lock();
        let at = random.index(bytes.now.len().max(1));
        let Some(byte) = bytes.now.get_mut(at) else { return false };
        *byte ^= 1 << random.below(8);
        true
    }
}
