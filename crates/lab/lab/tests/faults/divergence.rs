//! A venue that computes something else: with three it is found and shut out, and the others continue; with two the shard
//! halts.

use pares_book::{Market, NaiveBook};
use pares_faults::wrong::{VARIABLE, Wrong};
use pares_log::Reader;
use pares_node::readmit;
use pares_node::shut_out::{DisputedIn, Note};
use pares_node::{HostWorld, NodeId, SystemConfig};
use pares_types::{GatewayId, HASH_EVERY, RecorderId, ShardId, Side, Status, VenueId};
use pares_wire::record::{self as wire, ResultRecord};

use crate::common::exchange::{Exchange, recorder, small, venue};
use crate::common::record::{self, Records};
use crate::common::trader::Trader;
use crate::common::{eventually, limit, load};

/// The highest number of a recorded request of gateway 0.
fn last_sequence(exchange: &Exchange) -> u64 {
    let records = record::of_recorder(exchange, RecorderId(0));
    let ids = records.values().flatten().map(|recorded| recorded.request.id);
    ids.filter(|id| id.gateway() == GatewayId(0)).map(|id| id.sequence()).max().unwrap_or(0)
}

/// Replaces a venue by a wrong one.
fn make_wrong(exchange: &mut Exchange, role: NodeId, wrong: Wrong) {
    exchange.supervisor().arm(role, vec![(VARIABLE, wrong.to_string())]);
    exchange.kill(role);
    eventually("the right one is dead", || {
        exchange.tick();
        exchange.complaints().contains(&format!("{VARIABLE}={wrong}"))
    });
    // It is to lead like the others, and not only to follow what they have recorded.
    exchange.wait_until_up();
    eventually("it has caught up", || exchange.counter(role, "resynced") == 1);
}

/// What each recorder noted of the venue, once all have.
fn notes(exchange: &Exchange, id: VenueId) -> Option<Vec<Note>> {
    notes_so_far(exchange, id).into_iter().collect()
}

fn notes_so_far(exchange: &Exchange, id: VenueId) -> Vec<Option<Note>> {
    let world = HostWorld::new(exchange.layout()).unwrap();
    let by = |by| Note::read(&world, id, by).unwrap();
    exchange.config().recorder_ids().map(by).collect()
}

/// What all recorders have, once nothing more comes.
fn all_records(exchange: &mut Exchange) -> Vec<Records> {
    let ids: Vec<RecorderId> = exchange.config().recorder_ids().collect();
    let mut all = Vec::new();
    eventually("all recorders have as much", || {
        exchange.tick();
        all = ids.iter().map(|&id| record::of_recorder(exchange, id)).collect();
        let lengths = |records: &Records| records.values().map(Vec::len).collect::<Vec<_>>();
        all.iter().all(|other| lengths(other) == lengths(&all[0]))
    });
    all
}

fn is_disputed(disputed: &[&DisputedIn], shard: ShardId, position: usize) -> bool {
    let holds = |one: &DisputedIn| (one.first..=one.last).contains(&(position as u64));
    disputed.iter().filter(|one| one.shard == shard.0).any(|one| holds(one))
}

/// Every request stands at one position, the same at every recorder; and but for what is disputed each record is what the
/// obviously right book makes of the requests before it.
fn check_records(exchange: &Exchange, all: &[Records], disputed: &[&DisputedIn]) {
    for (shard, instruments) in exchange.config().shards().unwrap() {
        let mut market = Market::<NaiveBook>::new(&instruments);
        let mut ids = std::collections::BTreeSet::new();
        for position in 0..all[0][&shard].len() {
            let request = &all[0][&shard][position].request;
            assert!(ids.insert(request.id), "{} stands at two positions", request.id);
            let mut events = Vec::new();
            let outcome = market.apply(request, &mut events);
            for records in all {
                let recorded = &records[&shard][position];
                assert_eq!(recorded.request, *request, "shard {shard} position {position}");
                if !is_disputed(disputed, shard, position) {
                    let found = (&recorded.outcome, &recorded.events);
                    assert_eq!(
                        found,
                        (&outcome, &events),
                        "shard {shard} position {position}, not in {disputed:?}"
                    );
                    assert_eq!(recorded.state_hash, all[0][&shard][position].state_hash);
                }
            }
        }
    }
}

