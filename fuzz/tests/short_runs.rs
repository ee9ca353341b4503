//! Each target over a fixed number of inputs made from a fixed seed (see `pares_fuzz::damage`).
//!
//! `PARES_FUZZ_ITERATIONS` says how many; `cargo xtask test` takes more than the default.
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use std::panic::{AssertUnwindSafe, catch_unwind};

use pares_fuzz::damage::input;
use pares_fuzz::{TARGETS, Target, target};
use pares_random::Random;

const ITERATIONS: u64 = 5_000;

fn short_run(name: &str) {
    let target = target(name);
    let seeds = (target.seeds)();
    let iterations = std::env::var("PARES_FUZZ_ITERATIONS").ok().and_then(|text| text.parse().ok());
    let mut random = Random::new(1);
    for iteration in 0..iterations.unwrap_or(ITERATIONS) {
        let bytes = input(&mut random, &seeds);
        let held = catch_unwind(AssertUnwindSafe(|| (target.run)(&bytes)));
        assert!(held.is_ok(), "{name}, input {iteration}: {}", show(&bytes));
    }
}

/// Bytes as a Rust literal, ready for a test of its own.
fn show(bytes: &[u8]) -> String {
    format!("b\"{}\"", bytes.escape_ascii())
}

macro_rules! short_runs {
    ($($name:ident)*) => {
        const NAMES: &[&str] = &[$(stringify!($name)),*];
        $(#[test] fn $name() { short_run(stringify!($name)); })*
    };
}

short_runs! {
    client_frames gateway_frames records log_segment checkpoint lobster itch books markets
    feed_packets feed_soup feed_messages publisher_log publication
    broker_lines broker_messages broker_items broker_log broker_quotes loader_lines desk_words dump_paths
    fix_frames fix_messages fix_sessions fix_dictionaries fix_doors ouch_doors
    tap_entries tap_secrets tap_fix web_forms web_wishes web_numbers member_frames member_items register_words settings
}

#[test]
fn every_target_has_a_short_run_and_a_binary() {
    let targets: Vec<&str> = TARGETS.iter().map(|target: &Target| target.name).collect();
    assert_eq!(targets, NAMES);
    let binaries = include_str!("../libfuzzer/Cargo.toml");
    for name in targets {
        assert!(binaries.contains(&format!("[[bin]]\nname = \"{name}\"\n")), "no binary for {name}");
    }
}

#[test]
fn the_same_seed_gives_the_same_inputs() {
    let seeds = (TARGETS[0].seeds)();
    let inputs = |seed| {
        let mut random = Random::new(seed);
        (0..100).map(|_| input(&mut random, &seeds)).collect::<Vec<_>>()
    };
    assert_eq!(inputs(7), inputs(7));
    assert_ne!(inputs(7), inputs(8));
}

/// Seeds that a target refuses test nothing but its first check.
#[test]
fn seeds_are_accepted() {
    assert!(pares_fuzz::checkpoints::seeds().iter().all(|seed| pares_fuzz::checkpoints::accepts(seed)));
    assert!(pares_fuzz::checkpoints::repairs_checksums());
    assert!(pares_fuzz::frames::client_seeds().iter().all(|seed| pares_fuzz::frames::client_accepts(seed)));
    for mut bytes in (pares_fuzz::records::segment_seeds()).into_iter().take(2) {
        let segment = bytes.split_off(8);
        assert_eq!(pares_log::record::scan(&segment, 4_096, 0, usize::MAX).records, 38);
    }
    for (bytes, events) in [(pares_fuzz::days::itch_seeds(), 5), (pares_fuzz::days::lobster_seeds(), 7)] {
        assert_eq!(count_events(&bytes[0]), events);
    }
}

#[test]
fn seeds_of_market_data_are_accepted() {
    use pares_feed::{books::ReceivedBooks, mold::Packet, publication::Publication};
    use pares_fuzz::feed;
    use pares_publisher::logged::{Logged, blocks};
    for seed in feed::packet_seeds() {
        assert!(blocks(&seed).all(|packet| Packet::read(packet).is_ok()));
    }
    for seed in feed::message_seeds() {
        let mut books = ReceivedBooks::with_seed(0);
        blocks(&seed).for_each(|message| books.on_message(message));
        assert_eq!(books.misfits, 0);
    }
    assert!(feed::publisher_log_seeds().iter().all(|seed| Logged::read(seed).is_ok()));
    let shard = pares_types::ShardId(3);
    assert!(feed::publication_seeds().iter().all(|seed| Publication::restore(shard, seed).is_ok()));
}

#[test]
fn seeds_of_the_broker_are_accepted() {
    use pares_broker::{AuditReplay, WorkloadLine};
    use pares_fuzz::broker;
    assert!(
        broker::line_seeds().iter().all(|seed| WorkloadLine::parse(seed).is_ok_and(|l| l.fault.is_none()))
    );
    let mut replay = AuditReplay::default();
    let log = String::from_utf8(broker::log_seeds().swap_remove(0)).unwrap();
    replay.text(&log).unwrap();
    let report = replay.finish().unwrap();
    assert!(report.count("userCommand") > 10 && report.count("debugEvent") > 2, "{report:?}");
    assert!(broker::item_seeds().len() > 20, "items of each kind");
}

#[test]
fn seeds_of_the_brokers_edges_are_accepted() {
    use pares_broker::WorkloadLine;
    use pares_front::loader_lines::LoaderLine;
    use pares_front::{ToDesk, ToFront};
    use pares_fuzz::broker_edges;
    use pares_wice::codec::Coded as _;
    let is_one =
        |line: &[u8]| !matches!(LoaderLine::parse(line), LoaderLine::Wrong(..) | LoaderLine::Foreign);
    assert!(broker_edges::loader_line_seeds().iter().all(|seed| is_one(seed)));
    let is_word = |word: &[u8]| ToDesk::from_bytes(word).is_ok() || ToFront::from_bytes(word).is_ok();
    assert!(broker_edges::desk_word_seeds().iter().all(|seed| is_word(seed)));
    let is_dump = |path: &Vec<u8>| {
        let line = [&b"[1] DUMPLOG,"[..], path].concat();
        WorkloadLine::parse(&line).is_ok_and(|line| line.fault.is_none())
    };
    assert!(broker_edges::dump_path_seeds().iter().all(is_dump));
}

#[test]
fn seeds_of_the_doors_are_accepted() {
    use pares_api::inbound::{BodyForm, wish};
    use pares_fuzz::{desk, register, settings, tap, web};
    use pares_publisher::logged::blocks;
    for seed in tap::entry_seeds() {
        assert!(blocks(&seed).all(|entry| pares_port::TapEntry::read(entry).is_ok()));
    }
    let is_form = |form: BodyForm, body: &[u8]| {
        form.order(body).is_some() || form.terms(body).is_some() || form.is_other(body)
    };
    let is_either = |body: &[u8]| is_form(BodyForm::Json, body) || is_form(BodyForm::Xml, body);
    assert!(web::form_seeds().iter().all(|seed| is_either(seed)));
    assert!(web::wish_seeds().iter().all(|seed| wish(seed).is_ok()));
    for seed in desk::item_seeds() {
        use pares_desk::item::{OrderedItem, SubmittedItem};
        let item =
            OrderedItem::read(&seed).map(|ordered| ordered.item).or_else(|_| SubmittedItem::read(&seed));
        assert!(item.unwrap().says().is_ok());
    }
    for seed in register::seeds() {
        let mut words = seed.as_chunks().0.iter().map(|word| u64::from_le_bytes(*word));
        assert!(pares_register::Register::read(&mut || words.next()).is_some());
    }
    let is_legal =
        |seed: &[u8]| pares_config::SystemConfig::parse(std::str::from_utf8(seed).unwrap()).is_ok();
    assert!(settings::seeds().iter().all(|seed| is_legal(seed)));
}

/// Events of a day, LOBSTER if it has a zero byte in the middle of text, ITCH otherwise.
fn count_events(bytes: &[u8]) -> usize {
    use pares_flow::{ItchSelect, ItchSource, LobsterSource, RecordedEvents};
    let instrument = pares_types::InstrumentId(1);
    let mut source: Box<dyn RecordedEvents + '_> = if bytes.starts_with(b"3") {
        let zero = bytes.iter().position(|&byte| byte == 0).unwrap();
        Box::new(LobsterSource::new(&bytes[..zero], &bytes[zero + 1..], instrument).unwrap())
    } else {
        Box::new(ItchSource::new(bytes, ItchSelect::All, instrument))
    };
    std::iter::from_fn(|| source.next_event().unwrap()).count()
}
