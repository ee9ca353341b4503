//! A terminal told things, typed into, and drawn into memory.

use pares_desk::item::{ItemBody, ItemName, OrderedItem, SubmittedItem, TraderId};
use pares_desk::view::{BookView, ToldView, ViewLevel};
use pares_member::TraderNews;
use pares_member::sources::MarketState;
use pares_types::{
    ClientOrderId, Epoch, GatewayId, InstrumentId, OrderId, Position, Price, Quantity, Reply, RequestId,
    Role, ShardId, Side, Trade,
};
use pares_wire::frame as entry;
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::command::{Command, HELP, Ticket, Words, read};
use super::state::TerminalState;
use super::view::draw;

fn told(state: &mut TerminalState, from: u32, body: &ItemBody<'_>) {
    let mut bytes = Vec::new();
    body.write(&mut bytes);
    let item = SubmittedItem {
        name: ItemName { trader: TraderId(from), number: 1 },
        request: RequestId::new(GatewayId(0), 1),
        stamp_ns: 0,
        kind: body.kind(),
        body: &bytes,
    };
    let ordered = OrderedItem { epoch: Epoch(1), position: Position(0), repeats: None, item };
    state.on_news(TraderNews::Item(ordered));
}

fn book(locate: u16, symbol: &str) -> TraderNews<'static> {
    let level = |price| ViewLevel { price: Price(price), quantity: Quantity(300), orders: 2 };
    let view = BookView {
        symbol: symbol.into(),
        state: b'T',
        bids: vec![level(99_900)],
        offers: vec![level(100_100)],
        ..BookView::default()
    };
    TraderNews::Book(ToldView { key: (0, locate), sequence: 1, view })
}

fn drawn(state: &TerminalState) -> String {
    drawn_on(state, 110, 30)
}

fn drawn_on(state: &TerminalState, width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, state)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn help_is_whole_on_a_small_screen() {
    let state = TerminalState { word: HELP.into(), ..TerminalState::new(7) };
    let screen = drawn_on(&state, 80, 24);
    for typed in ["buy 100", "cancel ORDER", "ask [QUANTITY]", "quit", "other books", "symbol."] {
        assert!(screen.contains(typed), "{typed} is not on\n{screen}");
    }
}

#[test]
fn all_received_messages_shown_others_private() {
    let mut state = TerminalState::new(7);
    state.on_news(book(1, "ALFA"));
    state.on_news(TraderNews::Market { shard: ShardId(0), state: MarketState::Current });
    told(&mut state, 3, &ItemBody::Message { to: TraderId(7), text: "for you\u{1b}[2J" });
    told(&mut state, 3, &ItemBody::Message { to: TraderId(4), text: "for another" });
    let screen = drawn(&state);
    for shown in ["ALFA", "9.9900", "10.0100", "for you", "data: current"] {
        assert!(screen.contains(shown), "{shown} is not on\n{screen}");
    }
    assert!(!screen.contains("for another") && !screen.contains('\u{1b}'));
}

#[test]
fn holdings_of_shown_book_match_its_trades() {
    let mut state = TerminalState::new(7);
    state.on_news(book(1, "ALFA"));
    assert!(!drawn(&state).contains("held"));
    for (number, side, quantity) in [(1, Side::Sell, 30), (2, Side::Buy, 10)] {
        let order = OrderId(RequestId::new(GatewayId(0), number));
        let trade = Reply::Trade(Trade {
            client_order_id: ClientOrderId(number),
            order,
            shard: ShardId(0),
            position: Position(number),
            index: 0,
            instrument: InstrumentId(1),
            side,
            role: Role::Resting,
            price: Price(100_050),
            quantity: Quantity(quantity),
            remaining: Quantity(0),
            number,
        });
        let mut frame = Vec::new();
        entry::write_reply(&mut frame, &trade);
        told(&mut state, 0xffff_0000, &ItemBody::Report { shard: ShardId(0), frame: &frame });
    }
    let screen = drawn(&state);
    assert!(screen.contains("held -20, paid -200.1000"), "{screen}");
    state.on_news(TraderNews::Lost);
    assert!(!drawn(&state).contains("held"), "what is told anew counts anew");
}

#[test]
fn without_a_server_nothing_is_shown_as_current() {
    let mut state = TerminalState::new(7);
    state.on_news(book(1, "ALFA"));
    state.on_news(TraderNews::Market { shard: ShardId(0), state: MarketState::Current });
    state.on_news(TraderNews::Away);
    let screen = drawn(&state);
    assert!(screen.contains("data: stale") && screen.contains("no server"), "{screen}");
}

#[test]
fn what_is_typed_is_for_the_book_that_is_shown() {
    let mut state = TerminalState::new(7);
    assert!(read("buy 1 at 1", state.instrument()).is_err());
    state.on_news(book(1, "ALFA"));
    state.on_news(book(2, "BRAVO"));
    state.select(1);
    let ticket = Ticket {
        instrument: InstrumentId(2),
        side: Side::Sell,
        quantity: Quantity(100),
        price: Price(105_000),
    };
    assert_eq!(read("sell 100 @ 10.5", state.instrument()), Ok(Some(Command::Order(ticket))));
    let named = Ticket { instrument: InstrumentId(9), ..ticket };
    assert_eq!(read("sell 100 at 10.5 in 9", None), Ok(Some(Command::Order(named))));
    let all = Words::Message { to: TraderId(0), text: "good morning".into() };
    assert_eq!(read("all good morning", None), Ok(Some(Command::Say(all))));
    assert_eq!(read("help", None), Ok(Some(Command::Help)));
    let message = Words::Message { to: TraderId(3), text: "are you there?".into() };
    assert_eq!(read("to 3 are you there?", None), Ok(Some(Command::Say(message))));
    assert_eq!(read("  ", None), Ok(None));
    assert_eq!(read("quit", None), Ok(Some(Command::Quit)));
    for wrong in [
        "buy",
        "buu 100 at 10.5",
        "good morning",
        "ask x",
        "buy x at 1",
        "buy 0 at 1",
        "sell 1 at 1.23456",
        "cancel x",
    ] {
        assert!(read(wrong, state.instrument()).is_err(), "{wrong}");
    }
    state.select(-2);
    assert_eq!(state.instrument(), Some(InstrumentId(2)), "it goes round");
}
