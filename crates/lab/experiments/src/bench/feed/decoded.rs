//! Packets become messages: every field that a book needs is read.

use std::hint::black_box;

use pares_feed::itch::FeedMessage;
use pares_feed::mold::Packet;

use super::Rates;
use super::packets::Packets;

pub(super) fn round(packets: &Packets, rates: &mut Rates) {
    let messages = rates.time(packets.messages(), || decode(packets));
    assert_eq!(messages, packets.messages(), "every message is read");
}

fn decode(packets: &Packets) -> u64 {
    let mut read = 0;
    for packet in packets.iter() {
        let packet = Packet::read(packet).expect("packed above");
        for (_, message) in packet.messages() {
            if let Some(message) = FeedMessage::read(message) {
                take(&message);
                read += 1;
            }
        }
    }
    read
}

#[inline(always)]
fn take(message: &FeedMessage<'_>) {
    let locate = message.head().locate.get();
    match message {
        FeedMessage::AddOrder(of) => {
            black_box((locate, of.reference.get(), of.side, of.shares.get(), of.price.get()));
        }
        FeedMessage::Executed(of) => {
            black_box((locate, of.reference.get(), of.shares.get()));
        }
        FeedMessage::ExecutedAt(of) => {
            black_box((locate, of.reference.get(), of.shares.get(), of.printable, of.price.get()));
        }
        FeedMessage::Cancelled(of) => {
            black_box((locate, of.reference.get(), of.shares.get()));
        }
        FeedMessage::Deleted(of) => {
            black_box((locate, of.reference.get()));
        }
        FeedMessage::Replaced(of) => {
            let (original, reference) = (of.original.get(), of.reference.get());
            black_box((locate, original, reference, of.shares.get(), of.price.get()));
        }
        FeedMessage::Trade(of) => {
            black_box((locate, of.shares.get(), of.price.get()));
        }
        other => {
            black_box(other);
        }
    }
}
