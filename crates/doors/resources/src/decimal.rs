//! Numbers as decimal text, without a float in between: what cannot be said exactly is refused.

use pares_types::{Price, Quantity};

const PRICE_DECIMALS: usize = 4;

/// Reads a price: `-?digits[.digits]`, at most four decimals.
///
/// # Errors
/// In words, if it is none.
pub fn price(text: &str) -> Result<Price, &'static str> {
    const FORM: &str = "a price must be decimal text with at most 4 decimals, such as \"223.82\"";
    let (digits, is_negative) = text.strip_prefix('-').map_or((text, false), |rest| (rest, true));
    let (whole, fraction) = digits.split_once('.').map_or((digits, "0"), |parts| parts);
    if fraction.is_empty() || fraction.len() > PRICE_DECIMALS {
        return Err(FORM);
    }
    let fraction = format!("{fraction:0<PRICE_DECIMALS$}");
    let (whole, fraction) = (natural(whole).ok_or(FORM)?, number(&fraction).ok_or(FORM)?);
    let units = whole.checked_mul(10_000).and_then(|units| units.checked_add(fraction));
    let units = units.and_then(|units| i64::try_from(units).ok()).ok_or("the price is too large")?;
    Ok(Price(if is_negative { -units } else { units }))
}

/// Reads a number of shares.
///
/// # Errors
/// In words, if it is none.
pub fn quantity(text: &str) -> Result<Quantity, &'static str> {
    natural(text).map(Quantity).ok_or("a quantity must be a whole number as text, such as \"100\"")
}

/// Reads a whole number from 0 on: digits alone, and each number in one form, since programs compare texts.
#[must_use]
pub fn natural(text: &str) -> Option<u64> {
    if text.len() > 1 && text.starts_with('0') { None } else { number(text) }
}

fn number(digits: &str) -> Option<u64> {
    // `parse` takes a plus sign too.
    if !digits.bytes().all(|byte| byte.is_ascii_digit()) { None } else { digits.parse().ok() }
}

/// Writes a price, without zeros at its end.
#[must_use]
pub fn price_text(price: Price) -> String {
    let text = price.to_string();
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_and_written_exactly() {
        for (text, units) in [
            ("223.82", 2_238_200),
            ("0.0001", 1),
            ("-1.5", -15_000),
            ("7", 70_000),
            ("0", 0),
            ("100", 1_000_000),
        ] {
            assert_eq!(price(text), Ok(Price(units)), "{text}");
            assert_eq!(price_text(Price(units)), text);
        }
    }

    #[test]
    fn what_is_no_number_is_refused() {
        for text in
            ["", "-", ".5", "5.", "1.00001", "+1", "1e3", "0x1", " 1", "1,0", "٣", "--1", "1.+1", "NaN"]
        {
            assert!(price(text).is_err(), "{text}");
            assert!(quantity(text).is_err(), "{text}");
        }
        assert_eq!(price("922337203685478"), Err("the price is too large"));
        assert!(quantity("18446744073709551616").is_err());
        assert!(quantity("1.0").is_err());
    }

    #[test]
    fn each_number_is_read_in_one_form() {
        assert_eq!(
            (natural("0"), natural("10"), natural("007"), natural("00")),
            (Some(0), Some(10), None, None)
        );
        assert_eq!((price("0.0500"), price("10")), (Ok(Price(500)), Ok(Price(100_000))));
        for text in ["00.05", "010", "-01"] {
            assert!(price(text).is_err(), "{text}");
        }
    }
}
