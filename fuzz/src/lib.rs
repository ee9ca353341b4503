//! Everything that reads untrusted bytes, as fuzz targets.
//!
//! Fuzzing guided by coverage needs a nightly compiler and time, so it is run now and then, and a parser that
//! breaks today is found next month. So each target is a plain function that both libFuzzer (`fuzz/libfuzzer`,
//! `cargo xtask fuzz TARGET`) and an ordinary test run; the test feeds it a fixed number of inputs, made from good ones
//! by damage that a seed decides.
//!
//! A target does not only ask for "no panic": what was accepted must be written back as what was read.
//!
//! | module | targets |
//! |---|---|
//! | [`frames`] | what a client, or a gateway, sends over TCP |
//! | [`records`] | what lies in the logs, and the segments of a log themselves |
//! | [`checkpoints`] | a shard's state as bytes |
//! | [`days`] | recorded days: LOBSTER, ITCH |
//! | [`books`] | the rule book: one book, and the market of a shard, in two implementations |
//! | [`feed`] | market data: packets, streams, messages, a publisher's log |
//! | [`broker`] | day trading: lines, messages, items, the log |
//! | [`broker_edges`] | lines of loaders, frames of desks, paths of dumps |
//! | [`fix`] | FIX: frames, messages, sessions |
//! | [`dictionary`] | FIX: the text of a dictionary |
//! | [`doors`] | FIX: order entry |
//! | [`ouch`] | OUCH: order entry |
//! | [`tap`] | the tap: entries, and secrets in what comes in |
//! | [`web`] | HTTP and WebSocket: bodies, wishes, numbers as text |
//! | [`desk`] | a member's servers: frames, items |
//! | [`register`] | the register as words |
//! | [`settings`] | `pares.toml` |
//! | [`damage`] | the driver of the short runs |

pub mod books;
pub mod broker;
pub mod broker_edges;
pub mod checkpoints;
pub mod damage;
pub mod days;
pub mod desk;
pub mod dictionary;
pub mod doors;
pub mod feed;
pub mod fix;
pub mod frames;
pub mod ouch;
pub mod records;
pub mod register;
pub mod settings;
pub mod tap;
pub mod web;

/// A function that must hold for any bytes, and good bytes to start from.
pub struct Target {
    /// Its name, which is also that of its binary in `fuzz/libfuzzer`.
    pub name: &'static str,
    /// Panics if something does not hold.
    pub run: fn(&[u8]),
    /// Inputs that the target accepts.
    pub seeds: fn() -> Vec<Vec<u8>>,
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "client_frames", run: frames::client, seeds: frames::client_seeds },
    Target { name: "gateway_frames", run: frames::gateway, seeds: frames::gateway_seeds },
    Target { name: "records", run: records::record, seeds: records::record_seeds },
    Target { name: "log_segment", run: records::segment, seeds: records::segment_seeds },
    Target { name: "checkpoint", run: checkpoints::restore, seeds: checkpoints::seeds },
    Target { name: "lobster", run: days::lobster, seeds: days::lobster_seeds },
    Target { name: "itch", run: days::itch, seeds: days::itch_seeds },
    Target { name: "books", run: books::books, seeds: books::seeds },
    Target { name: "markets", run: books::markets, seeds: books::seeds },
    Target { name: "feed_packets", run: feed::packets, seeds: feed::packet_seeds },
    Target { name: "feed_soup", run: feed::soup, seeds: feed::soup_seeds },
    Target { name: "feed_messages", run: feed::messages, seeds: feed::message_seeds },
    Target { name: "publisher_log", run: feed::publisher_log, seeds: feed::publisher_log_seeds },
    Target { name: "publication", run: feed::publication, seeds: feed::publication_seeds },
    Target { name: "broker_lines", run: broker::line, seeds: broker::line_seeds },
    Target { name: "broker_messages", run: broker::messages, seeds: broker::message_seeds },
    Target { name: "broker_items", run: broker::items, seeds: broker::item_seeds },
    Target { name: "broker_log", run: broker::log, seeds: broker::log_seeds },
    Target { name: "broker_quotes", run: broker::quotes, seeds: broker::quote_seeds },
    Target { name: "loader_lines", run: broker_edges::loader_lines, seeds: broker_edges::loader_line_seeds },
    Target { name: "desk_words", run: broker_edges::desk_words, seeds: broker_edges::desk_word_seeds },
    Target { name: "dump_paths", run: broker_edges::dump_paths, seeds: broker_edges::dump_path_seeds },
    Target { name: "fix_frames", run: fix::frames, seeds: fix::frame_seeds },
    Target { name: "fix_messages", run: fix::messages, seeds: fix::message_seeds },
    Target { name: "fix_sessions", run: fix::sessions, seeds: fix::session_seeds },
    Target { name: "fix_dictionaries", run: dictionary::dictionary, seeds: dictionary::seeds },
    Target { name: "fix_doors", run: doors::doors, seeds: doors::door_seeds },
    Target { name: "ouch_doors", run: ouch::doors, seeds: ouch::seeds },
    Target { name: "tap_entries", run: tap::entries, seeds: tap::entry_seeds },
    Target { name: "tap_secrets", run: tap::secrets, seeds: tap::secret_seeds },
    Target { name: "tap_fix", run: doors::tapped, seeds: doors::tapped_seeds },
    Target { name: "web_forms", run: web::forms, seeds: web::form_seeds },
    Target { name: "web_wishes", run: web::wishes, seeds: web::wish_seeds },
    Target { name: "web_numbers", run: web::numbers, seeds: web::number_seeds },
    Target { name: "member_frames", run: desk::frames, seeds: desk::frame_seeds },
    Target { name: "member_items", run: desk::items, seeds: desk::item_seeds },
    Target { name: "register_words", run: register::words, seeds: register::seeds },
    Target { name: "settings", run: settings::settings, seeds: settings::seeds },
];

/// The target of that name.
///
/// # Panics
/// If there is none.
#[must_use]
pub fn target(name: &str) -> &'static Target {
    TARGETS.iter().find(|target| target.name == name).expect("a target of that name")
}
