//! Sign-ons and names as they should not be: wrong keys at rate, one session on two connections, a clock that was set back.

use std::sync::atomic::{AtomicU64, Ordering};

use pares_client::{Client, ClientRequest, KeyFile, Secret, Update};
use pares_node::SystemConfig;
use pares_types::{
    ClientOrderId, Command, DAY_NS, InstrumentId, NewOrder, Phase, Price, Quantity, Reason, Side, Status,
    TimeInForce,
};

use crate::common::exchange::{Exchange, gateway};
use crate::common::{PATIENCE, limit};
use crate::sign_on::{done, key, known, refusal, required};

const PRICE: i64 = 2_238_200;
/// Those who try keys at once, and how often each does.
const GUESSERS: u32 = 8;
const TRIES: u64 = 50;
/// Names that a shard remembers.
const NAMES: u64 = 16_384;

#[test]
fn wrong_keys_at_rate_sign_nobody_on_and_lose_nothing() {
    let exchange = Exchange::start(&required(1));
    done(&exchange, "member add 7");
    done(&exchange, "member add 8");
    done(&exchange, "member limit 7 --orders 20000");
    let mut client = known(&exchange, 0, &key(&exchange, 7, 1));
    let (refused, address) = (AtomicU64::new(0), exchange.addresses()[0]);
    std::thread::scope(|scope| {
        for number in 0..GUESSERS {
            let refused = &refused;
            // The operator and members 7 and 8 are there, 9 is not.
            let member = [0, 7, 8, 9][number as usize % 4];
            let wrong = KeyFile { member, session: 1, secret: Secret::generate() };
            scope.spawn(move || {
                for _ in 0..TRIES {
                    let reason = refusal(Client::connect_as(address, &wrong));
                    assert_eq!(reason, Reason::WrongKey, "on this machine every proof is looked at");
                    refused.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        // Meanwhile the operator signs on, and the owner of a key that is guessed.
        done(&exchange, "member add 11");
        known(&exchange, 0, &key(&exchange, 8, 1));
        for name in 1.. {
            let answer = client.submit_and_wait(&limit(name, 1, Side::Buy, 1, PRICE)).unwrap();
            assert_eq!(answer.status, Status::Resting);
            if refused.load(Ordering::Relaxed) == u64::from(GUESSERS) * TRIES {
                break;
            }
        }
    });
    assert!(exchange.counter(gateway(0), "wrong_keys") >= u64::from(GUESSERS) * TRIES);
}

/// Enters orders that leave nothing behind, until their shard has forgotten all names before.
fn use_up_names(client: &mut Client) {
    let order = NewOrder::limit(Side::Buy, Price(100), Quantity(1));
    let order = NewOrder { time_in_force: TimeInForce::Ioc, ..order };
    let (mut sent, mut answered) = (0, 0);
    while answered < NAMES {
        while sent < answered + 200 {
            sent += 1;
            let (client_order_id, instrument) = (ClientOrderId(sent), InstrumentId(1));
            client.send(&ClientRequest::Enter { client_order_id, instrument, order }).unwrap();
        }
        client.flush().unwrap();
        assert!(client.wait(PATIENCE).unwrap());
        client
            .poll(|update| {
                if let Update::Answer(answer) = update {
                    assert_eq!(answer.reason, Reason::NothingToTrade);
                    answered += 1;
                }
            })
            .unwrap();
    }
}

/// `pares admin` names requests by the clock. Names of the time before it was set back are higher, and forgotten: what lies below them
/// is refused as too old.
#[test]
fn an_operator_is_heard_though_the_clock_was_set_back_a_day() {
    let exchange = Exchange::start(&SystemConfig { session_rate_max: 0, ..required(1) });
    done(&exchange, "member add 7");
    let operator = KeyFile::read(&exchange.layout().operator_key()).unwrap();
    let mut before = known(&exchange, 0, &operator);
    let tomorrow = pares_os::clock::now_ns() + DAY_NS;
    let client_order_id = ClientOrderId(1 << 48 | tomorrow >> 14);
    let (instrument, command) = (InstrumentId(1), Command::SetPhase(Phase::Continuous));
    let answer = before.submit_and_wait(&ClientRequest::Exchange { client_order_id, instrument, command });
    assert_eq!(answer.unwrap().reason, Reason::NothingChanged, "its name is used up");
    drop(before);
    use_up_names(&mut known(&exchange, 0, &key(&exchange, 7, 1)));
    done(&exchange, "phase ALFA halted");
    done(&exchange, "block 7");
    assert!(done(&exchange, "audit").contains("too_old"), "the first names were");
}
