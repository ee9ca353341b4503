//! The legacy quote server's lines: `SYM,user` asks, `price,SYM,user,time,key` answers, and the connection ends.
//!
//! The server says what it likes: of a bad question it returns the user `NA`, it turns a symbol into another one, and some days it sends anything. So an answer
//! counts only if all of it is what was asked for; and what counts is kept letter by letter, since the key is made of it.

use pares_broker::{StockQuote, StockSymbol, UserName, cents_of, dollars};

/// Longest key that is taken, bytes.
const KEY_BYTES_MAX: usize = 200;

/// Why an answer of the server is no quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuoteFault {
    /// The server closed before it had answered.
    #[error("the quote server closed without an answer")]
    Closed,
    /// It did not answer in time.
    #[error("the quote server did not answer in time")]
    Silent,
    /// Not five fields of text, or one of them makes no sense.
    #[error("the quote server's answer is no quote")]
    Garbage,
    /// Of another stock.
    #[error("the quote is for another stock")]
    OtherStock,
    /// For another user: `NA` of a question that it did not like.
    #[error("the quote is for another user")]
    OtherUser,
    /// Its stamp is a minute and more ahead of this front's clock.
    #[error("the quote has a future time stamp")]
    Ahead,
    /// Its stamp is a minute old already.
    #[error("the quote had expired when it arrived")]
    Old,
    /// It does not let itself be connected to: it was asked nothing, and that costs nothing.
    #[error("the quote server cannot be reached")]
    Unreached,
}

/// What asks for a quote.
#[must_use]
pub fn ask_line(symbol: StockSymbol, user: &UserName) -> String {
    format!("{symbol},{user}\n")
}

/// What the key of a quote is made of.
#[must_use]
pub fn signed_part(quote: &StockQuote) -> String {
    format!("{},{},{},{}", dollars(quote.price_cents), quote.symbol, quote.user, quote.server_ms)
}

/// A quote as the server writes it.
#[must_use]
pub fn reply_line(quote: &StockQuote) -> String {
    format!("{},{}\n", signed_part(quote), quote.key)
}

/// Reads the answer to a question for `symbol` and `user`.
///
/// # Errors
/// Why it is no quote.
pub fn read_reply(line: &[u8], symbol: StockSymbol, user: &UserName) -> Result<StockQuote, QuoteFault> {
    let text = core::str::from_utf8(line).map_err(|_| QuoteFault::Garbage)?.trim_end();
    let fields: Vec<&str> = text.splitn(5, ',').collect();
    let [price, stock, whose, time, key] = fields[..] else { return Err(QuoteFault::Garbage) };
    let is_key = (1..=KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|byte| byte.is_ascii_graphic());
    let price_cents = cents_of(price).filter(|cents| *cents > 0 && is_key).ok_or(QuoteFault::Garbage)?;
    let server_ms = time.parse().map_err(|_| QuoteFault::Garbage)?;
    if stock != symbol.as_str() {
        Err(QuoteFault::OtherStock)
    } else if whose != user.as_str() {
        Err(QuoteFault::OtherUser)
    } else {
        Ok(StockQuote { price_cents, symbol, user: whose.to_owned(), server_ms, key: key.to_owned() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_counts_only_if_it_is_the_one_that_was_asked_for() {
        let (symbol, user) = (StockSymbol::new("S").unwrap(), UserName::new("jo").unwrap());
        let read = |line: &str| read_reply(line.as_bytes(), symbol, &user);
        let quote = read("260.68,S,jo,1480000000000,IRrR7UeT=\n").unwrap();
        assert_eq!((quote.price_cents, quote.server_ms), (26_068, 1_480_000_000_000));
        assert_eq!(reply_line(&quote), "260.68,S,jo,1480000000000,IRrR7UeT=\n");
        assert_eq!(ask_line(symbol, &user), "S,jo\n");
        for (line, fault) in [
            ("260.68,T,jo,1,k\n", QuoteFault::OtherStock),
            ("260.68,S,NA,1,k\n", QuoteFault::OtherUser),
            ("260.68,S,jo,1\n", QuoteFault::Garbage),
            ("0.00,S,jo,1,k\n", QuoteFault::Garbage),
            ("-1.00,S,jo,1,k\n", QuoteFault::Garbage),
            ("1e3,S,jo,1,k\n", QuoteFault::Garbage),
            ("1.00,S,jo,soon,k\n", QuoteFault::Garbage),
            ("1.00,S,jo,1,\n", QuoteFault::Garbage),
            ("1.00,S,jo,1,<a b>\n", QuoteFault::Garbage),
            ("", QuoteFault::Garbage),
        ] {
            assert_eq!(read(line), Err(fault), "{line}");
        }
        assert_eq!(read_reply(&[0xff, b','], symbol, &user), Err(QuoteFault::Garbage));
        let long = format!("1.00,S,jo,1,{}", "k".repeat(KEY_BYTES_MAX + 1));
        assert_eq!(read(&long), Err(QuoteFault::Garbage));
    }
}
