//! `pares member say`: something to a trader, or to all.

use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, ItemName, TraderId};
use pares_member::{TraderNews, TraderOptions};
use pares_types::{InstrumentId, Quantity};

use super::Servers;
use crate::error::{CommandError, CommandResult};

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// What is to be done when it took longer.
const UNTOLD: &str = "no server confirmed the message within 10 s. Check `pares member watch --from 0` before you send it again, and that at least `quorum` (member.toml) servers are up";

/// Arguments of `pares member say`.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    servers: Servers,
    /// The sending trader's number, from 1
    #[arg(long = "as", value_name = "TRADER", value_parser = clap::value_parser!(u32).range(1..0xffff_0000))]
    trader: u32,
    /// The receiving trader's number [default: all]
    #[arg(long, default_value_t = 0)]
    to: u32,
    /// Attach the message to this instrument as a note
    #[arg(long, conflicts_with = "to", value_name = "INSTRUMENT")]
    note: Option<u32>,
    /// Request a quote in this instrument instead of sending a message
    #[arg(long, conflicts_with = "note", value_name = "INSTRUMENT")]
    quote: Option<u32>,
    /// Shares that the quote request is for
    #[arg(long, default_value_t = 0, requires = "quote")]
    quantity: u64,
    /// The message
    #[arg(required_unless_present = "quote", conflicts_with = "quote")]
    words: Vec<String>,
}

impl Args {
    fn body<'a>(&self, text: &'a str) -> ItemBody<'a> {
        let to = TraderId(self.to);
        match (self.note, self.quote) {
            (Some(instrument), _) => ItemBody::Note { instrument: InstrumentId(instrument), text },
            (_, Some(instrument)) => ItemBody::QuoteRequest {
                to,
                instrument: InstrumentId(instrument),
                quantity: Quantity(self.quantity),
            },
            _ => ItemBody::Message { to, text },
        }
    }
}

/// Says it, and waits until it stands in the stream.
pub(super) fn run(args: &Args) -> CommandResult {
    let options = TraderOptions { from: None, books: false };
    let mut client = args.servers.connect(args.trader, options)?;
    let submitted = client.submit(&args.body(&args.words.join(" ")));
    let number = submitted.map_err(|error| CommandError::io("saying it")(std::io::Error::other(error)))?;
    let mut name = ItemName { trader: TraderId(args.trader), number };
    let (begun, mut stands) = (Instant::now(), None);
    while stands.is_none() && begun.elapsed() < PATIENCE {
        client.wait(Duration::from_millis(100));
        client.poll(|news| match news {
            TraderNews::Renumbered { from, to } if from == name.number => name.number = to,
            TraderNews::Item(item) if item.item.name == name => stands = Some(Ok(item.position)),
            TraderNews::Refused { refusal, .. } => stands = Some(Err(refusal.meaning().to_owned())),
            _ => {}
        });
    }
    let stands = stands.unwrap_or_else(|| Err(UNTOLD.into()));
    let position = stands.map_err(|why| CommandError::io("saying it")(std::io::Error::other(why)))?;
    pares_text::tell!("sent, at position {position}");
    Ok(())
}
