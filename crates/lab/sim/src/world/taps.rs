//! Taps held against the sockets: what is in them has passed, and of who closed or is still there nothing is missing.

use std::net::SocketAddr;

use pares_log::LogSalvage;
use pares_roles::NodeId;
use pares_tap::{TapEntry, Tape, TapeEnd, TapedConnection};

use super::{World, gateway_id};
use crate::Broken;
use crate::memory::reader::Salvage;
use crate::scenario::Scenario;

/// Every so many seeds gateways keep taps; never beside a defect, which is to be found as it would be without.
const SEEDS: u64 = 4;

pub(super) fn are_there(scenario: &Scenario) -> bool {
    scenario.bug.is_none() && scenario.seed.is_multiple_of(SEEDS)
}

fn broken<T>(what: String) -> Result<T, Broken> {
    Err(Broken { invariant: "the tap is what passed", what })
}

impl World<'_> {
    /// The tap's log dies with its gateway's process.
    pub(super) fn tap_dies(&mut self, node: NodeId, torn: bool) {
        let NodeId::Gateway(gateway) = node else { return };
        if let Some(log) = self.machine.tap(gateway) {
            log.lock().process_died(&mut self.random, torn);
        }
    }

    /// The run is over.
    pub(super) fn check_taps(&mut self) -> Result<(), Broken> {
        for gateway in (0..self.scenario.gateways).filter(|_| self.config.tap) {
            let NodeId::Gateway(id) = gateway_id(gateway) else { continue };
            let Some(log) = self.machine.tap(id) else { continue };
            let end = log.lock().written;
            let (mut salvage, mut tape) = (Salvage::below(log, end), Tape::default());
            while let Some(record) = salvage.next() {
                let entry =
                    TapEntry::read(record.payload).expect("a gateway writes entries that can be read");
                tape.take(&entry, &|_| true);
            }
            self.summary.tap_lost += tape.lost.0;
            for connection in &tape.connections {
                self.check_taped(gateway, connection)?;
                self.summary.taped += 1;
            }
        }
        Ok(())
    }

    fn check_taped(&self, gateway: usize, taped: &TapedConnection) -> Result<(), Broken> {
        // One whose beginning was lost on a full disk does not say which it was.
        let peer = taped.addresses.split(' ').next().and_then(|peer| peer.parse::<SocketAddr>().ok());
        let Some(SocketAddr::V4(peer)) = peer else { return Ok(()) };
        let number = u32::from(*peer.ip()) as usize;
        let state = self.machine.lock();
        let connection = state.net.connection(number);
        for piece in &taped.pieces {
            let passed = &connection.passed[usize::from(!piece.is_in)];
            let from = piece.at as usize;
            let there = passed.get(from..from + piece.bytes.len()).unwrap_or_default();
            let is_same = |(taped, passed): (&u8, &u8)| taped == passed || piece.is_blanked && *taped == b'*';
            if there.len() != piece.bytes.len() || !piece.bytes.iter().zip(there).all(is_same) {
                return broken(format!(
                    "connection {number} of gateway {gateway}: {} bytes at {from} did not pass",
                    piece.bytes.len()
                ));
            }
        }
        let passed = connection.passed.each_ref().map(|bytes| bytes.len() as u64);
        let is_whole = match taped.end {
            TapeEnd::Closed(_) | TapeEnd::Open => taped.totals == passed,
            TapeEnd::Gateway => taped.totals[0] <= passed[0] && taped.totals[1] <= passed[1],
        };
        let is_full_once = self.scenario.faults.gateway_full_ns > 0;
        if !is_whole || taped.missing != [0; 2] && !is_full_once {
            return broken(format!(
                "connection {number} of gateway {gateway}: {taped:?}; {passed:?} bytes passed"
            ));
        }
        Ok(())
    }
}
