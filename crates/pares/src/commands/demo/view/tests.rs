//! The dashboard drawn into memory.

use pares_book::Level;
use pares_types::{Phase, Price, Quantity, Side, VenueId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::commands::demo::director::Kill;
use crate::commands::demo::market::{Top, Trade};
use crate::commands::demo::picture::{Condition, VenueLine};

fn picture() -> Picture {
    let level =
        |price, quantity| Some(Level { price: Price(price), quantity: Quantity(quantity), orders: 1 });
    let mut picture = Picture {
        elapsed: Duration::from_millis(42_100),
        rate: 2_000,
        venues: [0, 1].map(|id| VenueLine::new(VenueId(id))).to_vec(),
        tops: vec![Top {
            symbol: "ALFA".into(),
            bid: level(1_824_900, 400),
            ask: level(1_825_100, 1_300),
            last: Some(Trade { price: Price(1_825_050), quantity: Quantity(100), aggressor: Side::Buy }),
            trades: 1,
            orders: 2,
            phase: Phase::Continuous,
            indicative: None,
        }],
        completed: 84_200,
        ..Picture::default()
    };
    picture.venues[1] =
        VenueLine { condition: Condition::Up, leads: true, position: 84_200, ..VenueLine::new(VenueId(1)) };
    picture.tell(Duration::from_millis(42_100), Happening::Killed(VenueId(0)));
    picture.tell(
        Duration::from_millis(42_100),
        Happening::Back(Kill {
            venue: VenueId(0),
            gap_ns: 1_200_000,
            absent: Duration::from_millis(21),
            resync: Duration::from_millis(4),
        }),
    );
    picture
}

fn drawn(width: u16, height: u16) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, &picture())).unwrap();
    terminal.backend().to_string()
}

#[test]
fn everything_has_its_place_on_a_hundred_by_thirty() {
    let screen = drawn(100, 30);
    for shown in ["● leads", "x down", "84,200", "182.49", "1,300", "▲ 182.5050", "back, 21.0 ms", "00:42.1"]
    {
        assert!(screen.contains(shown), "{shown} is not on\n{screen}");
    }
}

#[test]
fn a_call_shows_what_its_auction_would_do() {
    let mut picture = picture();
    picture.day = Some("ALFA: opening call".into());
    picture.tops[0].phase = Phase::OpeningCall;
    picture.tops[0].indicative = Some((Price(1_825_000), Quantity(12_300)));
    let mut terminal = Terminal::new(TestBackend::new(100, 30)).unwrap();
    terminal.draw(|frame| draw(frame, &picture)).unwrap();
    let screen = terminal.backend().to_string();
    for shown in ["ALFA: opening call", "◇ 182.50", "12,300"] {
        assert!(screen.contains(shown), "{shown} is not on\n{screen}");
    }
}

#[test]
fn any_terminal_will_do() {
    for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
        drawn(width, height);
    }
}
