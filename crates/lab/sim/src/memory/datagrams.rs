//! Datagrams in memory: packets of publishers' lines, requests that come to replayers, and what they answer.
//!
//! What is sent is on its way once the call is over; whether and when it arrives is the simulator's matter (`world/feed/lines`).

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;

use pares_publisher::lines::Lines;
use pares_publisher::replayer::Datagrams;
use pares_types::ShardId;

use super::host::Host;
use super::machine::Effect;
use crate::bug::Bug;
use crate::defects;

/// A publisher's way to its line.
#[derive(Debug)]
pub(crate) struct MemoryLines {
    host: Host,
    /// By session: messages sent in this life, by which a defective one counts.
    sent: BTreeMap<[u8; 10], u64>,
}

impl MemoryLines {
    pub(crate) fn new(host: &Host) -> Self {
        Self { host: host.clone(), sent: BTreeMap::new() }
    }
}

impl Lines for MemoryLines {
    fn send(&mut self, _: ShardId, packet: &[u8]) -> u64 {
        if self.host.passes() {
            let mut packet = packet.to_vec();
            if self.host.with_seam(|seam, _| seam.has(Bug::NumberByThisLife)) {
                defects::number_anew(&mut packet, &mut self.sent);
            }
            self.host.tell(Effect::Packet(packet));
        }
        0
    }
}

/// A replayer's socket for requests.
#[derive(Debug)]
pub(crate) struct MemoryDatagrams {
    host: Host,
}

impl MemoryDatagrams {
    pub(crate) fn new(host: &Host) -> Self {
        Self { host: host.clone() }
    }
}

impl Datagrams for MemoryDatagrams {
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<(SocketAddr, usize)> {
        self.host.passes();
        let (from, request) = self.host.take_request().ok_or(io::ErrorKind::WouldBlock)?;
        // A datagram that is longer than the room for it loses the rest.
        let taken = request.len().min(bytes.len());
        bytes[..taken].copy_from_slice(&request[..taken]);
        Ok((from, taken))
    }

    fn send(&mut self, to: SocketAddr, packet: &[u8]) {
        if self.host.passes() {
            let mut packet = packet.to_vec();
            if self.host.with_seam(|seam, _| seam.has(Bug::AnswerWithNeighbour)) {
                defects::answer_with_neighbour(&mut packet);
            }
            self.host.tell(Effect::Answer(to, packet));
        }
    }
}