/// Every request is answered once, and at the place it has in the record.
fn check_answers(records: &Records, traders: &[Trader]) {
    for trader in traders {
        let asked = trader.submitted() - trader.rejected.len() as u64;
        assert_eq!(trader.answers.len() as u64, asked, "member {}: one answer each", trader.member);
        for answer in trader.answers.values() {
            let recorded = &records[&answer.shard][answer.position.0 as usize];
            assert_eq!(recorded.request.id, answer.request, "{answer:?}");
        }
    }
}

/// The states a venue has handed out are those recorded, where they are not disputed.
fn check_states(exchange: &Exchange, id: VenueId, records: &Records, disputed: &[&DisputedIn]) {
    let mut log = Reader::at_start(&exchange.layout().venue_log(id)).unwrap();
    while let Some(entry) = log.next().unwrap() {
        if wire::schema(entry.payload) != Some(wire::RESULT) {
            continue;
        }
        let result = ResultRecord::read(entry.payload).unwrap();
        let position = result.position().0 as usize;
        let known = !is_disputed(disputed, result.shard(), position);
        if let Some(hash) = result.state_hash().filter(|_| known) {
            let recorded = &records[&result.shard()][position];
            assert_eq!(recorded.state_hash, Some(hash), "position {}", result.position());
        }
    }
}

/// As `pares admin readmit`. What it says if it refuses.
fn readmit(exchange: &Exchange, id: u16) -> Option<String> {
    let readmitted = readmit::readmit(VenueId(id), exchange.config(), exchange.layout());
    readmitted.err().map(|error| error.to_string())
}

/// Trades until every recorder has found the venue.
fn trade_until_found(exchange: &mut Exchange, traders: &mut [Trader], id: VenueId) -> Vec<Note> {
    loop {
        load::trade(exchange, traders, 50);
        if let Some(notes) = notes(exchange, id) {
            return notes;
        }
        for recorder in [recorder(0), recorder(1)] {
            assert_eq!(exchange.counter(recorder, "halted_shards"), 0, "{}", exchange.complaints());
        }
        let stuck = exchange.complaints();
        assert!(
            load::answered(traders) < 100_000,
            "it is not found: {:?}\n{stuck}",
            notes_so_far(exchange, id)
        );
    }
}

#[test]
fn wrong_venue_of_three_found_and_shut_out_until_readmitted() {
    find_shut_out_and_readmit(false);
}

#[test]
fn shut_out_venue_stays_out_through_full_restart() {
    find_shut_out_and_readmit(true);
}

