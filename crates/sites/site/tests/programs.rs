//! What a program has that asks sites with real logs, stores and sockets: sessions that move, the latest, and transactions.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use common::{PATIENCE, Sites, done};
use pares_site::{CallError, Client, TransactionError};
use pares_wice::{SiteId, Value};

const A0: SiteId = SiteId { cluster: pares_wice::ClusterId(0), number: 0 };
const B0: SiteId = SiteId { cluster: pares_wice::ClusterId(1), number: 0 };

#[test]
fn a_client_that_moves_reads_what_it_was_told_elsewhere() {
    let sites = Sites::start(2, 1);
    let mut at = [(1, A0), (2, B0)].map(|(number, site)| sites.client(number, &[site]));
    for round in 1..=100 {
        at.reverse();
        let [here, there] = &mut at;
        assert_eq!(
            done(here.execute(b"together add n 1; get n", PATIENCE)).lines().last(),
            Some(&*round.to_string())
        );
        there.has_seen(here.horizon());
        assert_eq!(done(there.read(b"get n", PATIENCE)), round.to_string());
        assert!(there.horizon().version >= here.horizon().version);
    }
}

#[test]
fn the_latest_has_what_others_were_told_at_any_site() {
    let sites = Sites::start(2, 1);
    let (mut writer, mut reader) = (sites.client(1, &[A0]), sites.client(2, &[B0]));
    for round in 1..=40 {
        done(writer.execute(format!("put a {round}").as_bytes(), PATIENCE));
        assert_eq!(done(reader.read_latest(b"get a", PATIENCE)), round.to_string());
    }
}

/// What text cannot carry, or takes for something else.
fn values() -> Vec<Value> {
    let texts = ["", " ", "5", "\"5\"", "a b", "a; put b 1", "two\nlines\r\n", "\0", "-", "changed: x"];
    let bytes = Value::new((0..=255).collect::<Vec<u8>>());
    texts.into_iter().map(Value::from).chain([bytes, Value::counter(5), Value::counter(i128::MIN)]).collect()
}

#[test]
fn every_name_and_value_comes_back_as_it_was_put() {
    let sites = Sites::start(1, 1);
    let mut client = sites.client(1, &[A0]);
    let names = ["a", "a b", "a;b", "\"a\"", "changed: a", "a\nb"];
    for value in values() {
        let mut transaction = client.begin(PATIENCE);
        names.iter().for_each(|name| transaction.put(name, value.clone()).unwrap());
        assert_eq!(transaction.get("a").unwrap().as_ref(), Some(&value), "its own writes are read");
        transaction.commit().unwrap();
        let mut transaction = client.begin(PATIENCE);
        assert!(names.iter().all(|name| transaction.get(name).unwrap().as_ref() == Some(&value)));
        transaction.put("a", "x").unwrap();
        transaction.commit().unwrap(); // expects each of them
    }
}

fn is_changed<T>(done: Result<T, TransactionError>) -> bool {
    matches!(done, Err(TransactionError::Changed(_)))
}

#[test]
fn a_transaction_sees_one_state_or_learns_that_it_has_changed() {
    let sites = Sites::start(2, 1);
    let (mut client, mut other) = (sites.client(1, &[B0]), sites.client(2, &[A0]));
    done(other.execute(b"together put a 1; put b 1", PATIENCE));
    client.has_seen(other.horizon());
    let mut transaction = client.begin(PATIENCE);
    assert_eq!(transaction.get("a").unwrap(), Some(Value::counter(1)));
    done(other.execute(b"together put a 2; put b 2", PATIENCE));
    done(client_at(&sites, B0, &other).read(b"get a", PATIENCE)); // until it is there
    assert!(is_changed(transaction.get("b")), "a is not what it was");
    let mut transaction = client.begin(PATIENCE);
    assert_eq!(transaction.get("a").unwrap(), Some(Value::counter(2)));
    assert_eq!(transaction.get("none").unwrap(), None);
    done(other.execute(b"put none 1", PATIENCE));
    transaction.put("c", "x").unwrap();
    assert!(is_changed(transaction.commit()), "none is there now");
    assert!(is_changed(transaction.commit()), "and stays refused");
    assert!(matches!(transaction.get("a"), Err(TransactionError::Ended)));
}

/// A client of that site, that has seen what another has.
fn client_at(sites: &Sites, site: SiteId, other: &Client) -> Client {
    let mut client = sites.client(99, &[site]);
    client.has_seen(other.horizon());
    client
}

#[test]
fn transactions_of_many_clients_lose_nothing() {
    let sites = Sites::start(2, 1);
    let each = |number: u64| {
        let mut client = sites.client(number, if number.is_multiple_of(2) { &[A0, B0] } else { &[B0, A0] });
        for _ in 0..10 {
            let moved = client.transaction(PATIENCE, |transaction| {
                let total = transaction.get("total")?.and_then(|value| value.as_counter()).unwrap_or(0);
                transaction.put("total", Value::counter(total + 1))?;
                transaction.add("added", 1)
            });
            moved.unwrap();
        }
    };
    std::thread::scope(|scope| (1..=4).for_each(|number| drop(scope.spawn(move || each(number)))));
    let mut client = sites.client(9, &[A0]);
    assert_eq!(done(client.read_latest(b"together get total; get added", PATIENCE)), "40\n40\n");
}

#[test]
fn transaction_survives_its_site_and_executes_once() {
    let mut sites = Sites::start(1, 3);
    let mut client = sites.client(1, &[SiteId::new(0, 2), A0, SiteId::new(0, 1)]);
    done(client.execute(b"put a 1", PATIENCE));
    let mut transaction = client.begin(PATIENCE);
    assert_eq!(transaction.get("a").unwrap(), Some(Value::counter(1)));
    transaction.add("a", 1).unwrap();
    assert_eq!(transaction.get("a").unwrap(), Some(Value::counter(2)));
    sites.stop(SiteId::new(0, 2));
    transaction.commit().unwrap();
    transaction.commit().unwrap(); // under the same number
    assert_eq!(done(client.read(b"get a", PATIENCE)), "2");
}

#[test]
fn what_cannot_be_is_told_and_changes_nothing() {
    let sites = Sites::start(1, 1);
    let mut client = sites.client(1, &[A0]);
    done(client.execute(b"put text words", PATIENCE));
    let mut transaction = client.begin(PATIENCE);
    transaction.add("text", 1).unwrap();
    transaction.put("b", "x").unwrap();
    assert!(matches!(transaction.commit(), Err(TransactionError::Call(CallError::No { .. }))));
    let mut transaction = client.begin(PATIENCE);
    transaction.add("text", 1).unwrap();
    assert!(matches!(transaction.get("text"), Err(TransactionError::NotACounter(_))));
    let mut transaction = client.begin(PATIENCE);
    for name in ["b", "c", "d"] {
        transaction.put(name, Value::new(vec![0; 400 << 10])).unwrap();
    }
    assert!(
        matches!(transaction.commit(), Err(TransactionError::Call(CallError::No { .. }))),
        "more than a frame"
    );
    assert!(client.read(b"get b", PATIENCE).is_err());
}
