//! The trade that is to be declared void.

use pares_node::{Layout, SystemConfig};
use pares_types::{BustedTrade, InstrumentId, Position, Side};

use crate::commands::history;
use crate::error::CommandError;

/// Reads `POSITION.EVENT`.
pub(super) fn trade_place(text: &str) -> Result<(u64, u16), String> {
    let parts = text
        .split_once('.')
        .and_then(|(position, event)| Some((position.parse().ok()?, event.parse().ok()?)));
    parts.ok_or_else(|| format!("`{text}` is not a trade; expected POSITION.EVENT, such as 8192.0"))
}

/// The trade as the record has it, with those who receive the bust.
pub(super) fn recorded_trade(
    instrument: InstrumentId,
    (position, index): (u64, u16),
    config: &SystemConfig,
    layout: &Layout,
) -> Result<BustedTrade, CommandError> {
    let place = (Position(position), u32::from(index));
    let (trade, [buy, sell]) = history::trade(instrument, place, config, layout)?;
    // In an auction the sell order is the resting one.
    let (buy, sell) = ((trade.buy.0, (trade.buy.1, buy)), (trade.sell.0, (trade.sell.1, sell)));
    let ((resting, resting_owner), (incoming, incoming_owner), resting_side) =
        if trade.aggressor == "sell" { (buy, sell, Side::Buy) } else { (sell, buy, Side::Sell) };
    let (position, price, quantity) = (Position(position), trade.price, trade.quantity);
    Ok(BustedTrade {
        position,
        index,
        resting,
        incoming,
        price,
        quantity,
        resting_side,
        resting_owner,
        incoming_owner,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trades_are_named_as_history_shows_them() {
        assert_eq!(trade_place("8192.3"), Ok((8_192, 3)));
        for wrong in ["8192", "1.", ".1", "1.70000"] {
            assert!(trade_place(wrong).is_err(), "{wrong}");
        }
    }
}
