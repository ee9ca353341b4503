//! The stand-in for the legacy quote server: what it answers, and after how long. Everything is drawn from a seed.
//!
//! A stand-in that answers at once and always well proves nothing about a front. This one does what was measured of the server: it delays by whole seconds, by their
//! weights, stamps *before* the delay, and moves the price at every question. If asked to, it also does everything else that such a server does.
//! A quote's key is left to the edge, which can sign.

use std::collections::BTreeMap;

use pares_broker::{StockQuote, StockSymbol};
use pares_random::Random;

/// A delay of so many whole seconds in so many of a thousand answers.
const DELAYS: [(u64, u64); 5] = [(0, 660), (1, 155), (2, 85), (3, 55), (4, 45)];
/// What the way to the server and back adds, ms.
const WAY_MS: u64 = 9;
/// Prices stay within these, cents.
const PRICES: (u64, u64) = (101, 499_900);
/// A stock's first price, cents: evenly spread by its logarithm.
const FIRST_PRICES: [u64; 16] = [
    590, 815, 1_140, 1_590, 2_210, 3_080, 4_300, 5_990, 8_350, 11_640, 16_230, 22_620, 31_530, 43_950,
    61_270, 85_400,
];
/// What a question makes of a price, in thousandths: the 32 quantiles of a logarithm with mean 0.09 and deviation 0.37.
const STEPS: [u64; 32] = [
    493, 589, 648, 694, 734, 771, 805, 837, 868, 898, 928, 958, 987, 1_017, 1_048, 1_078, 1_110, 1_143,
    1_177, 1_213, 1_250, 1_290, 1_333, 1_379, 1_431, 1_488, 1_553, 1_630, 1_725, 1_849, 2_034, 2_428,
];
/// Longest user that is repeated, bytes.
const USER_BYTES_MAX: usize = 64;
/// By so much a stamp is wrong, ms.
const HOUR_MS: u64 = 3_600_000;

/// How the stand-in behaves.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StandInSettings {
    /// What everything is drawn from.
    pub seed: u64,
    /// No delay at all.
    pub is_instant: bool,
    /// How many of a thousand questions it answers badly: it says nothing, closes early, or sends garbage, `NA`, another stock, no price or a price beyond all money, or a stamp that is an hour off.
    pub bad_per_mille: u64,
}

/// What the stand-in says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StandInWords {
    /// A quote, still without its key.
    Quote(StockQuote),
    /// This text; nothing, if it is empty; and closes.
    Text(String),
    /// Nothing, for ever.
    Silence,
}

/// An answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StandInAnswer {
    /// To be said after so long, ms.
    pub delay_ms: u64,
    /// What is said.
    pub words: StandInWords,
}

/// The stand-in: its settings, prices, and what is left to draw.
#[derive(Clone, Debug)]
pub struct StandIn {
    settings: StandInSettings,
    draw: Random,
    prices: BTreeMap<StockSymbol, u64>,
    hits: u64,
}

impl StandIn {
    /// A server that has been asked nothing.
    #[must_use]
    pub fn new(settings: StandInSettings) -> Self {
        Self { settings, draw: Random::new(settings.seed), prices: BTreeMap::new(), hits: 0 }
    }

    /// How often it was asked.
    #[must_use]
    pub fn hits(&self) -> u64 {
        self.hits
    }

    /// Answers a line, without its end, that came at `now_ms`.
    pub fn answer(&mut self, line: &[u8], now_ms: u64) -> StandInAnswer {
        self.hits += 1;
        let delay_ms = self.delay();
        let words = match question(line) {
            Some((symbol, user)) => self.words(symbol, user, now_ms),
            None => StandInWords::Text(format!("0.00,NA,NA,{now_ms},NA\n")),
        };
        StandInAnswer { delay_ms, words }
    }

    fn words(&mut self, symbol: StockSymbol, user: String, now_ms: u64) -> StandInWords {
        let price_cents = self.step(symbol);
        let quote = StockQuote { price_cents, symbol, user, server_ms: now_ms, key: String::new() };
        if self.draw.below(1_000) >= self.settings.bad_per_mille {
            return StandInWords::Quote(quote);
        }
        match self.draw.below(10) {
            0 => StandInWords::Silence,
            1 => StandInWords::Text(String::new()),
            2 => StandInWords::Text("<html>502 Bad Gateway</html>\n".to_owned()),
            3 => StandInWords::Quote(StockQuote { user: "NA".to_owned(), ..quote }),
            4 => StandInWords::Quote(StockQuote { symbol: other(symbol), ..quote }),
            5 => StandInWords::Text("without end ".repeat(200)),
            6 => StandInWords::Text(format!("0.00,{symbol},{},{now_ms},none\n", quote.user)),
            7 => StandInWords::Text(format!("1{:030}.00,{symbol},{},{now_ms},all\n", 0, quote.user)),
            8 => StandInWords::Quote(StockQuote { server_ms: now_ms + HOUR_MS, ..quote }),
            _ => StandInWords::Quote(StockQuote { server_ms: now_ms.saturating_sub(HOUR_MS), ..quote }),
        }
    }

