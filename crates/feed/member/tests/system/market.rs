//! The market: from a publisher's sockets to a trader's screen.

use std::time::{Duration, Instant};

use pares_desk::item::TraderId;
use pares_desk::view::BookView;
use pares_feed::books::ReceivedBooks;
use pares_member::market::{MarketConfig, receive};
use pares_member::sources::{MarketState, Sources};
use pares_member::{MemberConfig, TraderClient, TraderNews, TraderOptions};

use crate::rig::{PATIENCE, Rig};
use pares_testbed::publisher::{Outlet, SHARD, messages};

/// What a trader is shown.
#[derive(Default)]
struct Screen {
    view: Option<BookView>,
    state: Option<MarketState>,
    /// What was shown each time the data were called current.
    current: Vec<Option<BookView>>,
}

impl Screen {
    fn on_news(&mut self, news: &TraderNews<'_>) {
        match news {
            TraderNews::Book(book) if book.key == (SHARD.0, 1) => self.view = Some(book.view.clone()),
            TraderNews::Market { state, .. } => {
                self.state = Some(*state);
                if *state == MarketState::Current {
                    self.current.push(self.view.clone());
                }
            }
            _ => {}
        }
    }
}

fn right(messages: &[Vec<u8>]) -> BookView {
    let mut books = ReceivedBooks::with_seed(0);
    messages.iter().for_each(|message| books.on_message(message));
    BookView::of(books.book(1).unwrap())
}

#[test]
fn trader_sees_current_book_or_staleness() {
    let mut outlet = Outlet::open(&[], 0);
    let config = MarketConfig { shards: vec![SHARD.0], tcp: vec![outlet.tcp()], ..MarketConfig::default() };
    let market = receive(&config, || {}, |why| panic!("{why}")).unwrap();
    let sources = Sources { market: Some(market), ..Sources::default() };
    let rig = Rig::with_sources(MemberConfig::local(1), sources);
    let options = TraderOptions { books: true, ..TraderOptions::default() };
    let mut client = TraderClient::connect_with(&rig.addresses(), TraderId(1), options).unwrap();
    let all = messages(2_000);
    let mut screen = Screen::default();
    let mut until = |outlet: Option<&mut Outlet>, done: &dyn Fn(&Screen) -> bool| {
        let (begun, mut outlet) = (Instant::now(), outlet);
        while !done(&screen) {
            assert!(begun.elapsed() < PATIENCE, "{:?} {:?}", screen.state, screen.view);
            outlet.iter_mut().for_each(|outlet| outlet.turn());
            client.wait(Duration::from_millis(1));
            client.poll(|news| screen.on_news(&news));
        }
    };
    for part in all.chunks(500) {
        outlet.publish(part);
        (0..3).for_each(|_| outlet.turn());
    }
    let last = right(&all);
    let is_right =
        |screen: &Screen| screen.view.as_ref() == Some(&last) && screen.state == Some(MarketState::Current);
    until(Some(&mut outlet), &is_right);
    drop(outlet);
    until(None, &|screen| screen.state.is_some_and(|state| state != MarketState::Current));
    assert!(screen.current.iter().all(Option::is_some), "a book came before the word that it is current");
}
