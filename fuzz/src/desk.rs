//! What a member's servers, their peers and traders say to each other, and the items in their logs.

use pares_desk::frame::{self, DeskSignOn, DeskSignedOn, PeerHello};
use pares_desk::item::{ItemBody, ItemName, OrderedItem, SubmittedItem, TraderId};
use pares_desk::view::{BookView, ToldView, ViewLevel};
use pares_types::{Epoch, GatewayId, InstrumentId, Position, Price, Quantity, RequestId, ShardId};
use zerocopy::{FromZeros, IntoBytes};

/// A stream from either end: each frame is read or refused, and the books in it are what they say.
pub fn frames(mut bytes: &[u8]) {
    while let Ok(Some((kind, payload, rest))) = frame::split(bytes, frame::NEWS_BYTES_MAX) {
        assert!(rest.len() < bytes.len(), "every frame takes the reader forward");
        if let Ok(frame::DeskRequest::Submit { kind, body, .. }) = frame::read_request(kind, payload) {
            let _ = ItemBody::read(kind, body);
        }
        match frame::read_news(kind, payload) {
            Ok(frame::DeskNews::Book(book)) => view(book),
            Ok(frame::DeskNews::Ended(cut_off)) => {
                let mut again = Vec::new();
                frame::write_ended(&mut again, cut_off);
                let (kind, payload, _) = frame::split(&again, 64).expect("a frame").expect("and whole");
                assert_eq!(frame::read_news(kind, payload), Ok(frame::DeskNews::Ended(cut_off)));
            }
            _ => {}
        }
        bytes = rest;
    }
}

fn view(bytes: &[u8]) {
    let Some(told) = ToldView::read(bytes) else { return };
    let mut again = Vec::new();
    told.view.write(told.key, told.sequence, &mut again);
    if let Some(read) = ToldView::read(&again) {
        assert_eq!((read.key, read.sequence), (told.key, told.sequence), "as written");
        assert_eq!((read.view.bids, read.view.offers), (told.view.bids, told.view.offers), "as written");
    }
}

/// Reads a record of either log: an item is written as it was read, and so is what it says.
pub fn items(bytes: &[u8]) {
    if let Ok(item) = SubmittedItem::read(bytes) {
        let mut again = Vec::new();
        item.write(&mut again);
        assert_eq!(SubmittedItem::read(&again), Ok(item), "as read");
        said(&item);
    }
    if let Ok(item) = OrderedItem::read(bytes) {
        let mut again = Vec::new();
        item.write(&mut again);
        assert_eq!(OrderedItem::read(&again), Ok(item), "as read");
    }
}

fn said(item: &SubmittedItem<'_>) {
    let Ok(body) = item.says() else { return };
    let _ = body.reply();
    let mut again = Vec::new();
    body.write(&mut again);
    assert_eq!(ItemBody::read(body.kind(), &again), Ok(body), "as read");
}

fn bodies() -> Vec<(u8, Vec<u8>)> {
    let (to, instrument, quantity) = (TraderId(3), InstrumentId(1), Quantity(50));
    let frame = crate::frames::gateway_seeds().swap_remove(0);
    let bodies = [
        ItemBody::Message { to, text: "hello" },
        ItemBody::Note { instrument, text: "late" },
        ItemBody::QuoteRequest { to, instrument, quantity },
        ItemBody::IndicativeQuote {
            to,
            instrument,
            bid: (Price(-5), quantity),
            offer: (Price(9), quantity),
            answers: 4,
        },
        ItemBody::Report { shard: ShardId(2), frame: &frame[..frame.len().min(64)] },
    ];
    let written = |body: &ItemBody<'_>| {
        let mut bytes = Vec::new();
        body.write(&mut bytes);
        (body.kind(), bytes)
    };
    bodies.iter().map(written).collect()
}

/// An item of each kind, in each log.
#[must_use]
pub fn item_seeds() -> Vec<Vec<u8>> {
    let mut seeds = Vec::new();
    for (kind, body) in bodies() {
        let name = ItemName { trader: TraderId(3), number: 9 };
        let request = RequestId::new(GatewayId(1), 5);
        let item = SubmittedItem { name, request, stamp_ns: 1_700_000_000_000_000_000, kind, body: &body };
        let ordered = OrderedItem { epoch: Epoch(1), position: Position(7), repeats: None, item };
        let (mut submitted, mut placed) = (Vec::new(), Vec::new());
        item.write(&mut submitted);
        ordered.write(&mut placed);
        seeds.extend([submitted, placed]);
    }
    seeds
}

/// What each side says.
#[must_use]
pub fn frame_seeds() -> Vec<Vec<u8>> {
    use frame::kind;
    let level = |price| ViewLevel { price: Price(price), quantity: Quantity(10), orders: 2 };
    let book = BookView {
        symbol: "ABC".to_owned(),
        state: b'T',
        last: Some((Price(7), Quantity(3))),
        indicative: None,
        bids: vec![level(6), level(5)],
        offers: vec![level(8)],
    };
    let mut view = Vec::new();
    book.write((3, 1), 9, &mut view);
    let (mut traders, mut servers) = (Vec::new(), Vec::new());
    frame::write(&mut traders, kind::SIGN_ON, &[DeskSignOn::new_zeroed().as_bytes()]);
    for (at, (kind, body)) in bodies().into_iter().enumerate() {
        frame::write_submit(&mut traders, 1 + at as u64, kind, &body);
    }
    frame::write(&mut traders, kind::PEER_HELLO, &[PeerHello::new_zeroed().as_bytes()]);
    frame::write_through(&mut traders, kind::ASK, Position(5));
    frame::write(&mut servers, kind::SIGNED_ON, &[DeskSignedOn::new_zeroed().as_bytes()]);
    frame::write(&mut servers, kind::BOOK, &[&view]);
    frame::write_through(&mut servers, kind::ALIVE, Position(6));
    frame::write_ended(&mut servers, frame::CutOff::of(1).expect("a reason"));
    vec![[traders.clone(), servers.clone()].concat(), traders, servers]
}
