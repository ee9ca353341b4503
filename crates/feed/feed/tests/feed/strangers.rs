//! Decoders that are not ours read the messages.

use itchy::{Body, MessageStream};
use moldudp::PacketKind;
use pares_feed::itch::FeedMessage;
use pares_feed::mold::Packing;

use crate::tape;

#[test]
fn itchy_reads_every_message_and_finds_the_same_numbers_in_it() {
    let mut kinds = std::collections::BTreeSet::new();
    for seed in 0..100 {
        for published in tape(seed).0 {
            let stream: Vec<u8> = published
                .messages
                .iter()
                .flat_map(|message| [&(message.len() as u16).to_be_bytes()[..], message].concat())
                .collect();
            let read = MessageStream::from_reader(&stream[..]).map(|message| message.unwrap());
            let read: Vec<itchy::Message> = read.collect();
            assert_eq!(read.len(), published.messages.len());
            for (ours, theirs) in published.messages.iter().zip(&read) {
                let ours = FeedMessage::read(ours).unwrap();
                let head = ours.head();
                assert_eq!((head.kind, head.locate.get()), (theirs.tag, theirs.stock_locate));
                assert_eq!(head.time_ns(), theirs.timestamp);
                assert_alike(&ours, &theirs.body);
                kinds.insert(head.kind as char);
            }
        }
    }
    assert_eq!(kinds.into_iter().collect::<String>(), "ABCDEHIPQRSUX", "all kinds occur");
}

#[test]
fn moldudp_reads_every_packet_and_finds_the_same_messages_in_it() {
    let mut read = 0;
    for published in (0..20).flat_map(|seed| tape(seed).0) {
        let (mut packing, mut packets, mut expected) = (Packing::new(published.session, 1), Vec::new(), 1);
        for message in &published.messages {
            if !packing.push(message) {
                packets.push(packing.take().to_vec());
                assert!(packing.push(message));
            }
        }
        packets.extend([packing.take().to_vec(), packing.take().to_vec(), packing.end().to_vec()]);
        for packet in &packets {
            let theirs = moldudp::Packet::new(packet);
            assert_eq!(theirs.session_ident().as_bytes(), published.session.0);
            assert_eq!(theirs.seq_num(), expected);
            for message in &theirs {
                assert_eq!(message.data(), published.messages[expected as usize - 1]);
                assert_eq!(usize::from(message.length()), message.data().len());
                expected += 1;
            }
        }
        assert_eq!(expected, published.messages.len() as u64 + 1);
        let kinds =
            packets[packets.len() - 2..].iter().map(|packet| moldudp::Packet::new(packet).packet_kind());
        assert!(matches!(kinds.collect::<Vec<_>>()[..], [PacketKind::Heartbeat, PacketKind::EndOfSession]));
        read += packets.len();
    }
    assert!(read > 100, "{read} packets");
}

fn assert_alike(ours: &FeedMessage<'_>, theirs: &Body) {
    match (ours, theirs) {
        (FeedMessage::AddOrder(of), Body::AddOrder(body)) => {
            assert_eq!((of.reference.get(), of.shares.get()), (body.reference, body.shares));
            assert_eq!(of.price.get(), body.price.raw());
        }
        (FeedMessage::Executed(of), Body::OrderExecuted { reference, executed, match_number }) => {
            assert_eq!((of.reference.get(), of.shares.get()), (*reference, *executed));
            assert_eq!(of.match_number.get(), *match_number);
        }
        (
            FeedMessage::ExecutedAt(of),
            Body::OrderExecutedWithPrice { reference, executed, printable, price, .. },
        ) => {
            assert_eq!((of.reference.get(), of.shares.get()), (*reference, *executed));
            assert_eq!((of.printable == b'Y', of.price.get()), (*printable, price.raw()));
        }
        (FeedMessage::Cancelled(of), Body::OrderCancelled { reference, cancelled }) => {
            assert_eq!((of.reference.get(), of.shares.get()), (*reference, *cancelled));
        }
        (FeedMessage::Deleted(of), Body::DeleteOrder { reference }) => {
            assert_eq!(of.reference.get(), *reference);
        }
        (FeedMessage::Replaced(of), Body::ReplaceOrder(body)) => {
            assert_eq!((of.original.get(), of.reference.get()), (body.old_reference, body.new_reference));
            assert_eq!((of.shares.get(), of.price.get()), (body.shares, body.price.raw()));
        }
        (FeedMessage::Trade(of), Body::NonCrossTrade(body)) => {
            assert_eq!((of.shares.get(), of.price.get()), (body.shares, body.price.raw()));
            assert_eq!(of.match_number.get(), body.match_number);
        }
        (FeedMessage::Cross(of), Body::CrossTrade(body)) => {
            assert_eq!((of.shares.get(), of.price.get()), (body.shares, body.cross_price.raw()));
            assert_eq!(of.match_number.get(), body.match_number);
        }
        (FeedMessage::Broken(of), Body::BrokenTrade { match_number }) => {
            assert_eq!(of.match_number.get(), *match_number);
        }
        (FeedMessage::Imbalance(of), Body::Imbalance(body)) => {
            assert_eq!((of.paired.get(), of.imbalance.get()), (body.paired_shares, body.imbalance_shares));
            assert_eq!(of.near.get(), body.near_price.raw());
        }
        (FeedMessage::Directory(of), Body::StockDirectory(body)) => {
            assert_eq!((&of.stock[..], of.round_lot.get()), (body.stock.as_bytes(), body.round_lot_size));
        }
        (FeedMessage::TradingAction(of), Body::TradingAction { stock, reason, .. }) => {
            assert_eq!((&of.stock[..], &of.reason[..]), (stock.as_bytes(), reason.as_bytes()));
        }
        (FeedMessage::SystemEvent(_), Body::SystemEvent { .. }) => {}
        (ours, theirs) => panic!("{ours:?} was read as {theirs:?}"),
    }
}
