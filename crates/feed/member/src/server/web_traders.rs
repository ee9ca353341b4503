//! What web traders say: JSON, one object a text (docs/protocols/member.md, *WebSocket*).

use pares_desk::frame::{CutOff, FROM_NOW, Refusal, WANTS_BOOKS, WANTS_LOCAL};
use pares_desk::item::{ItemBody, ItemName, TraderId};
use pares_roles::World;
use pares_types::{InstrumentId, Price, Quantity};
use serde::Deserialize;
use serde_json::json;

use super::MemberServer;
use super::connections::Who;
use super::traders::SignsOn;
use super::web::write_text;
use crate::world::Dial;

/// What a web trader may say.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
enum Says {
    SignOn {
        trader: u32,
        next: Option<u64>,
        #[serde(default)]
        stream: Option<String>,
        #[serde(default)]
        books: bool,
    },
    Submit {
        number: u64,
        #[serde(flatten)]
        what: What,
    },
}

#[derive(Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum What {
    Message {
        #[serde(default)]
        to: u32,
        text: String,
    },
    Note {
        #[serde(default)]
        instrument: u32,
        text: String,
    },
    QuoteRequest {
        #[serde(default)]
        to: u32,
        instrument: u32,
        #[serde(default)]
        quantity: u64,
    },
    Quote {
        #[serde(default)]
        to: u32,
        instrument: u32,
        bid: Option<(String, u64)>,
        offer: Option<(String, u64)>,
        #[serde(default)]
        answers: Option<u64>,
    },
}

/// A price as text, with at most four decimals.
fn price(text: &str) -> Option<Price> {
    let (sign, digits) = text.strip_prefix('-').map_or((1, text), |digits| (-1, digits));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || part.len() > 4 || !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let part: i64 = format!("{part:0<4}").parse().ok()?;
    let units = whole.parse::<i64>().ok()?.checked_mul(10_000)?.checked_add(part)?;
    Some(Price(sign * units))
}

fn pair(pair: Option<&(String, u64)>) -> Option<(Price, Quantity)> {
    pair.map_or(Some((Price(0), Quantity(0))), |(at, quantity)| Some((price(at)?, Quantity(*quantity))))
}

impl What {
    /// As an item; `None` if a price is none.
    fn body(&self) -> Option<ItemBody<'_>> {
        Some(match self {
            Self::Message { to, text } => ItemBody::Message { to: TraderId(*to), text },
            Self::Note { instrument, text } => ItemBody::Note { instrument: InstrumentId(*instrument), text },
            Self::QuoteRequest { to, instrument, quantity } => ItemBody::QuoteRequest {
                to: TraderId(*to),
                instrument: InstrumentId(*instrument),
                quantity: Quantity(*quantity),
            },
            Self::Quote { to, instrument, bid, offer, answers } => ItemBody::IndicativeQuote {
                to: TraderId(*to),
                instrument: InstrumentId(*instrument),
                bid: pair(bid.as_ref())?,
                offer: pair(offer.as_ref())?,
                answers: answers.map_or(0, |position| position.saturating_add(1)),
            },
        })
    }
}

impl<W: World, S: Dial> MemberServer<W, S> {
    /// Reads what has come on a web connection. Says how many texts that was.
    pub(super) fn hear_web(&mut self, slot: usize, now_ns: u64) -> usize {
        let mut heard = 0;
        while let Some(text) =
            self.connections.get_mut(slot).and_then(|connection| connection.next_text(now_ns))
        {
            heard += 1;
            self.on_text(slot, &text);
        }
        self.unsent |= heard > 0;
        heard
    }

    fn on_text(&mut self, slot: usize, text: &str) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let who = connection.who.clone();
        match (serde_json::from_str(text), who) {
            (Ok(Says::SignOn { trader, next, stream, books }), Who::Stranger { .. }) => {
                let stream = stream.map_or(Some(0), |stream| stream.parse().ok());
                let wants = WANTS_LOCAL | if books { WANTS_BOOKS } else { 0 };
                let next = next.unwrap_or(FROM_NOW);
                match stream {
                    Some(stream) => {
                        self.on_sign_on(slot, SignsOn { trader: TraderId(trader), wants, stream, next });
                    }
                    None => connection.end(CutOff::OtherStream),
                }
            }
            (Ok(Says::Submit { number, what }), Who::Trader { trader }) => {
                self.on_web_submit(slot, ItemName { trader, number }, &what);
            }
            (Err(error), Who::Trader { .. }) => {
                let answer = json!({ "type": "error", "what": error.to_string() }).to_string();
                self.say(slot, |out| write_text(out, &answer));
            }
            _ => connection.end(CutOff::Malformed),
        }
    }

    fn on_web_submit(&mut self, slot: usize, name: ItemName, what: &What) {
        let mut bytes = Vec::new();
        match what.body() {
            Some(body) => {
                body.write(&mut bytes);
                self.on_submit(slot, name, body.kind(), &bytes);
            }
            None => self.refuse(slot, name.number, Refusal::Malformed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prices_are_read_as_they_are_written() {
        let cases = [("12.3456", 123_456), ("-0.5", -5_000), ("7", 70_000), ("0.0001", 1)];
        for (text, units) in cases {
            assert_eq!(price(text), Some(Price(units)), "{text}");
        }
        for text in ["", ".5", "1.23456", "1e3", "+1", "--1", "1.-2", "99999999999999999999"] {
            assert_eq!(price(text), None, "{text}");
        }
    }

    #[test]
    fn what_a_web_trader_submits_becomes_an_item() {
        let text =
            r#"{"type":"submit","number":4,"kind":"quote","instrument":1,"bid":["10.5",100],"answers":7}"#;
        let Ok(Says::Submit { number: 4, what }) = serde_json::from_str(text) else { panic!() };
        let ItemBody::IndicativeQuote { bid, offer, answers, .. } = what.body().unwrap() else { panic!() };
        assert_eq!((bid, offer.1, answers), ((Price(105_000), Quantity(100)), Quantity(0), 8));
        assert!(serde_json::from_str::<Says>(r#"{"type":"submit","number":4,"kind":"report"}"#).is_err());
    }
}
