//! The figures for people.

use pares_text::{Table, grouped};

use super::Figures;
use super::figures::CPPTRADER_SOURCE;

/// Prints everything that was measured.
pub(super) fn print(figures: &Figures) {
    let mut table = Table::new(["one core", "who", ">messages/s", ">published elsewhere"]);
    let mut row = |what: &str, who: &str, here: Option<u64>, elsewhere: Option<u64>| {
        table.row(vec![what.to_owned(), who.to_owned(), rate(here), rate(elsewhere)]);
    };
    row("records to packets", "pares", figures.published_per_s, None);
    row("packets to messages", "pares", figures.decoded_per_s, None);
    row("bytes to messages", "itchy", figures.itchy_per_s, Some(figures.itchy_published_decoded_per_s));
    row("bytes to messages", "CppTrader", None, Some(figures.cpptrader_published_decoded_per_s));
    row("packets to books", "pares", figures.books_per_s, None);
    row(
        "bytes to books",
        "itch-book",
        figures.itch_book_per_s,
        Some(figures.itch_book_published_books_per_s),
    );
    row("bytes to books", "CppTrader", None, Some(figures.cpptrader_published_books_per_s));
    row("two lines' sockets to books", "pares", figures.received_per_s, None);
    pares_text::print(&table.render());
    print_delays(figures);
    pares_text::say!(
        "\n{} instruments, {} orders in the books; medians of {} rounds; CppTrader: {CPPTRADER_SOURCE}",
        grouped(figures.instruments.into()),
        grouped(figures.living_orders),
        figures.runs
    );
    if let Some(reason) = &figures.itch_book_missing {
        pares_text::say!("itch-book was not measured: {reason}");
    }
}

fn print_delays(figures: &Figures) {
    let mut table = Table::new(["over sockets", ">messages/s", ">p50 us", ">p99 us"]);
    let mut row = |what: String, of: Option<u64>, p50: Option<f64>, p99: Option<f64>| {
        table.row(vec![what, rate(of), us(p50), us(p99)]);
    };
    let Figures { committed_to_sent_p50_us: p50, committed_to_sent_p99_us: p99, .. } = *figures;
    row("committed to sent, 10,000 requests/s".to_owned(), None, p50, p99);
    let all = format!("{} traders by TCP", grouped(figures.traders.into()));
    row(all, figures.deliveries_per_s, figures.fast_p50_us, figures.fast_p99_us);
    let slow = format!("the same, {} of them read nothing", grouped(figures.slow_traders.into()));
    row(slow, figures.deliveries_slow_per_s, None, figures.fast_p99_slow_us);
    row("as many by WebSocket".to_owned(), figures.web_deliveries_per_s, None, figures.web_p99_us);
    row("one by UDP".to_owned(), figures.cast_messages_per_s, None, None);
    pares_text::say!("");
    pares_text::print(&table.render());
}

fn rate(rate: Option<u64>) -> String {
    rate.map_or_else(|| "-".to_owned(), grouped)
}

fn us(us: Option<f64>) -> String {
    us.map_or_else(|| "-".to_owned(), |us| format!("{us:.1}"))
}
