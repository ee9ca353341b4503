//! What clients say on a socket.

use std::collections::BTreeMap;

use pares_resources::decimal::natural;
use pares_types::ShardId;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::session::EVERY_SHARD;
use crate::spoken::of_json;
use crate::watching::{MarketChannel, Watched};

/// Shards that one socket may name.
const SHARDS_MAX: usize = 1_024;
const FORM: &str =
    "expected {\"op\":\"subscribe\",\"channel\":\"orders\"}, or a market channel with a \"symbol\"";

/// What a client says.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Wish {
    /// `subscribe`.
    op: String,
    /// `orders`, `book`, `trades`, `ticker` or `candles`.
    channel: String,
    /// Of all but orders: the instrument's.
    symbol: Option<String>,
    /// Of candles: `1m` (if nothing is said), `5m`, `1h` or `1d`.
    interval: Option<String>,
    /// Of trades: the number of the last one that the client has.
    after: Option<String>,
    /// Of shards, the number that comes next for the client. All shards from now on, if it is left out.
    from: Option<BTreeMap<String, String>>,
}

/// What it wants.
pub(crate) enum Wished {
    /// The member's stream, of these shards from these numbers on; else of all shards from now on.
    Orders(Option<Vec<(ShardId, u64)>>),
    /// A channel of the market; of trades those behind a number.
    Market(Watched, Option<String>),
}

/// Reads a message.
pub(crate) fn read(text: &[u8]) -> Result<Wished, &'static str> {
    let Wish { op, channel, symbol, interval, after, from } = of_json(text).map_err(|_| FORM)?;
    match (op.as_str(), channel.as_str(), symbol, from) {
        ("subscribe", "orders", None, from) if interval.is_none() && after.is_none() => {
            let from = from
                .map(|from| numbers(&from).ok_or("from must be an object of shards and numbers"))
                .transpose()?;
            Ok(Wished::Orders(from))
        }
        ("subscribe", channel, Some(symbol), None) => {
            let channel = MarketChannel::of(channel, interval.as_deref()).map_err(|_| FORM)?;
            if after.is_some() && channel != MarketChannel::Trades {
                return Err("after is allowed for trades only");
            }
            Ok(Wished::Market(Watched { channel, symbol }, after))
        }
        _ => Err(FORM),
    }
}

fn numbers(from: &BTreeMap<String, String>) -> Option<Vec<(ShardId, u64)>> {
    if from.is_empty() || from.len() > SHARDS_MAX {
        return None;
    }
    let shard = |text: &str| u16::try_from(natural(text)?).ok().filter(|shard| *shard != EVERY_SHARD);
    let one = |(of, number): (&String, &String)| Some((ShardId(shard(of)?), natural(number)?));
    from.iter().map(one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_trades_are_told_from_behind_a_number() {
        let told = |channel: &str| {
            let text = format!(
                "{{\"op\":\"subscribe\",\"channel\":\"{channel}\",\"symbol\":\"ABC\",\"after\":\"1\"}}"
            );
            read(text.as_bytes()).is_ok()
        };
        assert_eq!(["trades", "book", "ticker", "candles"].map(told), [true, false, false, false]);
    }
}
