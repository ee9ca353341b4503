//! Paper 1, section 3: the worked example, end to end through two shards with books.

use pares_book::{FastBook, NaiveBook};
use pares_types::{Request, RequestId, Side};

use crate::rig::{Venue, enter, window};

fn p(n: u64) -> Request {
    enter(1, n + 1, Side::Buy, 100 + n as i64, 10)
}

fn q(n: u64) -> Request {
    enter(2, n + 1, Side::Sell, 101, 5 + n)
}

fn ids(requests: &[Request]) -> Vec<RequestId> {
    requests.iter().map(|request| request.id).collect()
}

fn section_3() -> (Venue<FastBook>, Venue<NaiveBook>) {
    let window = window(8);
    let (mut one, mut two) = (Venue::new(&window), Venue::new(&window));
    one.receive(&[q(0), q(1), p(0), p(1), q(2), p(2)]);
    two.receive(&[p(0), p(1), q(0), p(2), q(1), q(2)]);
    (one, two)
}

#[test]
fn paper1_s3_each_venue_conforms_where_it_lost() {
    let (mut one, mut two) = section_3();
    one.step_one(); // EV1 wins position 0 with q0
    assert_eq!((two.step_one().won, two.order()), (0, ids(&[q(0)])));
    two.step_one(); // EV2 wins position 1 with p0
    assert_eq!((one.step_one().won, one.order()), (0, ids(&[q(0), p(0)])));
    two.step_one();
    two.step_one(); // EV2 wins positions 2 and 3 with p1 and p2
    assert_eq!((one.step_one().won, one.order()), (0, ids(&[q(0), p(0), p(1)])));
}

#[test]
fn paper1_s3_both_execute_q0_p0_p1_p2_q1_q2() {
    let (mut one, mut two) = section_3();
    one.step_one();
    two.step_one();
    two.step_one();
    one.step_one();
    two.step_one();
    two.step_one();
    one.step();
    two.step();
    one.step();
    let order = ids(&[q(0), p(0), p(1), p(2), q(1), q(2)]);
    assert_eq!((one.order(), two.order()), (order.clone(), order));
    assert_eq!(one.out.all, two.out.all);
    assert_eq!(one.shard.state_hash(), two.shard.state_hash());
}

#[test]
fn paper1_s3_request_after_its_order_is_ignored() {
    let window = window(8);
    let (mut one, mut two) = (Venue::<FastBook>::new(&window), Venue::<FastBook>::new(&window));
    one.receive(&[q(0)]);
    one.step();
    two.receive(&[p(0), q(0)]);
    two.step();
    two.step();
    assert!(!two.shard.on_request(&q(0)));
    assert_eq!(two.order(), ids(&[q(0), p(0)]));
}
