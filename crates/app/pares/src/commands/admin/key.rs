//! Keys that an operator registers: made here, or of which the member has the secret.
//!
//! A key that is changed must be in force nowhere or here: so the new file lies beside the old one until the register has it, and stays while
//! nobody can say whether it has. Who asks again, or asks for what was proposed, means the key that lies there.

use std::fs::{File, TryLockError};
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use pares_client::{
    Answer, KeyFile, Secret, Verifier, from_hex, may_be_password, password_salt, random_token, to_hex,
};
use pares_node::Layout;
use pares_types::{Key, MemberId, Reason};

use crate::error::CommandError;

/// How long a command waits for others that change keys.
const HELD_MAX: Duration = Duration::from_secs(60);

/// What a file of a key ends with until that is in force.
const NEW: &str = "key.new";

/// The key to register. By default a new one is made in keys/member-M-S.key in the system's directory.
#[derive(clap::Args)]
pub(super) struct NewKey {
    /// Register this Ed25519 public key (64 hexadecimal digits), whose secret key the member holds
    #[arg(long)]
    public_key: Option<String>,
    /// Read a password from standard input; the exchange keeps only a verifier of it
    #[arg(long, conflicts_with = "public_key")]
    password: bool,
    /// Make an HMAC-SHA256 key instead of an Ed25519 key, for programs without an Ed25519 library
    #[arg(long, conflicts_with_all = ["public_key", "password"])]
    shared: bool,
    /// Make a ten-character password for OUCH logins; it is printed once and not stored
    #[arg(long, conflicts_with_all = ["public_key", "password", "shared"])]
    token: bool,
}

impl NewKey {
    /// The same as options of a command.
    pub(super) fn options(&self) -> &'static str {
        match self {
            Self { token: true, .. } => " --token",
            Self { shared: true, .. } => " --shared",
            Self { password: true, .. } => " --password",
            Self { public_key: Some(_), .. } => " --public-key HEX",
            _ => "",
        }
    }
}

/// A key to be registered.
pub(super) struct MadeKey {
    pub(super) key: Key,
    /// Where its secret is.
    pub(super) about: String,
    /// Where its secret lies now, and where it is to lie: in the place of one that the session has until then.
    file: Option<(PathBuf, PathBuf)>,
    /// Whether it was made just now: nobody was asked to take it before.
    is_new: bool,
}

/// The directory of the keys, while one command changes what lies there: of two at once, one would take away the secret that the other
/// has in force. Held as long as the file is open. Waits for other commands, which end on their own if a gateway does not answer.
pub(super) fn hold(layout: &Layout) -> Result<File, CommandError> {
    let keys = layout.keys();
    std::fs::create_dir_all(&keys).map_err(CommandError::io("making the directory of keys"))?;
    let keys = File::open(&keys).map_err(CommandError::io("opening the directory of keys"))?;
    let begun = Instant::now();
    loop {
        match keys.try_lock() {
            Ok(()) => return Ok(keys),
            Err(TryLockError::WouldBlock) if begun.elapsed() < HELD_MAX => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(TryLockError::WouldBlock) => {
                let what =
                    "another command is still changing a key; nothing was done: try again when it has ended";
                return Err(CommandError::Failed(what.into()));
            }
            Err(TryLockError::Error(error)) => {
                return Err(CommandError::io("locking the directory of keys; nothing was done")(error));
            }
        }
    }
}

/// Removes what a change that did not end left of a session, or of all of a member.
pub(super) fn forget_new((member, session): (u32, Option<u16>), layout: &Layout) -> Result<(), CommandError> {
    let Ok(listed) = std::fs::read_dir(layout.keys()) else { return Ok(()) };
    let is_new = |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().ends_with(NEW));
    let is_theirs = |path: &PathBuf| {
        KeyFile::read(path)
            .is_ok_and(|key| key.member == member && session.is_none_or(|number| number == key.session))
    };
    let paths = listed.filter_map(|entry| Some(entry.ok()?.path()));
    for path in paths.filter(is_new).filter(is_theirs) {
        std::fs::remove_file(&path).map_err(CommandError::io("removing a key that is revoked"))?;
    }
    Ok(())
}

