//! The dead man's timer: what is said of it is true, whatever becomes of the gateway.

use std::time::Duration;

use pares_wire::frame::ClientFrame;
use serde_json::{Value, json};

use crate::client::{PATIENT, Served, eventually};
use crate::gateway::{Gateway, own_and_other};

const PATH: &str = "/v1/cancel-after";

/// What it says of the timer.
fn shown((status, told): &(u16, Value)) -> (u64, bool) {
    assert_eq!(*status, 200, "{told}");
    (told["seconds"].as_u64().unwrap(), told["is_at_gateway"].as_bool().unwrap())
}

#[test]
fn unconfirmed_timer_is_reported_as_local_only() {
    let gateway = Gateway::start();
    let served = Served::by(&[&gateway], Duration::from_millis(200));
    assert_eq!(shown(&served.get(PATH)).0, 0);
    gateway.hush();
    let (status, problem) = served.ask("POST", PATH, &json!({ "seconds": 3_600 }));
    assert_eq!((status, &problem["reason"]), (504, &json!("no_answer_yet")));
    assert!(problem["detail"].as_str().unwrap().contains(PATH), "{problem}");
    let (seconds, is_at_gateway) = shown(&served.get(PATH));
    assert!((3_000..=3_600).contains(&seconds) && !is_at_gateway);
    gateway.speak();
    let mut told = (0, false);
    eventually("a gateway has it", || {
        told = shown(&served.get(PATH));
        told.1
    });
    assert!((3_000..=3_600).contains(&told.0));
    eventually("it is off", || served.ask("POST", PATH, &json!({ "seconds": 0 })).0 == 200);
    assert_eq!(shown(&served.get(PATH)).0, 0);
}

#[test]
fn a_timer_goes_along_to_the_next_gateway_when_its_own_dies() {
    let gateways = [Gateway::start(), Gateway::start()];
    let served = Served::by(&[&gateways[0], &gateways[1]], PATIENT);
    let set = served.ask("POST", PATH, &json!({ "seconds": 3_600 }));
    assert_eq!(shown(&set), (3_600, true));
    let [own, other] = own_and_other(&gateways);
    assert!(matches!(own.heard()[0], ClientFrame::CancelAfter { after_ms: 3_500_000..=3_600_000 }));
    assert_eq!(other.heard(), []);
    own.die();
    let (seconds, is_at_gateway) = shown(&served.get(PATH));
    assert!((3_000..=3_600).contains(&seconds) && is_at_gateway);
    let taken_along = other.heard();
    assert!(
        matches!(taken_along[0], ClientFrame::CancelAfter { after_ms: 3_000_000..3_600_000 }),
        "before anything else: {taken_along:?}"
    );
}

/// The timer that the next gateway receives, if it is one that has passed at a gateway that died; `is_known`: one that was asked something behind it.
fn passed(is_known: bool) -> Option<ClientFrame> {
    let gateways = [Gateway::start(), Gateway::start()];
    let served = Served::by(&[&gateways[0], &gateways[1]], PATIENT);
    assert!(shown(&served.ask("POST", PATH, &json!({ "seconds": 1 }))).1);
    let [own, other] = own_and_other(&gateways);
    std::thread::sleep(Duration::from_millis(if is_known { 2_100 } else { 1_100 }));
    if is_known {
        assert_eq!(shown(&served.get(PATH)), (0, true));
    }
    own.die();
    assert_eq!(served.get("/v1/status").0, 200, "by the next one");
    other.heard().into_iter().find(|heard| matches!(heard, ClientFrame::CancelAfter { .. }))
}

#[test]
fn expired_timer_of_silent_gateway_fires_at_next() {
    assert_eq!(passed(false), Some(ClientFrame::CancelAfter { after_ms: 1 }));
}

#[test]
fn a_timer_that_went_off_is_over() {
    assert_eq!(passed(true), None);
}
