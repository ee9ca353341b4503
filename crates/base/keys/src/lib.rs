//! Secrets, their public parts, and proofs that a peer knows one.
//!
//! A password sent is a password known to all who listen, and one kept by the other side is lost with its disk. Here neither ever
//! happens: who checks keeps a [`Verifier`], which is worth nothing to a thief, makes up bytes that were never used before, and is
//! answered with a proof that fits these bytes only.
//!
//! ```text
//!  secret --verifier()--> Verifier (public)
//!     |                      |
//!  prove(message) --> 64 bytes --accepts(message, proof)--> yes or no
//! ```
//!
//! - *Ed25519*: the verifier is the public key, the proof a signature.
//! - *Shared*: for a secret both sides once knew, or a password: as SCRAM (RFC 5802) does it, with SHA-256. C = HMAC(secret, label); the
//!   verifier is SHA-256(C); the proof is C xor HMAC(verifier, message). Who knows the verifier alone cannot make one.

mod file;
mod weak;

pub use file::{FileError, KeyFile, from_hex, to_hex};

use ring::rand::{SecureRandom, SystemRandom};
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};
use ring::{digest, hmac};
use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::is_public_assigned;

/// Bytes of a proof.
pub const PROOF_BYTES: usize = 64;

/// Characters of a token, six bits each.
pub const TOKEN_BYTES: usize = 10;

const CLIENT_KEY: &[u8] = b"Pares client key";
const TOKEN_KEY: &[u8] = b"Pares token key";
const COMPARING: &[u8] = b"Pares comparing";
/// What tokens are made of.
const TOKEN_CHARACTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
/// Argon2id: 64 MiB, 3 passes, 1 lane.
const PASSWORD_COST: (u32, u32, u32) = (64 << 10, 3, 1);

/// What only its owner knows.
#[derive(Clone, PartialEq, Eq)]
pub enum Secret {
    /// The seed of an Ed25519 key pair.
    Ed25519([u8; 32]),
    /// A secret of 32 bytes, or what became of a password.
    Shared([u8; 32]),
}

/// What others may know of a secret, to check proofs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verifier {
    /// A public key.
    Ed25519([u8; 32]),
    /// The digest of the client key.
    Shared([u8; 32]),
}

/// Why there is no secret of a password.
#[derive(Debug, thiserror::Error)]
#[error("a key cannot be derived from that password: {0}")]
pub struct PasswordError(argon2::Error);

/// Bytes that nobody can guess.
///
/// # Panics
/// If the operating system has none.
#[must_use]
pub fn random() -> [u8; 32] {
    let mut bytes = [0; 32];
    SystemRandom::new().fill(&mut bytes).expect("the operating system gives random bytes");
    bytes
}

/// A token that nobody can guess: of 60 random bits.
#[must_use]
pub fn random_token() -> [u8; TOKEN_BYTES] {
    let bytes = random();
    std::array::from_fn(|at| TOKEN_CHARACTERS[usize::from(bytes[at] & 63)])
}

/// A password in the form in which it is hashed: in NFC, and every space the usual one, as OpaqueString of RFC 8265 has it. Devices send one password in several forms: an
/// accent as a character of its own or as part of the letter.
#[must_use]
pub fn opaque(password: &str) -> String {
    // Those of Unicode's category Zs.
    let is_space = |letter: char| letter.is_whitespace() && !letter.is_control() && !is_separator(letter);
    let spaced = password.chars().map(|letter| if is_space(letter) { ' ' } else { letter });
    spaced.nfc().collect()
}

/// Whether a new password may have these characters: no control characters and ends of lines, which devices drop or change, and none that Unicode does not assign
/// or leaves to private use. RFC 8265 (OpaqueString) also refuses ignorable characters and old Jamo; they are accepted here. A password that was set before is
/// checked as it is.
#[must_use]
pub fn may_be_password(password: &str) -> bool {
    let may_stand =
        |letter: char| is_public_assigned(letter) && !letter.is_control() && !is_separator(letter);
    password.chars().all(may_stand)
}

fn is_separator(letter: char) -> bool {
    matches!(letter, '\u{2028}' | '\u{2029}')
}

impl Secret {
    /// A new Ed25519 key pair.
    #[must_use]
    pub fn generate() -> Self {
        Self::Ed25519(random())
    }

    /// A new secret to be shared.
    #[must_use]
    pub fn generate_shared() -> Self {
        Self::Shared(random())
    }

