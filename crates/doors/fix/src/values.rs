//! Values, checked while their ends are found.
//!
//! To find the end first and to look at the value then would read each byte twice. A number knows its end at the first byte that is no digit; a time
//! has a length. Only if something is wrong the end is searched.

use crate::SOH;
use crate::dictionary::{FieldRule, Form, Values};
use crate::fault::FixRejectReason;
use crate::time::read_stamp;

/// Digits of an integer, so that each fits into 64 bits.
const DIGITS_MAX: usize = 18;

/// Looks at the value at the beginning of `rest`, which has a SOH: where it ends, and its fault.
#[inline]
pub(crate) fn check(rule: &FieldRule, rest: &[u8]) -> (usize, Option<FixRejectReason>) {
    let (end, is_well_formed) = match rule.form {
        Form::Text | Form::Letters | Form::Data => (end(rest), true),
        Form::Char => one_of(rest, |_| true),
        Form::Flag => one_of(rest, |letter| matches!(letter, b'Y' | b'N')),
        Form::Count => number(rest, 0),
        Form::Integer => number(rest, usize::from(rest[0] == b'-')),
        Form::Decimal => decimal(rest),
        Form::Timestamp => timestamp(rest),
        Form::Date => date(rest),
    };
    let wrong = match () {
        () if end == 0 => Some(FixRejectReason::NoValue),
        () if !is_well_formed => Some(FixRejectReason::FormatIncorrect),
        () => not_among(rule, &rest[..end]),
    };
    (end, wrong)
}

/// Where a value ends. Eight bytes are looked at together.
#[inline]
pub(crate) fn end(rest: &[u8]) -> usize {
    const ONES: u64 = u64::from_le_bytes([SOH; 8]);
    let (words, tail) = rest.as_chunks::<8>();
    for (number, word) in words.iter().enumerate() {
        // A byte that is SOH is zero here, and the first of them alone borrows for its highest bit.
        let word = u64::from_le_bytes(*word) ^ ONES;
        let zeros = word.wrapping_sub(ONES) & !word & (ONES << 7);
        if zeros != 0 {
            return number * 8 + (zeros.trailing_zeros() / 8) as usize;
        }
    }
    let in_tail = tail.iter().position(|byte| *byte == SOH).expect("a body ends with SOH");
    words.len() * 8 + in_tail
}

fn one_of(rest: &[u8], is_good: impl Fn(u8) -> bool) -> (usize, bool) {
    match *rest {
        [letter, SOH, ..] if letter != SOH => (1, is_good(letter)),
        _ => (end(rest), false),
    }
}

#[inline]
fn digits(rest: &[u8]) -> usize {
    rest.iter().position(|byte| !byte.is_ascii_digit()).expect("a body ends with SOH")
}

#[inline]
fn number(rest: &[u8], sign: usize) -> (usize, bool) {
    let digits = digits(&rest[sign..]);
    ended(rest, sign + digits, (1..=DIGITS_MAX).contains(&digits))
}

#[inline]
fn decimal(rest: &[u8]) -> (usize, bool) {
    let sign = usize::from(rest[0] == b'-');
    let whole = digits(&rest[sign..]);
    let mut at = sign + whole;
    let mut digits_seen = whole;
    if rest[at] == b'.' {
        let fraction = digits(&rest[at + 1..]);
        at += 1 + fraction;
        digits_seen += fraction;
    }
    ended(rest, at, digits_seen > 0)
}

/// A value that was good up to `at`: it is if it ends there.
#[inline]
fn ended(rest: &[u8], at: usize, is_good: bool) -> (usize, bool) {
    if rest[at] == SOH { (at, is_good) } else { (at + end(&rest[at..]), false) }
}

#[inline]
fn timestamp(rest: &[u8]) -> (usize, bool) {
    // The usual lengths first: whole seconds, milliseconds.
    let usual = [21, 17].into_iter().find(|&end| rest.get(end) == Some(&SOH));
    if let Some(end) = usual.filter(|&end| read_stamp(&rest[..end]).is_some()) {
        return (end, true);
    }
    let end = end(rest);
    (end, read_stamp(&rest[..end]).is_some())
}

fn date(rest: &[u8]) -> (usize, bool) {
    let end = end(rest);
    (end, crate::time::read_date(&rest[..end]).is_some())
}

#[inline]
fn not_among(rule: &FieldRule, value: &[u8]) -> Option<FixRejectReason> {
    let is_letter = |letters: u128, letter: u8| letter < 128 && letters >> letter & 1 == 1;
    let is_there = match rule.values {
        Values::Any => true,
        Values::Letters(letters) if rule.form == Form::Letters => {
            value.split(|byte| *byte == b' ').all(|word| matches!(*word, [one] if is_letter(letters, one)))
        }
        Values::Letters(letters) => matches!(*value, [one] if is_letter(letters, one)),
        Values::Words(words) => words.iter().any(|word| word.as_bytes() == value),
    };
    (!is_there).then_some(FixRejectReason::ValueIncorrect)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dictionary::{FIX44, tag};
    use FixRejectReason::{FormatIncorrect, NoValue, ValueIncorrect};

    fn found(tag: u16, value: &str) -> Option<FixRejectReason> {
        let rule = FIX44.field(FIX44.place(i32::from(tag)));
        let (end, wrong) = check(rule, format!("{value}\x0110=").as_bytes());
        assert_eq!(end, value.len(), "{value} is as long as it is, right or wrong");
        wrong
    }

    #[test]
    fn values_are_written_as_their_type_says() {
        let good =
            [(38, "002000.00"), (38, "7"), (44, "-1.5"), (34, "12"), (43, "Y"), (60, "20240229-12:34:56")];
        let also =
            [(60, "20240229-12:34:56.789"), (64, "20240229"), (58, "any words"), (18, "1 G"), (211, ".5")];
        let exact = [(52, "20240229-12:34:56.789000001"), (52, "20240229-12:34:56.789000001999")];
        let good = good.into_iter().chain(also).chain(exact);
        good.for_each(|(tag, value)| assert_eq!(found(tag, value), None, "{value}"));
        let bad =
            [(38, "+200.00"), (38, "1e3"), (38, "."), (34, "-1"), (34, "1234567890123456789"), (43, "y")];
        let also = [(126, "20040415"), (54, "11"), (64, "2024"), (44, "--1"), (60, "x"), (38, "1.2.3")];
        let dates = [(432, "20270230"), (126, "20270230-12:00:00"), (64, "20261131")];
        bad.into_iter().chain(also).chain(dates).for_each(|(tag, value)| {
            assert_eq!(found(tag, value), Some(FormatIncorrect), "{value}");
        });
    }

    #[test]
    fn a_value_is_one_of_those_that_the_field_has() {
        [(21, "4"), (40, "w"), (167, "BOO"), (18, "1 ~"), (18, "11")]
            .into_iter()
            .for_each(|(tag, value)| assert_eq!(found(tag, value), Some(ValueIncorrect), "{value}"));
        assert_eq!(found(tag::SECURITY_TYPE, "CS"), None);
        assert_eq!(found(tag::SIDE, "\u{7f}"), Some(ValueIncorrect));
    }

    #[test]
    fn a_field_without_a_value_is_told_so_whatever_its_type() {
        for tag in [11, 34, 38, 43, 44, 54, 60, 64] {
            assert_eq!(found(tag, ""), Some(NoValue), "{tag}");
        }
    }
}
