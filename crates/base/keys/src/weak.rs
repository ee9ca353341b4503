//! Public keys that prove nothing.
//!
//! A handful of points of Ed25519's curve come back to where they began after eight steps or fewer. With one of them as public key an attacker finds a signature
//! after a few tries, and verification as RFC 8032 has it accepts that. No secret has such a key, but a member may enter one. libsodium refuses the same seven.
//! The test signs for five of them; the other two are written in a form that this verifier refuses anyway.

/// Their encodings without the sign, which is the highest bit: of orders 4, 1, 8, 8 and 2, and the two that are written beyond the field's prime.
const WEAK: [[u8; 32]; 7] = [
    [0; 32],
    low(1),
    [
        0x26, 0xe8, 0x95, 0x8f, 0xc2, 0xb2, 0x27, 0xb0, 0x45, 0xc3, 0xf4, 0x89, 0xf2, 0xef, 0x98, 0xf0, 0xd5,
        0xdf, 0xac, 0x05, 0xd3, 0xc6, 0x33, 0x39, 0xb1, 0x38, 0x02, 0x88, 0x6d, 0x53, 0xfc, 0x05,
    ],
    [
        0xc7, 0x17, 0x6a, 0x70, 0x3d, 0x4d, 0xd8, 0x4f, 0xba, 0x3c, 0x0b, 0x76, 0x0d, 0x10, 0x67, 0x0f, 0x2a,
        0x20, 0x53, 0xfa, 0x2c, 0x39, 0xcc, 0xc6, 0x4e, 0xc7, 0xfd, 0x77, 0x92, 0xac, 0x03, 0x7a,
    ],
    high(0xec),
    high(0xed),
    high(0xee),
];

const fn low(first: u8) -> [u8; 32] {
    let mut bytes = [0; 32];
    bytes[0] = first;
    bytes
}

const fn high(first: u8) -> [u8; 32] {
    let mut bytes = [0xff; 32];
    (bytes[0], bytes[31]) = (first, 0x7f);
    bytes
}

/// Whether signatures for that public key can be made without its secret.
pub(crate) fn is_weak(key: &[u8; 32]) -> bool {
    let mut unsigned = *key;
    unsigned[31] &= 0x7f;
    WEAK.contains(&unsigned)
}

#[cfg(test)]
mod tests {
    use ring::signature::{ED25519, UnparsedPublicKey};

    use super::*;
    use crate::{PROOF_BYTES, Secret, Verifier};

    /// The neutral point, and nothing: a signature that needs no secret.
    fn forged() -> [u8; PROOF_BYTES] {
        let mut proof = [0; PROOF_BYTES];
        proof[0] = 1;
        proof
    }

    #[test]
    fn a_key_for_which_anybody_signs_lets_nobody_in() {
        for key in WEAK {
            let verify = |message: u8| UnparsedPublicKey::new(&ED25519, key).verify(&[message], &forged());
            let is_forged = (0..=u8::MAX).any(|message| verify(message).is_ok());
            assert!(is_forged || key == high(0xed) || key == high(0xee), "{key:x?} is one");
            for sign in [0, 0x80] {
                let mut key = key;
                key[31] |= sign;
                let accepts = |message: u8| Verifier::Ed25519(key).accepts(&[message], &forged());
                assert!(!(0..=u8::MAX).any(accepts), "{key:x?}");
            }
        }
    }

    #[test]
    fn no_secret_has_such_a_key() {
        let Verifier::Ed25519(key) = Secret::generate().verifier() else { panic!("another kind") };
        assert!(!is_weak(&key));
    }
}
