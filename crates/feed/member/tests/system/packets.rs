//! The stream by UDP: the same packets, of both servers, make one sequence. Loopback unicast stands for a group.

use std::net::UdpSocket;
use std::time::Instant;

use pares_desk::item::OrderedItem;
use pares_feed::publication::Session;
use pares_feed::receiver::Receiver;
use pares_member::{MemberConfig, start};
use pares_node::HostWorld;

use crate::rig::{PATIENCE, Rig};

#[test]
fn packets_of_both_servers_are_one_sequence_with_the_same_bytes_as_the_log() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(PATIENCE)).unwrap();
    let address = socket.local_addr().unwrap();
    let rig = Rig::new(MemberConfig { groups: vec![address; 2], ..MemberConfig::local(2) });
    let mut trader = rig.trader(1, 0);
    for _ in 0..100 {
        trader.say("by packet");
        trader.settle();
    }
    let number = start::stream_number(&HostWorld::new(&rig.layout).unwrap()).unwrap();
    let session = Session(format!("{number:010}").into_bytes().try_into().unwrap());
    let (mut receiver, mut records) = (Receiver::new(session, 0), Vec::new());
    let (mut bytes, begun) = (vec![0; 65_536], Instant::now());
    while records.len() < 100 {
        assert!(begun.elapsed() < PATIENCE);
        let (length, _) = socket.recv_from(&mut bytes).unwrap();
        receiver
            .on_packet(&bytes[..length], 0, |number, record| {
                assert_eq!(OrderedItem::read(record).unwrap().position.0, number);
                records.push(record.to_vec());
            })
            .unwrap();
    }
    assert_eq!(records, rig.log(0)[..records.len()]);
}
