//! Prices and quantities as FIX writes them, without a float in between: what cannot be said exactly is refused.

use pares_types::{Price, Quantity};

/// Digits behind the point that a price unit is.
const PRICE_DECIMALS: usize = 4;

/// Reads a price.
///
/// # Errors
/// In words: it is finer than a price unit, or too large.
pub(crate) fn price(text: &[u8]) -> Result<Price, &'static str> {
    let (magnitude, is_negative) = text.strip_prefix(b"-").map_or((text, false), |rest| (rest, true));
    let units = scaled(magnitude, PRICE_DECIMALS).map_err(|fault| match fault {
        Fault::TooFine => "a price may have at most 4 decimals",
        Fault::TooLarge => "the price is too large",
    })?;
    let units = i64::try_from(units).map_err(|_| "the price is too large")?;
    Ok(Price(if is_negative { -units } else { units }))
}

/// Reads a number of shares.
///
/// # Errors
/// In words: it is no whole number from zero on.
pub(crate) fn quantity(text: &[u8]) -> Result<Quantity, &'static str> {
    if text.starts_with(b"-") {
        return Err("a quantity must not be negative");
    }
    scaled(text, 0).map(Quantity).map_err(|fault| match fault {
        Fault::TooFine => "a quantity must be a whole number",
        Fault::TooLarge => "the quantity is too large",
    })
}

enum Fault {
    TooFine,
    TooLarge,
}

/// Digits with at most one point, times a power of ten.
fn scaled(text: &[u8], decimals: usize) -> Result<u64, Fault> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (whole, fraction) = point.map_or((text, &[][..]), |at| (&text[..at], &text[at + 1..]));
    let (fine, beyond) = fraction.split_at(fraction.len().min(decimals));
    if beyond.iter().any(|digit| *digit != b'0') {
        return Err(Fault::TooFine);
    }
    let padding = std::iter::repeat_n(&b'0', decimals - fine.len());
    whole.iter().chain(fine).chain(padding).try_fold(0_u64, |number, digit| {
        let digit = u64::from(digit.wrapping_sub(b'0'));
        number.checked_mul(10).and_then(|number| number.checked_add(digit)).ok_or(Fault::TooLarge)
    })
}

/// Writes a price, without zeros at its end.
pub(crate) fn price_text(price: Price) -> String {
    let mut text = price.to_string();
    text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_and_written_exactly() {
        for (text, units) in
            [("223.82", 2_238_200), ("0.0001", 1), ("-1.5", -15_000), ("7", 70_000), ("0", 0)]
        {
            assert_eq!(price(text.as_bytes()), Ok(Price(units)), "{text}");
            assert_eq!(price_text(Price(units)), text);
        }
        assert_eq!(price(b"1.50000000"), Ok(Price(15_000)), "zeros say nothing");
        assert_eq!(price(b".5"), Ok(Price(5_000)));
        assert_eq!(price_text(Price(i64::MIN)), "-922337203685477.5808");
    }

    #[test]
    fn what_is_too_fine_or_too_large_is_refused() {
        assert_eq!(price(b"1.00001"), Err("a price may have at most 4 decimals"));
        assert_eq!(price(b"922337203685477.5808"), Err("the price is too large"));
        assert_eq!(price(b"99999999999999999999"), Err("the price is too large"));
        assert_eq!(quantity(b"100.0"), Ok(Quantity(100)));
        assert_eq!(quantity(b"0.5"), Err("a quantity must be a whole number"));
        assert_eq!(quantity(b"-1"), Err("a quantity must not be negative"));
        assert_eq!(quantity(b"18446744073709551616"), Err("the quantity is too large"));
    }
}
