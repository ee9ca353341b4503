//! The figures for people.

use pares_text::{Table, grouped};

use super::{Figures, itch_book, itchy};

/// What CppTrader's decoder does, as its page says.
const CPP_TRADER_PUBLISHED_PER_S: u64 = 41_000_000;

/// Prints everything that was measured.
pub(super) fn print(figures: &Figures) {
    let mut table = Table::new(["one core", "who", ">messages/s", ">published elsewhere"]);
    let mut row = |what: &str, who: &str, here: Option<u64>, elsewhere: Option<u64>| {
        let told = |rate: Option<u64>| rate.map_or_else(|| "-".to_owned(), grouped);
        table.row(vec![what.to_owned(), who.to_owned(), told(here), told(elsewhere)]);
    };
    row("records to packets", "pares", Some(figures.published_per_s), None);
    row("packets to messages", "pares", Some(figures.decoded_per_s), None);
    row("bytes to messages", "itchy", figures.itchy_per_s, Some(itchy::PUBLISHED_PER_S));
    row("bytes to messages", "CppTrader", None, Some(CPP_TRADER_PUBLISHED_PER_S));
    row("packets to books", "pares", Some(figures.books_per_s), None);
    row("bytes to books", "itch-book", figures.itch_book_per_s, Some(itch_book::PUBLISHED_PER_S));
    pares_text::print(&table.render());
    pares_text::say!(
        "\n{} instruments, {} orders in the books; medians of {} rounds",
        grouped(figures.instruments.into()),
        grouped(figures.living_orders),
        figures.runs
    );
    if let Some(reason) = &figures.itch_book_missing {
        pares_text::say!("itch-book was not measured: {reason}");
    }
}
