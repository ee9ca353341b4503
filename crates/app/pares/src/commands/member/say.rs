//! `pares member say`: something to a trader, or to all.

use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, TraderId};
use pares_member::{TraderNews, TraderOptions};
use pares_types::{InstrumentId, Price, Quantity};

use super::Servers;
use crate::error::{CommandError, CommandResult};

/// Arguments of `pares member say`.
#[derive(clap::Args)]
pub(super) struct Args {
    #[command(flatten)]
    servers: Servers,
    /// Who says it: a trader's number, from 1
    #[arg(long = "as", value_name = "TRADER")]
    trader: u32,
    /// To whom; to all if not given
    #[arg(long, default_value_t = 0)]
    to: u32,
    /// As a note on that instrument
    #[arg(long, conflicts_with = "to")]
    note: Option<u32>,
    /// As a wish for a quote in that instrument, in place of words
    #[arg(long, conflicts_with = "note")]
    quote: Option<u32>,
    /// What
    #[arg(required_unless_present = "quote")]
    words: Vec<String>,
}

/// Says it, and waits until it stands in the stream.
pub(super) fn run(args: &Args) -> CommandResult {
    let mut client = args.servers.connect(args.trader, TraderOptions { from: None, books: false })?;
    let text = args.words.join(" ");
    let to = TraderId(args.to);
    let number = client.submit(&match (args.note, args.quote) {
        (Some(instrument), _) => ItemBody::Note { instrument: InstrumentId(instrument), text: &text },
        (_, Some(instrument)) => {
            let instrument = InstrumentId(instrument);
            ItemBody::QuoteRequest { to, instrument, quantity: Quantity(0) }
        }
        _ => ItemBody::Message { to, text: &text },
    });
    let (begun, mut stands) = (Instant::now(), None);
    while stands.is_none() {
        if begun.elapsed() > Duration::from_secs(10) {
            return Err(CommandError::io("saying it")(std::io::ErrorKind::TimedOut.into()));
        }
        client.wait(Duration::from_millis(100));
        client.poll(|news| match news {
            TraderNews::Item(item)
                if item.item.name
                    == (pares_desk::item::ItemName { trader: TraderId(args.trader), number }) =>
            {
                stands = Some(Ok(item.position.0));
            }
            TraderNews::Refused { refusal, .. } => stands = Some(Err(format!("{refusal:?}"))),
            _ => {}
        });
    }
    match stands {
        Some(Err(why)) => Err(CommandError::io("saying it")(std::io::Error::other(why))),
        position => {
            let position = position.and_then(Result::ok).unwrap_or_default();
            pares_text::tell!("it stands at position {position}");
            Ok(())
        }
    }
}

/// A price as people write it.
pub(super) fn price(price: Price) -> String {
    format!("{}.{:04}", price.0 / 10_000, (price.0 % 10_000).abs())
}
