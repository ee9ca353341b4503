//! The stream by UDP: the same packets, of both servers, make one sequence. Loopback unicast stands for a group, and where the system makes a
//! network for a test, a group does.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use pares_desk::item::OrderedItem;
use pares_feed::publication::Session;
use pares_feed::receiver::Receiver;
use pares_member::{MemberConfig, start};
use pares_node::HostWorld;

use crate::rig::{Rig, eventually};
use pares_testbed::own_network;

/// Who listens to the group.
struct Listener {
    socket: UdpSocket,
    receiver: Receiver,
    records: Vec<Vec<u8>>,
}

impl Listener {
    /// Takes what has come: a socket that nobody reads has room for some two hundred packets.
    fn take(&mut self) {
        let mut bytes = vec![0; 65_536];
        while let Ok((length, _)) = self.socket.recv_from(&mut bytes) {
            let hand_out = |first: u64, records: &[&[u8]]| {
                for (number, record) in (first..).zip(records) {
                    assert_eq!(OrderedItem::read(record).unwrap().position.0, number);
                    self.records.push(record.to_vec());
                }
            };
            self.receiver.on_packet(&bytes[..length], 0, hand_out).unwrap();
        }
    }
}

/// What both servers send to that address, which comes out of that socket, is one sequence.
fn hear(socket: UdpSocket, address: SocketAddr) {
    socket.set_nonblocking(true).unwrap();
    let rig = Rig::new(MemberConfig { groups: vec![address; 2], ..MemberConfig::local(2) });
    let number = start::stream_number(&HostWorld::new(&rig.layout).unwrap()).unwrap();
    let session = Session(format!("{number:010}").into_bytes().try_into().unwrap());
    let mut listener = Listener { socket, receiver: Receiver::new(session, 0), records: Vec::new() };
    let mut trader = rig.trader(1, 0);
    for said in 1..=100 {
        trader.say("by packet");
        trader.settle();
        eventually(|| {
            listener.take();
            listener.records.len() >= said
        });
    }
    assert_eq!(listener.records, rig.log(0)[..listener.records.len()]);
}

#[test]
fn packets_of_both_servers_match_the_log() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let address = socket.local_addr().unwrap();
    hear(socket, address);
}

#[test]
fn a_group_hears_the_same() {
    if !own_network::is_inside("packets::a_group_hears_the_same") {
        return;
    }
    let group = Ipv4Addr::new(239, 7, 7, 8);
    let socket = UdpSocket::bind((group, 7_300)).unwrap();
    socket.join_multicast_v4(&group, &Ipv4Addr::LOCALHOST).unwrap();
    hear(socket, (group, 7_300).into());
}
