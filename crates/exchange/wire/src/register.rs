//! Entries of the register as a code and 32 bytes, the same in records and frames; and what a session signs to prove its key.

use pares_types::{Entry, GatewayId, InstrumentId, Key, Limits, MemberId, Proposal, Rights};

use crate::WireError;

/// Bytes of an entry's value.
pub const VALUE_BYTES: usize = 32;
/// Bytes of what a session proves.
pub const TRANSCRIPT_BYTES: usize = LABEL.len() + 32 + 16;

const LABEL: &[u8; 16] = b"Pares sign-on 1\0";

/// What a session that signs on proves to know its key by: what it asked for and what it received, so that no other sign-on has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transcript {
    /// What the gateway has made up for this sign-on.
    pub nonce: [u8; 32],
    /// Which gateway.
    pub gateway: GatewayId,
    /// Who signs on.
    pub member: MemberId,
    /// As which session.
    pub session: u16,
    /// What the client has made up for it.
    pub token: u64,
}

impl Transcript {
    /// The bytes that are signed.
    #[must_use]
    pub fn bytes(&self) -> [u8; TRANSCRIPT_BYTES] {
        let mut bytes = [0; TRANSCRIPT_BYTES];
        bytes[..16].copy_from_slice(LABEL);
        bytes[16..48].copy_from_slice(&self.nonce);
        bytes[48..50].copy_from_slice(&self.gateway.0.to_le_bytes());
        bytes[50..52].copy_from_slice(&self.session.to_le_bytes());
        bytes[52..56].copy_from_slice(&self.member.0.to_le_bytes());
        bytes[56..].copy_from_slice(&self.token.to_le_bytes());
        bytes
    }
}

/// What goes with a session's password, so that two with the same have different keys: `Pares salt 1`, member and session.
#[must_use]
pub fn password_salt(member: MemberId, session: u16) -> [u8; 18] {
    let mut salt = *b"Pares salt 1......";
    salt[12..16].copy_from_slice(&member.0.to_le_bytes());
    salt[16..].copy_from_slice(&session.to_le_bytes());
    salt
}

pub(crate) fn entry_code(entry: Entry) -> (u8, [u8; VALUE_BYTES]) {
    match entry {
        Entry::AddMember => (1, [0; VALUE_BYTES]),
        Entry::RemoveMember => (2, [0; VALUE_BYTES]),
        Entry::SetKey(Key::Ed25519(key)) => (3, key),
        Entry::SetKey(Key::Shared(key)) => (4, key),
        Entry::RevokeKey => (5, [0; VALUE_BYTES]),
        Entry::SetRights(rights) => (6, filled(&[&rights.bits().to_le_bytes()])),
        Entry::SetLimits(limits) => (7, limits_value(&limits)),
        Entry::SetFourEyes(is_on) => (8, filled(&[&[is_on.into()]])),
        Entry::Propose(Proposal { instrument, kind, operand, detail }) => {
            let (instrument, operand) = (instrument.0.to_le_bytes(), operand.to_le_bytes());
            (9, filled(&[&instrument, &operand, &detail.to_le_bytes(), &[kind]]))
        }
        Entry::ListInstrument(instrument) => (10, filled(&[&instrument.0.to_le_bytes()])),
        Entry::UnlistInstrument(instrument) => (11, filled(&[&instrument.0.to_le_bytes()])),
        Entry::SetPositionMax(shares) => (12, filled(&[&shares.to_le_bytes()])),
        Entry::SetCopied(member) => (13, filled(&[&member.0.to_le_bytes()])),
    }
}

pub(crate) fn entry(code: u8, value: [u8; VALUE_BYTES]) -> Result<Entry, WireError> {
    let invalid = WireError::InvalidField("value");
    let entry = match code {
        1 => Entry::AddMember,
        2 => Entry::RemoveMember,
        3 => Entry::SetKey(Key::Ed25519(value)),
        4 => Entry::SetKey(Key::Shared(value)),
        5 => Entry::RevokeKey,
        6 => Entry::SetRights(Rights::from_bits(small(&value, 0)).ok_or(invalid)?),
        7 => Entry::SetLimits(limits(&value)),
        8 if value[0] <= 1 => Entry::SetFourEyes(value[0] == 1),
        9 if (1..=Proposal::KIND_MAX).contains(&value[24]) => Entry::Propose(Proposal {
            instrument: InstrumentId(small(&value, 0)),
            operand: small(&value, 4),
            detail: u128::from(large(&value, 16)) << 64 | u128::from(large(&value, 8)),
            kind: value[24],
        }),
        10 => Entry::ListInstrument(InstrumentId(small(&value, 0))),
        11 => Entry::UnlistInstrument(InstrumentId(small(&value, 0))),
        12 => Entry::SetPositionMax(large(&value, 0)),
        13 => Entry::SetCopied(MemberId(small(&value, 0))),
        8 | 9 => return Err(invalid),
        _ => return Err(WireError::InvalidField("entry")),
    };
    // What an entry does not use is zero: one entry has one form.
    if entry_code(entry) == (code, value) { Ok(entry) } else { Err(invalid) }
}

fn filled(parts: &[&[u8]]) -> [u8; VALUE_BYTES] {
    let mut value = [0; VALUE_BYTES];
    let mut at = 0;
    for part in parts {
        value[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    value
}

fn limits_value(limits: &Limits) -> [u8; VALUE_BYTES] {
    filled(&[
        &limits.quantity_max.to_le_bytes(),
        &limits.value_max.to_le_bytes(),
        &limits.collar.to_le_bytes(),
        &limits.orders_max.to_le_bytes(),
        &limits.rate_max.to_le_bytes(),
        &limits.burst_max.to_le_bytes(),
    ])
}

fn limits(value: &[u8; VALUE_BYTES]) -> Limits {
    Limits {
        quantity_max: large(value, 0),
        value_max: large(value, 8),
        collar: small(value, 16),
        orders_max: small(value, 20),
        rate_max: small(value, 24),
        burst_max: small(value, 28),
    }
}

fn large(value: &[u8; VALUE_BYTES], at: usize) -> u64 {
    u64::from(small(value, at)) | u64::from(small(value, at + 4)) << 32
}

fn small(value: &[u8; VALUE_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([value[at], value[at + 1], value[at + 2], value[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_has_one_form() {
        for code in 0..=20 {
            for at in 0..VALUE_BYTES {
                let mut value = [0; VALUE_BYTES];
                value[at] = 1;
                if let Ok(entry) = entry(code, value) {
                    assert_eq!(entry_code(entry), (code, value));
                }
            }
        }
        assert_eq!(entry(1, [1; VALUE_BYTES]), Err(WireError::InvalidField("value")));
        assert_eq!(entry(6, [0xff; VALUE_BYTES]), Err(WireError::InvalidField("value")));
        assert_eq!(entry(14, [0; VALUE_BYTES]), Err(WireError::InvalidField("entry")));
    }

    #[test]
    fn every_part_of_a_transcript_counts() {
        let one =
            Transcript { nonce: [1; 32], gateway: GatewayId(2), member: MemberId(3), session: 4, token: 5 };
        let others = [
            Transcript { nonce: [2; 32], ..one },
            Transcript { gateway: GatewayId(4), ..one },
            Transcript { member: MemberId(4), ..one },
            Transcript { session: 2, ..one },
            Transcript { token: 6, ..one },
        ];
        others.iter().for_each(|other| assert_ne!(one.bytes(), other.bytes()));
    }
}
