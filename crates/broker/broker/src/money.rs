//! Money: whole cents, read from and written as decimal dollars without a float on the way.

/// The largest amount that a command may name, and the most that an account holds: ten million million dollars.
pub const CENTS_MAX: u64 = 1_000_000_000_000_000;

/// The cents of `12`, `12.3` or `12.34`. None if it is anything else (a sign, a third decimal, no digit before the point), or above [`CENTS_MAX`].
#[must_use]
pub fn cents_of(text: &str) -> Option<u64> {
    let (whole, decimals) = match text.split_once('.') {
        Some((_, "")) => return None,
        Some(parts) => parts,
        None => (text, "0"),
    };
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
    if !is_number(whole) || !is_number(decimals) || decimals.len() > 2 {
        return None;
    }
    let scale = if decimals.len() == 1 { 10 } else { 1 };
    let cents = decimals.parse::<u64>().ok()? * scale;
    let total = whole.parse::<u64>().ok()?.checked_mul(100)?.checked_add(cents)?;
    (total <= CENTS_MAX).then_some(total)
}

/// `12.34`, always with two decimals.
#[must_use]
pub fn dollars(cents: u64) -> String {
    format!("{}.{:02}", cents / 100, cents % 100)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_to_the_cent_or_not_at_all() {
        let cases = [("0.00", 0), ("5", 500), ("5.1", 510), ("63511.53", 6_351_153), ("0.07", 7)];
        for (text, cents) in cases {
            assert_eq!(cents_of(text), Some(cents), "{text}");
        }
        for text in ["", ".", "5.", ".5", "-1.00", "+1", "1.001", "1,0", "1e3", " 1", "99999999999999999999"]
        {
            assert_eq!(cents_of(text), None, "{text}");
        }
        assert_eq!(cents_of("10000000000000.00"), Some(CENTS_MAX));
        assert_eq!(cents_of("10000000000000.01"), None);
        assert_eq!(dollars(7), "0.07");
    }
}
