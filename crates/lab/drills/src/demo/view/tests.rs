//! The dashboard drawn into memory.

use pares_book::Level;
use pares_types::{Phase, Price, Quantity, Side, VenueId};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

use super::*;
use crate::demo::director::Kill;
use crate::demo::market::{Top, Trade};
use crate::demo::picture::{Condition, VenueLine};

fn level(price: i64, quantity: u64) -> Option<Level> {
    Some(Level { price: Price(price), quantity: Quantity(quantity), orders: 1 })
}

fn picture() -> Picture {
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

fn drawn(width: u16, height: u16, picture: &Picture) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| draw(frame, picture)).unwrap();
    terminal.backend().to_string()
}

#[test]
fn everything_has_its_place_on_a_hundred_by_thirty() {
    let screen = drawn(100, 30, &picture());
    for shown in ["● leads", "x down", "84,200", "182.49", "1,300", "▲ 182.5050", "back, 21.0 ms", "00:42.1"]
    {
        assert!(screen.contains(shown), "{shown} is not on\n{screen}");
    }
}

#[test]
fn a_call_shows_what_its_auction_would_do() {
    let mut picture = picture();
    picture.day = Some("ALFA: opening_call".into());
    picture.tops[0].phase = Phase::OpeningCall;
    picture.tops[0].indicative = Some((Price(1_825_000), Quantity(12_300)));
    let screen = drawn(100, 30, &picture);
    for shown in ["ALFA: opening_call", "◇ 182.50", "12,300"] {
        assert!(screen.contains(shown), "{shown} is not on\n{screen}");
    }
}

/// The lines of a screen in which that word stands.
fn lines_with<'a>(screen: &'a str, word: &str) -> Vec<&'a str> {
    screen.lines().filter(|line| line.contains(word)).collect()
}

/// Columns up to the end of that figure, from the left.
fn end_of(line: &str, figure: &str) -> usize {
    line[..line.find(figure).unwrap() + figure.len()].chars().count()
}

#[test]
fn tables_align_at_any_terminal_width() {
    let mut picture = picture();
    picture.day = Some("ALFA: volatility_call, 123,456 at 1825.5050 indicative".into());
    let small = picture.tops[0].clone();
    picture.tops.push(Top {
        symbol: "JULIETT".into(),
        bid: level(18_255_050, 123_456),
        ask: level(18_256_050, 234_567),
        phase: Phase::VolatilityCall,
        indicative: Some((Price(18_257_050), Quantity(12_345))),
        ..small
    });
    for width in [80, 120, 200] {
        let screen = drawn(width, 30, &picture);
        assert!(screen.contains(" ALFA: volatility_call, 123,456 at 1825.5050 indicative "), "{screen}");
        assert!(screen.contains("venue-0 killed, leading"), "{screen}");
        assert!(screen.contains(" 00:42.1 "), "the words beside the clock are cut before it: {screen}");
        let [large] = lines_with(&screen, "JULIETT")[..] else { panic!("{screen}") };
        for figures in ["123,456 1825.5050 1825.6050 234,567", "◇ 1825.7050 12,345"] {
            let words = large.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(words.contains(figures), "{width}: {large}");
        }
        let [small] = lines_with(&screen, "182.5050")[..] else { panic!("{screen}") };
        let [head] = lines_with(&screen, "offer shares")[..] else { panic!("{screen}") };
        for (title, of_small, of_large) in [
            ("bid", "182.49", "1825.5050"),
            ("offer", "182.51", "1825.6050"),
            ("last", "182.5050", "1825.7050"),
        ] {
            let ends = [end_of(head, title), end_of(small, of_small), end_of(large, of_large)];
            assert!(ends.iter().all(|end| *end == ends[0]), "{width}: {ends:?}\n{screen}");
        }
        let [venues] = lines_with(&screen, "behind")[..] else { panic!("{screen}") };
        assert!(venues.contains("position") && venues.contains("killed"), "{width}: {venues}");
    }
}

#[test]
fn a_long_gap_stands_apart_from_its_words() {
    let screen = drawn(100, 30, &Picture { kill_gap_ns: 207_400_000, ..picture() });
    assert!(screen.contains(" longest gap, kill    207.4 ms "), "{screen}");
}

#[test]
fn any_terminal_will_do() {
    for (width, height) in [(1, 1), (20, 5), (80, 24), (300, 100)] {
        drawn(width, height, &picture());
    }
}
