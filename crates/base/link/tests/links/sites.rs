//! Sites and their frames.

use std::time::Duration;

use pares_link::SendError;
use pares_wan::{Direction, Proxy, ProxySettings};

use crate::both_ways;
use crate::rig::{HIGH, LOW, PATIENCE, Site, Told, high, low, pair, step_both};

both_ways! {
    frames_arrive_in_order_both_ways
    frame_of_maximum_length_arrives_longer_is_refused
    a_site_that_restarts_is_found_again
    a_site_that_does_not_read_is_let_go_with_bounded_memory
    a_site_called_dead_is_connected_anew
    a_site_that_comes_late_is_dialled_until_it_is_there
    black_hole_delivers_held_data_when_it_heals
    sites_find_each_other_again_after_a_cut
    site_behind_black_hole_is_given_up_and_redialled
}

fn frames_arrive_in_order_both_ways(tls: bool) {
    let (mut a, mut b) = pair(tls);
    let payload = |i: usize| vec![i as u8; (i * 997) % 20_000];
    for i in 0..300 {
        a.links.send(HIGH, &payload(i)).unwrap();
        b.links.send(LOW, &payload(i + 1)).unwrap();
    }
    step_both(&mut a, &mut b, |a, b| a.frames().len() == 300 && b.frames().len() == 300);
    for i in 0..300 {
        assert!(b.frames()[i] == payload(i) && a.frames()[i] == payload(i + 1), "frame {i}");
    }
}

fn frame_of_maximum_length_arrives_longer_is_refused(tls: bool) {
    let (mut a, mut b) = pair(tls);
    let payload: Vec<u8> = (0..pares_link::FRAME_MAX).map(|i| (i * 7 + i / 251) as u8).collect();
    assert_eq!(a.links.send(HIGH, &[0; pares_link::FRAME_MAX + 1]), Err(SendError::TooLong));
    a.links.send(HIGH, &payload).unwrap();
    a.links.send(HIGH, b"next").unwrap();
    step_both(&mut a, &mut b, |_, b| b.frames().len() == 2);
    assert!(b.frames()[0] == payload && b.frames()[1] == b"next");
    assert_eq!(a.links.backlog(HIGH), 0);
}

fn a_site_that_restarts_is_found_again(tls: bool) {
    let (mut a, b) = pair(tls);
    let mut config = high(tls);
    config.listen = b.address();
    drop(b);
    a.step_until(|told| matches!(told, Told::Disconnected(HIGH, _)));
    assert_eq!(a.links.send(HIGH, b"lost"), Err(SendError::NotConnected));
    let mut b = Site::open(config);
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
    a.links.send(HIGH, b"again").unwrap();
    step_both(&mut a, &mut b, |_, b| b.frames() == [b"again"]);
}

fn a_site_that_does_not_read_is_let_go_with_bounded_memory(tls: bool) {
    let mut b = Site::open(high(tls));
    let mut config = low(b.address(), tls);
    config.backlog_max = 12 << 20;
    let mut a = Site::open(config);
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
    // What the kernel takes for b is bounded too, so this ends.
    let mut sent = 0;
    let refused = loop {
        a.step();
        match a.links.send(HIGH, &[7; 1 << 20]) {
            Ok(()) => sent += 1,
            Err(error) => break error,
        }
        assert!(a.links.backlog(HIGH) <= 12 << 20);
    };
    assert_eq!(refused, SendError::Full);
    assert!(sent >= 11, "{sent}");
    a.step_until(|told| matches!(told, Told::Disconnected(HIGH, why) if why.contains("unread")));
    assert_eq!(a.links.backlog(HIGH), 0);
    // Both begin again.
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.counts().connected == 2);
}

fn a_site_called_dead_is_connected_anew(tls: bool) {
    let (mut a, mut b) = pair(tls);
    b.links.disconnect(LOW);
    step_both(&mut a, &mut b, |a, b| a.links.counts().connected == 2 && b.links.counts().connected == 2);
    assert!(b.heard(&Told::Disconnected(LOW, "closed by this site".to_owned())));
}

fn a_site_that_comes_late_is_dialled_until_it_is_there(tls: bool) {
    let b = Site::open(high(tls));
    let mut config = high(tls);
    config.listen = b.address();
    drop(b);
    let mut a = Site::open(low(config.listen, tls));
    a.step_until(|told| matches!(told, Told::Failed(Some(HIGH), why) if why.contains("cannot be reached")));
    let mut b = Site::open(config);
    step_both(&mut a, &mut b, |a, b| a.links.is_connected(HIGH) && b.links.is_connected(LOW));
}

/// Two sites with a line of some length between them, not connected yet.
fn distant(tls: bool, hello_max: Duration) -> (Site, Site, Proxy) {
    let b = Site::open(high(tls));
    let proxy = Proxy::start(ProxySettings::to(b.address(), Duration::from_millis(5))).unwrap();
    let mut config = low(proxy.address(), tls);
    config.hello_max = hello_max;
    (Site::open(config), b, proxy)
}

fn connected(a: &Site, b: &Site) -> bool {
    a.links.is_connected(HIGH) && b.links.is_connected(LOW)
}

fn black_hole_delivers_held_data_when_it_heals(tls: bool) {
    let (mut a, mut b, proxy) = distant(tls, PATIENCE);
    step_both(&mut a, &mut b, connected);
    proxy.handle().black_hole();
    // Within what the proxy takes, so that nothing waits here.
    for i in 0..100u8 {
        a.links.send(HIGH, &[i; 1_000]).unwrap();
    }
    for _ in 0..30 {
        a.step();
        b.step();
    }
    assert!(b.frames().is_empty() && connected(&a, &b), "silent, and nothing is closed");
    proxy.handle().heal();
    step_both(&mut a, &mut b, |_, b| b.frames().len() == 100);
    assert!(b.frames().iter().enumerate().all(|(i, payload)| *payload == [i as u8; 1_000]));
    assert_eq!(a.links.counts().connected, 1);
}

fn sites_find_each_other_again_after_a_cut(tls: bool) {
    let (mut a, mut b, proxy) = distant(tls, PATIENCE);
    step_both(&mut a, &mut b, connected);
    proxy.handle().cut();
    step_both(&mut a, &mut b, |a, b| {
        a.links.counts().disconnected == 1 && b.links.counts().disconnected == 1
    });
    a.until(|a| a.links.counts().failed > 0);
    proxy.handle().heal();
    step_both(&mut a, &mut b, connected);
    b.links.send(LOW, b"back again").unwrap();
    step_both(&mut a, &mut b, |a, _| a.frames() == [b"back again"]);
}

fn site_behind_black_hole_is_given_up_and_redialled(tls: bool) {
    let (mut a, mut b, proxy) = distant(tls, Duration::from_millis(200));
    proxy.handle().black_hole();
    step_both(&mut a, &mut b, |a, _| a.failed_with("no hello"));
    assert_eq!(proxy.handle().traffic(Direction::Forth).bytes, 0);
    proxy.handle().heal();
    step_both(&mut a, &mut b, connected);
}