impl NewKey {
    /// Holds the keys. A password or token leaves no file, so nothing is held.
    pub(super) fn hold(&self, layout: &Layout) -> Result<Option<File>, CommandError> {
        (!self.password && !self.token).then(|| hold(layout)).transpose()
    }

    /// Whether another operator can name it, who asks for what was proposed.
    pub(super) fn is_public(&self) -> bool {
        !self.shared && !self.password && !self.token
    }
}

impl MadeKey {
    pub(super) fn of(wanted: &NewKey, who: (u32, u16), layout: &Layout) -> Result<Self, CommandError> {
        if let Some(hex) = &wanted.public_key {
            let key = from_hex(hex)
                .ok_or_else(|| CommandError::Usage("a public key must have 64 hexadecimal digits".into()))?;
            let key = Key::Ed25519(key);
            let file = Some(places_of(who, layout)).filter(|(new, _)| lies_in(new, key));
            let about = file.as_ref().map(|(_, path)| path.display().to_string());
            let about = about.unwrap_or_else(|| "the secret of that public key".into());
            return Ok(Self { key, about, file, is_new: false });
        }
        if wanted.password {
            let secret = password(who)?;
            let about = "that password".into();
            return Ok(Self { key: registered(&secret), about, file: None, is_new: false });
        }
        let (member, session) = who;
        if wanted.token {
            let token = random_token();
            let secret = Secret::from_token(&token, &password_salt(MemberId(member), session));
            let about =
                format!("the password {} (shown only once: note it down)", String::from_utf8_lossy(&token));
            return Ok(Self { key: registered(&secret), about, file: None, is_new: false });
        }
        let (new, path) = places_of(who, layout);
        let is_new = !new.exists();
        let key = if is_new {
            let secret = if wanted.shared { Secret::generate_shared() } else { Secret::generate() };
            let key = KeyFile { member, session, secret };
            key.write(&new).map_err(|error| CommandError::Usage(error.to_string()))?;
            key
        } else {
            asked_for_before(&new, who, wanted.shared)?
        };
        let (key, about) = (registered(&key.secret), path.display().to_string());
        Ok(Self { key, about, file: Some((new, path)), is_new })
    }

    /// The register was asked to take it. Nobody knows a new key that was refused; one that may be taken yet stays.
    pub(super) fn settle(&self, asked: Result<Answer, CommandError>) -> Result<(), CommandError> {
        let error = match asked {
            // It is in force: its answer did not come.
            Ok(_) | Err(CommandError::Refused(Reason::NothingChanged)) => return self.keep(),
            Err(error) => error,
        };
        match &self.file {
            Some((new, _)) if self.is_new && error.is_certain() => {
                let _ = std::fs::remove_file(new);
                Err(error)
            }
            Some((new, path)) if !error.is_certain() => Err(error.and(&format!(
                ". The secret key stays in {}. Repeat the command to activate it and to move it to {}; if \
                 the previous key is no longer accepted, the new one is already active: move the file \
                 yourself",
                new.display(),
                path.display()
            ))),
            _ => Err(error),
        }
    }

    /// Where its secret lies, and where it is to lie once it is in force, unless that is done by the command that has it in force.
    pub(super) fn place(&self) -> Option<(String, String)> {
        let (new, path) = self.file.as_ref()?;
        Some((new.display().to_string(), path.display().to_string()))
    }

    /// What the other operator has to name, who asks for it.
    pub(super) fn public(&self) -> String {
        match self.key {
            Key::Ed25519(key) | Key::Shared(key) => to_hex(&key),
        }
    }

    /// The session has it.
    fn keep(&self) -> Result<(), CommandError> {
        let Some((new, path)) = &self.file else { return Ok(()) };
        let dir = path.parent().expect("it is in the directory of keys");
        let renamed = std::fs::rename(new, path).and_then(|()| File::open(dir)?.sync_all());
        renamed.map_err(|error| {
            let (new, path) = (new.display(), path.display());
            CommandError::Failed(format!("the key is active but still in {new}; move it to {path}: {error}"))
        })
    }
}

/// Where a session's new key lies until it is in force, and where then.
fn places_of(who: (u32, u16), layout: &Layout) -> (PathBuf, PathBuf) {
    let path = place_of(who, layout);
    (new_beside(&path), path)
}

