//! Taps held against the sockets: what is in them has passed, and of who closed or is still there nothing is missing.

use std::net::SocketAddr;

use pares_config::NodeId;
use pares_log::LogSalvage;
use pares_port::TapEntry;
use pares_tap::{Tape, TapeEnd, TapedConnection, TapedPiece};

use super::{World, gateway_id};
use crate::memory::reader::Salvage;
use crate::scenario::Scenario;
use crate::{Broken, Verdict, must};

/// Every so many seeds gateways keep taps; never beside a defect, which is to be found as it would be without.
const SEEDS: u64 = 4;
const TAPED: &str = "the tap is what passed";

pub(super) fn are_there(scenario: &Scenario) -> bool {
    scenario.bug.is_none() && scenario.seed.is_multiple_of(SEEDS)
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
    pub(super) fn check_taps(&mut self) -> Verdict {
        for gateway in (0..self.scenario.gateways).filter(|_| self.config.tap) {
            let NodeId::Gateway(id) = gateway_id(gateway) else { continue };
            let Some(log) = self.machine.tap(id) else { continue };
            let end = log.lock().written;
            let (mut salvage, mut tape) = (Salvage::below(log, end), Tape::default());
            while let Some(record) = salvage.next() {
                let entry =
                    TapEntry::read(record.payload).expect("a gateway writes entries that can be read");
                let index = tape.take(&entry);
                if let (Some(index), Some(piece)) = (index, TapedPiece::of(&entry)) {
                    self.check_piece(gateway, &tape.connections[index], piece)?;
                }
            }
            let mut short = 0;
            for connection in &tape.connections {
                short += self.check_taped(gateway, connection)?;
                self.summary.taped += 1;
            }
            self.summary.tap_lost += tape.lost.0;
            let lost = tape.lost.1;
            must(short <= lost, TAPED, || {
                format!("the tap of gateway {gateway} lacks {short} bytes, and says that it lost {lost}")
            })?;
        }
        Ok(())
    }

    /// The number of a connection; one whose beginning was lost on a full disk does not say which it was.
    fn number(taped: &TapedConnection) -> Option<usize> {
        match taped.addresses.split(' ').next()?.parse().ok()? {
            SocketAddr::V4(peer) => Some(u32::from(*peer.ip()) as usize),
            SocketAddr::V6(_) => None,
        }
    }

    /// These bytes have passed.
    fn check_piece(&self, gateway: usize, taped: &TapedConnection, piece: TapedPiece<'_>) -> Verdict {
        let Some(number) = Self::number(taped) else { return Ok(()) };
        let state = self.machine.lock();
        let passed = &state.net.connection(number).passed[usize::from(!piece.is_in)];
        let from = piece.at as usize;
        let there = passed.get(from..from + piece.bytes.len()).unwrap_or_default();
        let is_same = |(taped, passed): (&u8, &u8)| taped == passed || piece.is_blanked && *taped == b'*';
        let length = piece.bytes.len();
        must(there.len() == length && piece.bytes.iter().zip(there).all(is_same), TAPED, || {
            format!("connection {number} of gateway {gateway}: {length} bytes at {from} did not pass")
        })
    }

    /// How many bytes are not in the tap, of a connection whose gateway did not die.
    fn check_taped(&self, gateway: usize, taped: &TapedConnection) -> Result<u64, Broken> {
        let Some(number) = Self::number(taped) else { return Ok(0) };
        let state = self.machine.lock();
        let connection = state.net.connection(number);
        let passed = connection.passed.each_ref().map(|bytes| bytes.len() as u64);
        must((0..2).all(|way| taped.totals[way] <= passed[way]), TAPED, || {
            format!("connection {number} of gateway {gateway}: {:?} of {passed:?}", taped.totals)
        })?;
        let unseen: u64 = (0..2).map(|way| passed[way] - taped.totals[way] + taped.missing[way]).sum();
        Ok(if taped.end == TapeEnd::Gateway { 0 } else { unseen })
    }
}