    /// The secret that a password stands for, in whichever form a device sends it. Takes a tenth of a second and 64 MiB, on purpose.
    ///
    /// # Errors
    /// If password or salt are too long, or the salt is too short.
    pub fn from_password(password: &str, salt: &[u8]) -> Result<Self, PasswordError> {
        let (memory, passes, lanes) = PASSWORD_COST;
        let params = argon2::Params::new(memory, passes, lanes, Some(32)).map_err(PasswordError)?;
        let argon = argon2::Argon2::new(argon2::Algorithm::Argon2id, argon2::Version::V0x13, params);
        let mut secret = [0; 32];
        argon.hash_password_into(opaque(password).as_bytes(), salt, &mut secret).map_err(PasswordError)?;
        Ok(Self::Shared(secret))
    }

    /// The secret that ten random characters stand for, which are too short to be anything else: quick, since a gateway makes it of each that it is sent.
    /// Who has the verifier can try 2^60 of them at home.
    #[must_use]
    pub fn from_token(token: &[u8; TOKEN_BYTES], salt: &[u8]) -> Self {
        Self::Shared(hmac_sha256(&[TOKEN_KEY, salt].concat(), token))
    }

    /// What others may know of it.
    #[must_use]
    pub fn verifier(&self) -> Verifier {
        match self {
            Self::Ed25519(seed) => {
                let public = key_pair(seed).public_key().as_ref().try_into();
                Verifier::Ed25519(public.expect("a public key has 32 bytes"))
            }
            Self::Shared(secret) => Verifier::Shared(sha256(&hmac_sha256(secret, CLIENT_KEY))),
        }
    }

    /// Proves that this side knows it. The verifying side chose a part of `message`.
    #[must_use]
    pub fn prove(&self, message: &[u8]) -> [u8; PROOF_BYTES] {
        match self {
            Self::Ed25519(seed) => {
                key_pair(seed).sign(message).as_ref().try_into().expect("a signature has 64 bytes")
            }
            Self::Shared(secret) => {
                let client_key = hmac_sha256(secret, CLIENT_KEY);
                let mask = hmac_sha256(&sha256(&client_key), message);
                let mut proof = [0; PROOF_BYTES];
                proof[..32].copy_from_slice(&xor(&client_key, &mask));
                proof
            }
        }
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // What is printed is kept somewhere.
        write!(f, "Secret of {:?}", self.verifier())
    }
}

impl Verifier {
    /// Whether both are one, in a time that does not tell how many of the first bytes are.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Ed25519(one), Self::Ed25519(other)) | (Self::Shared(one), Self::Shared(other)) => {
                is_same(one, other)
            }
            (Self::Ed25519(_), Self::Shared(_)) | (Self::Shared(_), Self::Ed25519(_)) => false,
        }
    }

    /// Whether who made `proof` knew the secret and meant `message`.
    #[must_use]
    pub fn accepts(&self, message: &[u8], proof: &[u8; PROOF_BYTES]) -> bool {
        match self {
            Self::Ed25519(key) => {
                let is_right = UnparsedPublicKey::new(&ED25519, key).verify(message, proof).is_ok();
                is_right && !weak::is_weak(key)
            }
            Self::Shared(stored) => {
                let (masked, rest) = proof.split_at(32);
                let halves = masked.first_chunk().zip(rest.first_chunk());
                let (masked, rest) = halves.expect("a proof has 64 bytes");
                let client_key = xor(masked, &hmac_sha256(stored, message));
                is_same(rest, &[0; 32]) && is_same(&sha256(&client_key), stored)
            }
        }
    }
}

/// In a time that does not tell where they differ: tags of both are compared, by what compares tags in constant time.
fn is_same(one: &[u8; 32], other: &[u8; 32]) -> bool {
    let key = hmac::Key::new(hmac::HMAC_SHA256, COMPARING);
    hmac::verify(&key, one, hmac::sign(&key, other).as_ref()).is_ok()
}

fn key_pair(seed: &[u8; 32]) -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(seed).expect("any 32 bytes are a seed")
}

fn hmac_sha256(key: &[u8], message: &[u8]) -> [u8; 32] {
    let tag = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message);
    tag.as_ref().try_into().expect("a tag has 32 bytes")
}

fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest::digest(&digest::SHA256, bytes).as_ref().try_into().expect("a digest has 32 bytes")
}

