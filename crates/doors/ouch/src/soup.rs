//! SoupBinTCP: packets, and what a client says first.

use pares_types::{MemberId, ShardId};

/// The longest packet that a client may send, its type included.
pub const PACKET_MAX: usize = 1_024;
/// Bytes of a Login Request behind its type.
const LOGIN_BYTES: usize = 46;
/// Members up to here are called by their number; others in base 62.
const PLAIN_MAX: u32 = 999_999;
const DIGITS: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
/// The first of six digits in base 62 begins here, so that no such username reads as a number.
const LETTERS_FROM: u64 = 10;

/// What the bytes begin with.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Cut<'a> {
    /// A packet, by its type and payload, and its length in all.
    Packet(u8, &'a [u8], usize),
    /// The rest of it is to come.
    Incomplete,
    /// No packet that a client may send.
    Wrong,
}

pub(crate) fn cut(bytes: &[u8]) -> Cut<'_> {
    let Some((length, rest)) = bytes.split_first_chunk() else { return Cut::Incomplete };
    let length = usize::from(u16::from_be_bytes(*length));
    if length == 0 || length > PACKET_MAX {
        return Cut::Wrong;
    }
    match rest.get(..length).and_then(<[u8]>::split_first) {
        Some((kind, payload)) => Cut::Packet(*kind, payload, 2 + length),
        None => Cut::Incomplete,
    }
}

/// Appends a packet.
pub(crate) fn write(out: &mut Vec<u8>, kind: u8, payload: &[u8]) {
    let length = u16::try_from(payload.len() + 1).expect("a door's packets are short");
    out.extend_from_slice(&length.to_be_bytes());
    out.push(kind);
    out.extend_from_slice(payload);
}

/// What a Login Request names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Login {
    pub(crate) member: MemberId,
    pub(crate) session: u16,
    /// Whether its orders die with it.
    pub(crate) is_guarded: bool,
    /// The shard; `None` for the lowest.
    pub(crate) shard: Option<ShardId>,
    /// The number of the first message wanted; 0: what comes from now on.
    pub(crate) next: u64,
}

/// Ten characters that prove a login; `None` if they were left blank.
pub(crate) type Password = Option<[u8; 10]>;

/// Why a login is refused.
pub(crate) const NOT_AUTHORIZED: u8 = b'A';
pub(crate) const NO_SUCH_SESSION: u8 = b'S';

impl Login {
    /// Reads the payload of a Login Request, or says how it is refused. The password is for the gateway only, at once, and no part of the login.
    pub(crate) fn read(payload: &[u8]) -> Result<(Self, Password), u8> {
        let (username, rest) = payload.split_at_checked(6).ok_or(NOT_AUTHORIZED)?;
        let member =
            member(username.trim_ascii()).filter(|_| payload.len() == LOGIN_BYTES).ok_or(NOT_AUTHORIZED)?;
        let (password, rest) = rest.split_first_chunk::<10>().ok_or(NOT_AUTHORIZED)?;
        let password = Some(*password).filter(|password| *password != [b' '; 10]);
        let (requested, number) = rest.split_at(10);
        let (session, is_guarded, shard) = session(requested.trim_ascii()).ok_or(NO_SUCH_SESSION)?;
        let next = match number.trim_ascii() {
            b"" => 0,
            digits => decimal(digits).ok_or(NO_SUCH_SESSION)?,
        };
        Ok((Self { member, session, is_guarded, shard, next }, password))
    }

    /// The session as a Login Accepted names it.
    fn name(&self, shard: ShardId) -> String {
        let letter = if self.is_guarded { 'G' } else { '-' };
        format!("{}{letter}{shard}", self.session)
    }

    /// Appends a Login Accepted: the session, and the number of the first message to come.
    pub(crate) fn accept(&self, out: &mut Vec<u8>, shard: ShardId, next: u64) {
        let payload = format!("{:>10}{next:>20}", self.name(shard));
        write(out, b'A', payload.as_bytes());
    }
}

/// Digits, of which none may stand before the number.
pub(crate) fn decimal(digits: &[u8]) -> Option<u64> {
    let is_number = !digits.is_empty() && digits.iter().all(u8::is_ascii_digit);
    std::str::from_utf8(digits).ok().filter(|_| is_number)?.parse().ok()
}

/// A member by its number, from 1; above 999,999 by six digits of base 62, of which the first is 10 higher.
fn member(name: &[u8]) -> Option<MemberId> {
    if name.first()?.is_ascii_digit() {
        let number = u32::try_from(decimal(name)?).ok()?;
        return (number > 0 && name[0] != b'0').then_some(MemberId(number));
    }
    let digit = |byte: &u8| DIGITS.iter().position(|digit| digit == byte).map(|at| at as u64);
    let all = name.iter().try_fold(0, |all, byte| Some(all * 62 + digit(byte)?))?;
    let number = u32::try_from(all.checked_sub(LETTERS_FROM * 62_u64.pow(5))?).ok()?;
    (name.len() == 6 && number > PLAIN_MAX).then_some(MemberId(number))
}

/// `1-0` is session 1 and shard 0, `1G0` the same with orders that die with it; nothing is session 1 in the lowest shard.
fn session(name: &[u8]) -> Option<(u16, bool, Option<ShardId>)> {
    if name.is_empty() {
        return Some((1, false, None));
    }
    let letter = name.iter().position(|byte| matches!(byte, b'-' | b'G'))?;
    let number = |digits| u16::try_from(decimal(digits)?).ok();
    let (session, shard) = (number(&name[..letter])?, number(&name[letter + 1..])?);
    (session <= SESSION_MAX).then_some((session, name[letter] == b'G', Some(ShardId(shard))))
}

/// Higher sessions have no [series for changes](crate::names).
const SESSION_MAX: u16 = 0x3fff;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_member_has_one_name() {
        let named = |name: &[u8]| member(name).map(|member| member.0);
        assert_eq!((named(b"7"), named(b"999999")), (Some(7), Some(PLAIN_MAX)));
        assert_eq!((named(b"A04C92"), named(b"Egfn5F")), (Some(1_000_000), None));
        let last: Vec<u8> =
            (0..6).rev().map(|at| digit(u64::from(u32::MAX) + 10 * 62_u64.pow(5), at)).collect();
        assert_eq!(named(&last), Some(u32::MAX), "{}", last.escape_ascii());
        for wrong in [&b""[..], b"0", b"07", b"A00000", b"zzzzzz", b"A04C9", b"+7", b"7a"] {
            assert_eq!(named(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    fn digit(number: u64, at: u32) -> u8 {
        DIGITS[(number / 62_u64.pow(at) % 62) as usize]
    }

    #[test]
    fn a_session_names_its_shard() {
        assert_eq!(session(b""), Some((1, false, None)));
        assert_eq!(session(b"1-0"), Some((1, false, Some(ShardId(0)))));
        assert_eq!(session(b"12G3"), Some((12, true, Some(ShardId(3)))));
        for wrong in [&b"1"[..], b"-", b"1-", b"G0", b"16384-0", b"1-65536", b"1 -0"] {
            assert_eq!(session(wrong), None, "{}", wrong.escape_ascii());
        }
    }

    #[test]
    fn packets_are_cut_where_they_end() {
        assert_eq!(cut(&[0]), Cut::Incomplete);
        assert_eq!(cut(&[0, 2, b'U']), Cut::Incomplete);
        assert_eq!(cut(&[0, 2, b'U', 9, 7]), Cut::Packet(b'U', &[9], 4));
        assert_eq!((cut(&[0, 0]), cut(&[4, 1])), (Cut::Wrong, Cut::Wrong));
    }
}