    /// The stock's next price.
    fn step(&mut self, symbol: StockSymbol) -> u64 {
        let drawn = self.draw.below(32) as usize;
        let price = match self.prices.get(&symbol) {
            Some(price) => price * STEPS[drawn] / 1_000,
            None => FIRST_PRICES[drawn / 2],
        };
        let price = price.clamp(PRICES.0, PRICES.1);
        self.prices.insert(symbol, price);
        price
    }

    fn delay(&mut self) -> u64 {
        let mut drawn = self.draw.below(1_000);
        if self.settings.is_instant {
            return 0;
        }
        for (seconds, weight) in DELAYS {
            match drawn.checked_sub(weight) {
                Some(left) => drawn = left,
                None => return seconds * 1_000 + WAY_MS,
            }
        }
        WAY_MS
    }
}

fn other(symbol: StockSymbol) -> StockSymbol {
    let oy = StockSymbol::new("OY").expect("two letters");
    if symbol == oy { StockSymbol::new("YO").expect("two letters") } else { oy }
}

/// The stock, in upper case and cut to three letters, and the user.
fn question(line: &[u8]) -> Option<(StockSymbol, String)> {
    let (symbol, user) = core::str::from_utf8(line).ok()?.trim().split_once(',')?;
    let symbol: String = symbol.chars().take(3).map(|letter| letter.to_ascii_uppercase()).collect();
    let is_user = (1..=USER_BYTES_MAX).contains(&user.len())
        && user.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',');
    let symbol = StockSymbol::new(&symbol).filter(|_| is_user)?;
    Some((symbol, user.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answers(settings: StandInSettings, count: usize) -> Vec<StandInAnswer> {
        let mut server = StandIn::new(settings);
        (0..count).map(|_| server.answer(b"S,jo", 7)).collect()
    }

    #[test]
    fn delays_match_measured_weights_prices_stay_bounded() {
        let answers = answers(StandInSettings { seed: 3, ..StandInSettings::default() }, 20_000);
        for (seconds, weight) in DELAYS {
            let count = answers.iter().filter(|answer| answer.delay_ms == seconds * 1_000 + WAY_MS).count();
            assert!(count.abs_diff(weight as usize * 20) < 300, "{seconds} s: {count}");
        }
        let mut prices = std::collections::BTreeSet::new();
        for answer in answers {
            let StandInWords::Quote(quote) = answer.words else { panic!("{answer:?}") };
            assert!((PRICES.0..=PRICES.1).contains(&quote.price_cents));
            assert_eq!(quote.server_ms, 7, "stamped before the delay");
            prices.insert(quote.price_cents);
        }
        assert!(prices.len() > 1_000, "every question moves the price");
    }

    #[test]
    fn same_seed_repeats_answers_and_fault_rate() {
        let settings = StandInSettings { seed: 9, is_instant: true, bad_per_mille: 200 };
        let first = answers(settings, 2_000);
        assert_eq!(first, answers(settings, 2_000));
        assert_ne!(first, answers(StandInSettings { seed: 10, ..settings }, 2_000));
        let jo = |answer: &&StandInAnswer| match &answer.words {
            StandInWords::Quote(quote) => {
                quote.user == "jo" && quote.symbol.as_str() == "S" && quote.server_ms == 7
            }
            _ => false,
        };
        let good = first.iter().filter(jo).count();
        assert!((1_500..1_700).contains(&good), "{good}");
        assert!(first.iter().any(|answer| answer.words == StandInWords::Silence));
        assert!(first.iter().all(|answer| answer.delay_ms == 0));
    }

    #[test]
    fn a_question_is_cut_to_three_letters_and_a_bad_one_has_no_user() {
        let mut server = StandIn::new(StandInSettings::default());
        let StandInWords::Quote(quote) = server.answer(b"abcd,jo\r", 1).words else { panic!("no quote") };
        assert_eq!((quote.symbol.as_str(), quote.user.as_str()), ("ABC", "jo"));
        for line in [&b"ABC"[..], b"", b",jo", b"ABC,", b"A1,jo", b"ABC,j o", &[0xff, b',', b'j']] {
            let words = server.answer(line, 1).words;
            assert_eq!(words, StandInWords::Text("0.00,NA,NA,1,NA\n".to_owned()), "{line:?}");
        }
        assert_eq!(server.hits(), 8);
    }
}