fn xor(one: &[u8; 32], other: &[u8; 32]) -> [u8; 32] {
    std::array::from_fn(|at| one[at] ^ other[at])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn secrets() -> [Secret; 3] {
        let of_password = Secret::from_password("correct horse", b"Pares salt of 7").unwrap();
        [Secret::Ed25519([7; 32]), Secret::Shared([7; 32]), of_password]
    }

    #[test]
    fn a_token_is_of_one_session_and_no_two_are_alike() {
        let (one, other) = (random_token(), random_token());
        assert_ne!(one, other);
        assert!(one.iter().all(|character| TOKEN_CHARACTERS.contains(character)));
        let verifier = Secret::from_token(&one, b"session 1").verifier();
        assert_eq!(verifier, Secret::from_token(&one, b"session 1").verifier());
        assert!(verifier.is_same(&Secret::from_token(&one, b"session 1").verifier()));
        assert!(!verifier.is_same(&Secret::from_token(&other, b"session 1").verifier()));
        let Verifier::Shared(digest) = verifier else { panic!("a token is shared") };
        assert!(!verifier.is_same(&Verifier::Ed25519(digest)));
        assert_ne!(verifier, Secret::from_token(&one, b"session 2").verifier());
        assert_ne!(verifier, Secret::from_token(&other, b"session 1").verifier());
    }

    #[test]
    fn passwords_are_hashed_in_one_form() {
        assert_eq!(opaque("contrase\u{f1}a"), "contrase\u{f1}a");
        assert_eq!(opaque("contrasen\u{303}a"), "contrase\u{f1}a");
        assert_eq!(opaque("a\u{a0}b\u{3000}c"), "a b c");
        assert_eq!(opaque("a\u{2028}b\u{2029}c"), "a\u{2028}b\u{2029}c", "separators of lines are no spaces");
        let ascii: String = (0..128_u8).map(char::from).collect();
        assert_eq!(opaque(&ascii), ascii, "what was hashed before fits");
        assert_eq!(opaque("\u{fb01} \u{b2}"), "\u{fb01} \u{b2}", "NFC, and not NFKC");
        let secret = |password| Secret::from_password(password, b"Pares salt of 7").unwrap();
        assert!(secret("contrasen\u{303}a") == secret("contrase\u{f1}a"));
        assert!(secret("contrasena") != secret("contrase\u{f1}a"));
    }

    #[test]
    fn control_and_unassigned_characters_stand_in_no_new_password() {
        for password in ["correct horse", "contrasen\u{303}a", "a\u{a0}b", "\u{1f40e}\u{5bc6}\u{78bc}"] {
            assert!(may_be_password(password), "{password}");
        }
        for letter in
            ['\0', '\t', '\u{7f}', '\u{85}', '\u{2028}', '\u{378}', '\u{e000}', '\u{fdd0}', '\u{10ffff}']
        {
            assert!(!may_be_password(&format!("correct{letter}horse")), "{letter:?}");
        }
    }

    #[test]
    fn a_proof_is_of_one_secret_and_one_message() {
        for secret in secrets() {
            let (verifier, proof) = (secret.verifier(), secret.prove(b"message"));
            assert!(verifier.accepts(b"message", &proof), "{secret:?}");
            assert!(!verifier.accepts(b"another", &proof));
            for other in secrets().into_iter().chain([Secret::generate()]).filter(|other| *other != secret) {
                assert!(!other.verifier().accepts(b"message", &proof));
            }
            for at in 0..PROOF_BYTES {
                let mut wrong = proof;
                wrong[at] ^= 1;
                assert!(!verifier.accepts(b"message", &wrong), "{secret:?}: byte {at}");
            }
        }
    }

    #[test]
    fn a_verifier_is_no_secret() {
        for secret in secrets() {
            let (Verifier::Ed25519(public) | Verifier::Shared(public)) = secret.verifier();
            for stolen in [Secret::Ed25519(public), Secret::Shared(public)] {
                assert!(!secret.verifier().accepts(b"message", &stolen.prove(b"message")));
            }
            assert!(!secret.verifier().accepts(b"message", &[0; PROOF_BYTES]));
        }
    }

    #[test]
    fn the_public_key_of_the_first_test_of_rfc_8032() {
        let seed = [
            0x9d, 0x61, 0xb1, 0x9d, 0xef, 0xfd, 0x5a, 0x60, 0xba, 0x84, 0x4a, 0xf4, 0x92, 0xec, 0x2c, 0xc4,
            0x44, 0x49, 0xc5, 0x69, 0x7b, 0x32, 0x69, 0x19, 0x70, 0x3b, 0xac, 0x03, 0x1c, 0xae, 0x7f, 0x60,
        ];
        let public = [
            0xd7, 0x5a, 0x98, 0x01, 0x82, 0xb1, 0x0a, 0xb7, 0xd5, 0x4b, 0xfe, 0xd3, 0xc9, 0x64, 0x07, 0x3a,
            0x0e, 0xe1, 0x72, 0xf3, 0xda, 0xa6, 0x23, 0x25, 0xaf, 0x02, 0x1a, 0x68, 0xf7, 0x07, 0x51, 0x1a,
        ];
        assert_eq!(Secret::Ed25519(seed).verifier(), Verifier::Ed25519(public));
    }

    #[test]
    fn what_is_printed_of_a_secret_is_public() {
        let secret = Secret::Shared([0xab; 32]);
        assert!(!format!("{secret:?}").contains(&format!("{:?}", [0xab_u8; 32])));
    }
}
