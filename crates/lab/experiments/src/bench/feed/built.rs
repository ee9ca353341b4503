//! Packets become messages and books.

use pares_feed::books::ReceivedBooks;
use pares_feed::mold::Packet;
use pares_load::LabError;
use pares_types::Side;

use super::Rates;
use super::packets::Packets;

/// One round; orders that live at the end.
///
/// # Errors
/// If a message fits nothing.
pub(super) fn round(opening: &Packets, trading: &Packets, rates: &mut Rates) -> Result<u64, LabError> {
    let mut books = ReceivedBooks::with_seed(0);
    apply(&mut books, opening);
    rates.time(trading.messages(), || apply(&mut books, trading));
    if books.misfits > 0 {
        return Err(LabError::Failed(format!("{} messages fit nothing", books.misfits)));
    }
    let sides = books.all().flat_map(|(_, book)| [Side::Buy, Side::Sell].map(|side| book.levels(side)));
    Ok(sides.flatten().map(|(_, _, orders)| orders).sum())
}

fn apply(books: &mut ReceivedBooks, packets: &Packets) {
    let mut messages = Vec::new();
    for packet in packets.iter() {
        let packet = Packet::read(packet).expect("packed above");
        messages.clear();
        messages.extend(packet.messages().map(|(_, message)| message));
        books.on_messages(&messages);
    }
}
