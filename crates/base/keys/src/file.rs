//! A secret in a file: one line of text that names whose it is.
//!
//! ```text
//! pares-key ed25519 member 0 session 1 9d61b19d...
//! ```
//! Lines that begin with `#` are for people. The file is its owner's only (mode 0600), from the moment it is there.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use crate::Secret;

const ABOUT: &str = "# Anyone with this file can sign on as the session: keep it secret. If it is lost, revoke the session: pares admin member revoke\n";

/// The bits of a file's mode that let others than its owner in.
const OTHERS: u32 = 0o077;

/// A session and its secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFile {
    /// The member.
    pub member: u32,
    /// Which of its sessions.
    pub session: u16,
    /// What it proves to know.
    pub secret: Secret,
}

/// Why there is no key in a file.
#[derive(Debug, thiserror::Error)]
pub enum FileError {
    /// It cannot be read, or written.
    #[error("{path}: {source}", path = path.display())]
    Io {
        /// Which file.
        path: PathBuf,
        /// What the operating system says.
        source: io::Error,
    },
    /// It holds something else.
    #[error("{path}: not a key file; expected `pares-key ed25519 member 7 session 1 HEX`", path = .0.display())]
    NoKey(PathBuf),
    /// Others than its owner can read or change it.
    #[error("{path}: other users can read or change it; if they may have read it, get a new key, otherwise run `chmod 600 {path}`", path = .0.display())]
    Exposed(PathBuf),
}

impl KeyFile {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, others can read it too, or it holds no key.
    pub fn read(path: &Path) -> Result<Self, FileError> {
        let read = || -> io::Result<(u32, Vec<u8>)> {
            let mut file = std::fs::File::open(path)?;
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes)?;
            Ok((file.metadata()?.mode(), bytes))
        };
        let (mode, bytes) = read().map_err(|source| FileError::Io { path: path.to_owned(), source })?;
        if mode & OTHERS != 0 {
            return Err(FileError::Exposed(path.to_owned()));
        }
        let key = std::str::from_utf8(&bytes).ok().and_then(Self::parse);
        key.ok_or_else(|| FileError::NoKey(path.to_owned()))
    }

    /// Writes a new file, for its owner only. It is there after a power failure too.
    ///
    /// # Errors
    /// If it cannot be written, or is there already: a key that is overwritten is lost. Nothing new is there then.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty()).unwrap_or(Path::new("."));
        let create = || {
            std::fs::create_dir_all(dir)?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
        };
        let write = |mut file: File| {
            let written = file.write_all(self.text().as_bytes()).and_then(|()| file.sync_all());
            let durable = written.and_then(|()| File::open(dir)?.sync_all());
            // Half a key would stand in the way of the next.
            durable.inspect_err(|_| _ = std::fs::remove_file(path))
        };
        create().and_then(write).map_err(|source| FileError::Io { path: path.to_owned(), source })
    }

    fn text(&self) -> String {
        let (kind, bytes) = match &self.secret {
            Secret::Ed25519(bytes) => ("ed25519", bytes),
            Secret::Shared(bytes) => ("shared", bytes),
        };
        let Self { member, session, .. } = self;
        format!("{ABOUT}pares-key {kind} member {member} session {session} {}\n", to_hex(bytes))
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| !line.starts_with('#') && !line.trim().is_empty())?;
        let words: Vec<&str> = line.split_whitespace().collect();
        let ["pares-key", kind, "member", member, "session", session, hex] = words[..] else { return None };
        let secret = match kind {
            "ed25519" => Secret::Ed25519(from_hex(hex)?),
            "shared" => Secret::Shared(from_hex(hex)?),
            _ => return None,
        };
        Some(Self { member: member.parse().ok()?, session: session.parse().ok()?, secret })
    }
}

/// Bytes as digits, two for each.
#[must_use]
pub fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// 64 digits as 32 bytes.
#[must_use]
pub fn from_hex(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 64 || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_key_comes_back_from_a_file_that_is_its_owner_s_only() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("keys/operator.key");
        let key = KeyFile { member: 7, session: 3, secret: Secret::Shared([0x5a; 32]) };
        key.write(&path).unwrap();
        assert_eq!(KeyFile::read(&path).unwrap(), key);
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        assert!(key.write(&path).is_err(), "a key that is overwritten is lost");
    }

    #[test]
    fn damaged_or_exposed_key_file_is_reported_clearly() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.key");
        let key = KeyFile { member: 7, session: 3, secret: Secret::Ed25519([0x5a; 32]) };
        key.write(&path).unwrap();
        let whole = std::fs::read(&path).unwrap();
        for at in ABOUT.len()..whole.len() - 1 {
            let mut damaged = whole.clone();
            damaged[at] ^= 0x80;
            std::fs::write(&path, damaged).unwrap();
            let said = KeyFile::read(&path).unwrap_err().to_string();
            assert!(said.contains("a.key: not a key file; expected"), "{at}: {said}");
        }
        std::fs::write(&path, whole).unwrap();
        for mode in [0o640, 0o604, 0o620] {
            std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
            let said = KeyFile::read(&path).unwrap_err().to_string();
            assert!(
                said.contains("other users can read or change it") && said.contains("chmod 600"),
                "{said}"
            );
        }
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o400)).unwrap();
        assert_eq!(KeyFile::read(&path).unwrap(), key);
    }

    #[test]
    fn what_is_no_key_is_said_so() {
        let short = "pares-key ed25519 member 7 session 1 abcd";
        let odd = format!("pares-key ed25519 member 7 session 1 {}", "é".repeat(32));
        for text in ["", "# nothing", "pares-key", short, &odd, "pares-key rot13 member 7 session 1 00"] {
            assert_eq!(KeyFile::parse(text), None, "{text}");
        }
    }
}
