//! A day's packets become messages and books, from memory and through sockets, beside what others make of the same day.

use pares_load::LabError;
use pares_text::progress;

use super::day::Day;
use super::packets::Packets;
use super::{Args, Figures, Part, Rates, built, decoded, itch_book, itchy, received};

pub(super) fn measure(args: &Args, figures: &mut Figures) -> Result<(), LabError> {
    let day = Day::new(args.instruments, args.orders as usize, args.messages as usize);
    let opening = Packets::of(&day.opening, 1);
    let trading = Packets::of(&day.trading, opening.messages() + 1);
    figures.instruments = args.instruments;
    if args.measures(Part::Books) {
        beside_others(args, &day, [&opening, &trading], figures)?;
    }
    if args.measures(Part::Received) {
        let (mut rates, mut by_one) = (Rates::default(), 0);
        for _ in progress::over("receiving", 0..args.runs) {
            by_one += received::round(&opening, &trading, &mut rates)?;
        }
        (figures.received_per_s, figures.received_by_one_line) = (rates.median(), Some(by_one));
    }
    Ok(())
}

fn beside_others(
    args: &Args,
    day: &Day,
    [opening, trading]: [&Packets; 2],
    figures: &mut Figures,
) -> Result<(), LabError> {
    let (mut peer, missing) = match args.no_peers {
        true => (None, Some("left out".to_owned())),
        false => match itch_book::Peer::start(day) {
            Ok(peer) => (Some(peer), None),
            Err(reason) => (None, Some(reason)),
        },
    };
    let messages = trading.messages();
    let [mut decoded, mut built, mut itchy, mut itch_book] = [(); 4].map(|()| Rates::default());
    for _ in progress::over("books", 0..args.runs) {
        decoded::round(trading, &mut decoded);
        figures.living_orders = built::round(opening, trading, &mut built)?;
        if !args.no_peers {
            itchy.time(messages, || itchy::decode(&day.trading, messages));
        }
        if let Some(peer) = &mut peer {
            peer.round(messages, figures.living_orders, &mut itch_book)?;
        }
    }
    (figures.decoded_per_s, figures.books_per_s) = (decoded.median(), built.median());
    (figures.itchy_per_s, figures.itch_book_per_s) = (itchy.median(), itch_book.median());
    figures.itch_book_missing = missing;
    Ok(())
}