fn find_shut_out_and_readmit(start_again: bool) {
    let mut exchange = Exchange::start(&SystemConfig { venues: 3, ..small(1) });
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 500);
    let wrong = Wrong { from: last_sequence(&exchange) + 500, shard: None };
    make_wrong(&mut exchange, venue(0), wrong);
    let notes = trade_until_found(&mut exchange, &mut traders, VenueId(0));

    load::trade(&mut exchange, &mut traders, 500);
    eventually("the wrong one is down", || {
        exchange.tick();
        !exchange.supervisor().is_up(venue(0))
    });
    for id in [recorder(0), recorder(1)] {
        assert_eq!(exchange.counter(id, "shut_out_venues"), 1);
        assert_eq!(exchange.counter(id, "halted_shards"), 0, "{notes:?}");
    }
    let complaints = exchange.complaints();
    assert!(complaints.contains("venue-0 is shut out") && complaints.contains("pares admin readmit venue-0"));

    if start_again {
        load::finish(&mut exchange, &mut traders);
        exchange.stop();
        exchange.start_again();
        traders.iter_mut().for_each(|trader| trader.moved(&exchange.addresses()));
        load::trade(&mut exchange, &mut traders, 500);
        assert_eq!(exchange.supervisor().restarts(), 0, "the others come up without it");
    }
    assert!(!exchange.supervisor().is_up(venue(0)));

    assert!(readmit(&exchange, 1).is_some_and(|said| said.contains("is not shut out")));
    assert_eq!(readmit(&exchange, 0), None);
    exchange.wait_until_up();
    eventually("it has caught up", || exchange.counter(venue(0), "resynced") == 1);
    load::trade(&mut exchange, &mut traders, 500);
    // What the wrong one had recorded is still there for a recorder that starts, and held against no venue.
    for id in [recorder(0), recorder(1)] {
        exchange.kill(id);
        load::trade(&mut exchange, &mut traders, 500);
        exchange.wait_until_up();
    }
    load::trade(&mut exchange, &mut traders, 8 * HASH_EVERY);
    load::finish(&mut exchange, &mut traders);
    exchange.wait_until_up();
    let all = all_records(&mut exchange);
    for note in &notes {
        let Some(found) = &note.found else { continue };
        let aside = exchange.layout().shut_out().join("venue-0.log-1");
        let first = wrong.first_in(&aside, ShardId(found.shard)).unwrap().expect("it was wrong there").0;
        assert!(found.position < first + HASH_EVERY, "wrong from {first} on: {note:?}");
        assert!(found.said.iter().any(|said| said.venues == [0] && !said.believed), "{note:?}");
    }
    assert!(notes.iter().any(|note| note.found.is_some()), "{notes:?}");
    let disputed: Vec<&DisputedIn> = notes.iter().flat_map(|note| &note.disputed).collect();
    check_records(&exchange, &all, &disputed);
    check_answers(&all[0], &traders);
    eventually("it is back, where the others are", || {
        exchange.tick();
        let at = |shard: &ShardId| exchange.counter(venue(0), &format!("position-{shard}"));
        all[0].iter().all(|(shard, recorded)| at(shard) == recorded.len() as u64)
    });
    // What is left of its log; the recorders have compared all of it.
    check_states(&exchange, VenueId(0), &all[0], &disputed);
    for id in [recorder(0), recorder(1)] {
        let counts = (exchange.counter(id, "shut_out_venues"), exchange.counter(id, "halted_shards"));
        assert_eq!(counts, (0, 0));
    }
}

#[test]
fn two_differing_venues_halt_only_their_shard() {
    let mut exchange = Exchange::start(&small(1));
    let mut traders = load::traders(&exchange, 4);
    load::trade(&mut exchange, &mut traders, 500);
    load::finish(&mut exchange, &mut traders);
    let wrong = Wrong { from: last_sequence(&exchange) + 1, shard: Some(ShardId(0)) };
    make_wrong(&mut exchange, venue(0), wrong);

    // Shard 0 is asked and asked, and halts; members that ask there wait.
    let mut asking = exchange.client(0, 7);
    let mut name = 0;
    eventually("shard 0 is halted at both recorders", || {
        exchange.tick();
        name += 1;
        asking.send(&limit(name, 1, Side::Buy, name, 1_000_000)).unwrap();
        asking.flush().unwrap();
        asking.poll(drop).unwrap();
        [recorder(0), recorder(1)].iter().all(|&id| exchange.counter(id, "halted_shards") == 1)
    });
    let mut other = exchange.client(0, 8);
    for name in 1..=100 {
        let answer = other.submit_and_wait(&limit(name, 3, Side::Buy, 1, 1_000)).unwrap();
        assert_eq!((answer.shard, answer.status), (ShardId(1), Status::Resting));
    }
    for id in [recorder(0), recorder(1)] {
        let counts = (exchange.counter(id, "halted_shards"), exchange.counter(id, "shut_out_venues"));
        assert_eq!(counts, (1, 0), "the other shard goes on, and nobody is shut out");
    }
}
