//! Codes that change each 30 seconds (TOTP, RFC 6238): SHA-1, six digits, as all authenticators know them.

use totp_rs::{Builder, Secret, Totp};

use crate::problem::{self, Answer};

/// Bytes of a secret.
const SECRET_BYTES: usize = 20;

/// A new secret.
pub(crate) fn new_secret() -> Vec<u8> {
    pares_keys::random()[..SECRET_BYTES].to_vec()
}

/// A secret as people type it, and as a QR code shows it.
pub(crate) fn shown(secret: &[u8], name: &str) -> Answer<(String, String)> {
    let codes = of(secret, name)?;
    let uri = codes.to_url().map_err(|_| problem::unavailable())?;
    Ok((Secret::from(secret).to_base32(), uri))
}

/// The 30 seconds, counted from 1970, whose code this is: those of `now_ms`, the ones before, or the ones behind, since clocks differ.
pub(crate) fn step_of(secret: &[u8], code: &str, now_ms: u64) -> Option<u64> {
    of(secret, "code").ok()?.check(code, now_ms / 1_000)
}

fn of(secret: &[u8], name: &str) -> Answer<Totp> {
    let builder =
        Builder::new().with_secret(Secret::from(secret)).with_account_name(name).with_issuer(Some("Pares"));
    builder.build().map_err(|_| problem::unavailable())
}