/// Where the key lies that is to take that one's place.
pub(super) fn new_beside(path: &Path) -> PathBuf {
    path.with_extension(NEW)
}

/// The key of a change that did not end, or was proposed: it may be in force.
fn asked_for_before(path: &Path, who: (u32, u16), shared: bool) -> Result<KeyFile, CommandError> {
    let key = KeyFile::read(path).map_err(|error| error.to_string()).and_then(|key| {
        let fits = (key.member, key.session) == who && shared == matches!(key.secret, Secret::Shared(_));
        if fits { Ok(key) } else { Err("it belongs to another session, or is of another kind".to_owned()) }
    });
    key.map_err(|why| {
        let path = path.display();
        CommandError::Usage(format!(
            "{path} is from an unfinished key change, and may be active ({why}): move it away first"
        ))
    })
}

fn lies_in(path: &Path, key: Key) -> bool {
    KeyFile::read(path).is_ok_and(|file| registered(&file.secret) == key)
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
        return Err(CommandError::Usage("a password must have at least one character".into()));
    }
    if !may_be_password(password) {
        let why = "a password may have no control characters, and none that Unicode does not assign or leaves to private use";
        return Err(CommandError::Usage(why.into()));
    }
    let salt = password_salt(MemberId(member), session);
    Secret::from_password(password, &salt).map_err(|error| CommandError::Usage(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MADE: NewKey = NewKey { public_key: None, password: false, shared: false, token: false };

    #[test]
    fn refused_key_leaves_no_file_pending_key_stays() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let made = MadeKey::of(&MADE, (7, 1), &layout).unwrap();
        let (new, path) = made.file.clone().unwrap();
        let unknown = || Err(CommandError::NoAnswer("no gateway has answered".into()));
        let said = made.settle(unknown()).unwrap_err().to_string();
        assert!(new.exists() && !path.exists() && said.contains("Repeat the command"), "{said}");
        let again = MadeKey::of(&MADE, (7, 1), &layout).unwrap();
        assert_eq!(again.key, made.key);
        let wanted = NewKey { public_key: Some(made.public()), ..MADE };
        let named = MadeKey::of(&wanted, (7, 1), &layout).unwrap();
        named.settle(Err(CommandError::Failed("refused".into()))).unwrap_err();
        assert!(new.exists(), "who only names it makes no end of it");
        again.settle(Err(CommandError::Failed("refused".into()))).unwrap_err();
        assert!(new.exists(), "the first may have been taken");
        let shared = NewKey { shared: true, ..MADE };
        assert!(MadeKey::of(&shared, (7, 1), &layout).is_err() && new.exists(), "of another kind");
        again.settle(Err(CommandError::Refused(Reason::NothingChanged))).unwrap();
        assert!(!new.exists() && path.exists(), "it was in force");
        let made = MadeKey::of(&MADE, (7, 2), &layout).unwrap();
        made.settle(Err(CommandError::Failed("refused".into()))).unwrap_err();
        assert!(!made.file.unwrap().0.exists());
    }

    #[test]
    fn a_new_key_of_who_is_revoked_is_not_asked_for_again() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let made = |session| MadeKey::of(&MADE, (7, session), &layout).unwrap();
        let (first, second) = (made(1), made(2));
        forget_new((7, Some(1)), &layout).unwrap();
        assert_ne!(made(1).key, first.key);
        assert_eq!(made(2).key, second.key);
        forget_new((8, None), &layout).unwrap();
        assert_eq!(made(2).key, second.key, "of another member");
        forget_new((7, None), &layout).unwrap();
        assert_ne!(made(2).key, second.key);
    }

    #[test]
    fn keys_are_changed_by_one_command_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let held = hold(&layout).unwrap();
        let (say, heard) = std::sync::mpsc::channel();
        let other = std::thread::spawn(move || say.send(MADE.hold(&layout).is_ok()));
        assert!(heard.recv_timeout(Duration::from_millis(100)).is_err(), "the other waits");
        drop(held);
        assert_eq!(heard.recv(), Ok(true));
        other.join().unwrap().unwrap();
    }

    #[test]
    fn a_key_that_is_changed_takes_the_place_of_the_one_before() {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        let make = || {
            let made = MadeKey::of(&MADE, (0, 1), &layout).unwrap();
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
