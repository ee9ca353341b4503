//! A whole system whose market data are multicast, in a network of the test's own: groups reach all receivers that join them.

use std::net::SocketAddr;

use pares_client::Client;
use pares_config::FeedConfig;
use pares_node::SystemConfig;
use pares_types::{MemberId, Side};

use crate::common::exchange::{addresses, small};
use crate::common::limit;
use crate::common::process::Up;
use crate::feed_tls::Watch;
use pares_testbed::own_network;

fn with_groups() -> SystemConfig {
    let group = |last, port| SocketAddr::from(([239, 192, 7, last], port));
    let feed = FeedConfig {
        line_a: group(1, 17_100),
        line_b: group(2, 27_100),
        interface: [127, 0, 0, 1].into(),
        ttl: 0,
        ..FeedConfig::default()
    };
    SystemConfig { feed: Some(feed), ..small(1) }
}

#[test]
fn two_watchers_of_multicast_groups_are_both_current() {
    const TEST: &str = "feed_groups::two_watchers_of_multicast_groups_are_both_current";
    if !own_network::is_inside(TEST) {
        return;
    }
    let up = Up::fresh(&with_groups());
    let mut buyer = Client::connect(addresses(&up.layout, &up.config)[0], MemberId(7)).unwrap();
    buyer.submit_and_wait(&limit(1, 1, Side::Buy, 10, 2_230_000)).unwrap();
    let mut watches = [(); 2].map(|()| Watch::start(&["ALFA", "--dir", up.layout.root().to_str().unwrap()]));
    let mut said: Vec<Vec<String>> = Vec::new();
    said.extend(watches.iter_mut().map(|watch| watch.until(&["ALFA", "current", "bid 10 at 223.00"])));
    buyer.submit_and_wait(&limit(2, 1, Side::Buy, 5, 2_230_000)).unwrap();
    said.extend(watches.iter_mut().map(|watch| watch.until(&["ALFA", "current", "bid 15 at 223.00"])));
    // Unlike an address of one receiver, a group is nobody's alone.
    assert!(!said.iter().flatten().any(|line| line.contains("in use by another")), "{said:#?}");
}
