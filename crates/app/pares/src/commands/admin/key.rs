//! Keys that an operator registers: made here, or of which somebody else has the secret.
//!
//! A key that is changed must be in force nowhere or here: so the new file lies beside the old one until the register has it.

use std::io::BufRead;
use std::path::PathBuf;

use pares_client::{KeyFile, Secret, Verifier, from_hex, password_salt};
use pares_node::Layout;
use pares_types::{Key, MemberId};

use crate::error::CommandError;

/// The key to be registered. A new one lies in keys/member-M-S.key in the system's directory, unless something else is given.
#[derive(clap::Args)]
pub(super) struct NewKey {
    /// An Ed25519 public key, 64 hexadecimal digits, of which somebody else has the secret
    #[arg(long)]
    public_key: Option<String>,
    /// Read a password from standard input; what is kept of it says nothing about it
    #[arg(long, conflicts_with = "public_key")]
    password: bool,
    /// Make a key for HMAC-SHA256 instead of one for Ed25519, for programs without a library for that
    #[arg(long, conflicts_with_all = ["public_key", "password"])]
    shared: bool,
}

/// A key to be registered.
pub(super) struct MadeKey {
    pub(super) key: Key,
    /// Where its secret is.
    pub(super) about: String,
    /// Written just now, and where it is to lie: in the place of one that the session has until then.
    file: Option<(PathBuf, PathBuf)>,
}

impl MadeKey {
    pub(super) fn of(wanted: &NewKey, who: (u32, u16), layout: &Layout) -> Result<Self, CommandError> {
        if let Some(hex) = &wanted.public_key {
            let key = from_hex(hex)
                .ok_or_else(|| CommandError::Usage("a public key has 64 hexadecimal digits".into()))?;
            return Ok(Self {
                key: Key::Ed25519(key),
                about: "the secret of that public key".into(),
                file: None,
            });
        }
        if wanted.password {
            let secret = password(who)?;
            return Ok(Self { key: registered(&secret), about: "that password".into(), file: None });
        }
        let (member, session) = who;
        let path = place_of(who, layout);
        let new = path.with_extension("key.new");
        // Of a change that did not end: nobody knows it.
        let _ = std::fs::remove_file(&new);
        let secret = if wanted.shared { Secret::generate_shared() } else { Secret::generate() };
        let key = KeyFile { member, session, secret };
        key.write(&new).map_err(|error| CommandError::Usage(error.to_string()))?;
        Ok(Self { key: registered(&key.secret), about: path.display().to_string(), file: Some((new, path)) })
    }

    /// The session has it.
    pub(super) fn keep(&self) -> Result<(), CommandError> {
        let Some((new, path)) = &self.file else { return Ok(()) };
        std::fs::rename(new, path).map_err(|error| {
            let (new, path) = (new.display(), path.display());
            CommandError::Failed(format!("the key is in force and lies in {new}; move it to {path}: {error}"))
        })
    }

    /// Nobody knows it.
    pub(super) fn discard(&self) {
        if let Some((new, _)) = &self.file {
            let _ = std::fs::remove_file(new);
        }
    }
}

/// Where a session's key lies: the first operator's where commands look for it.
fn place_of((member, session): (u32, u16), layout: &Layout) -> PathBuf {
    let is_own = |key: KeyFile| (key.member, key.session) == (member, session);
    match KeyFile::read(&layout.operator_key()).is_ok_and(is_own) {
        true => layout.operator_key(),
        false => layout.keys().join(format!("member-{member}-{session}.key")),
    }
}

fn registered(secret: &Secret) -> Key {
    match secret.verifier() {
        Verifier::Ed25519(key) => Key::Ed25519(key),
        Verifier::Shared(key) => Key::Shared(key),
    }
}

/// The secret that the first line of standard input stands for.
fn password((member, session): (u32, u16)) -> Result<Secret, CommandError> {
    let mut line = String::new();
    std::io::stdin().lock().read_line(&mut line).map_err(CommandError::io("reading the password"))?;
    let password = line.trim_end_matches(['\r', '\n']);
    if password.is_empty() {
        return Err(CommandError::Usage("a password has at least one character".into()));
    }
    let salt = password_salt(MemberId(member), session);
    Secret::from_password(password.as_bytes(), &salt).map_err(|error| CommandError::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_discarded_key_leaves_no_file() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let made = MadeKey::of(&NewKey { public_key: None, password: false, shared: false }, (7, 1), &layout)
            .unwrap();
        let (new, path) = made.file.clone().unwrap();
        assert!(new.exists() && !path.exists());
        made.discard();
        assert!(!new.exists() && !path.exists());
    }

    #[test]
    fn a_key_that_is_changed_takes_the_place_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let make = || {
            let wanted = NewKey { public_key: None, password: false, shared: false };
            let made = MadeKey::of(&wanted, (0, 1), &layout).unwrap();
            made.keep().unwrap();
            made
        };
        let first = make();
        std::fs::rename(first.file.unwrap().1, layout.operator_key()).unwrap();
        let second = make();
        assert_eq!(second.about, layout.operator_key().display().to_string(), "where commands look for it");
        assert_eq!(registered(&KeyFile::read(&layout.operator_key()).unwrap().secret), second.key);
    }
}
