//! Strangers at ports for FIX.

use crate::queue::Action;
use crate::scenario::{MS, US};

use super::super::{World, gateway_id};
use super::FixEnd;

impl World<'_> {
    /// Garbage, half a Logon, no Logon, one too long, a wrong sum, a Logon in another's name under a number that is gone; or nothing at all.
    pub(super) fn send_something_hostile_by_fix(&mut self, victim: usize) {
        self.summary.hostile += 1;
        let gateway = self.random.index(self.scenario.gateways);
        if !self.is_up(gateway_id(gateway)) {
            return;
        }
        let now_ns = self.now_ns;
        let mut logon = self.fix_clients[victim].first_logon(now_ns);
        match self.random.below(7) {
            0 => logon = (0..self.random.between(1, 200)).map(|_| self.random.next() as u8).collect(),
            1 => logon.truncate(self.random.index(logon.len())),
            2 => logon = b"8=FIX.4.4\x019=99999\x0135=A\x01".to_vec(),
            3 => logon = b"8=FIX.4.4\x019=5\x0135=0\x0110=161\x01".to_vec(),
            4 => {
                let at = logon.len() - 2;
                logon[at] ^= 1;
            }
            5 => logon.clear(),
            _ if !self.fix_clients[victim].has_gone_on() => logon.clear(),
            _ => {}
        }
        let nobody = self.clients.len() - 1;
        let connection = self.open_connection_as(nobody, gateway, Some(FixEnd::Stranger));
        if !logon.is_empty() {
            self.send_to_gateway(connection, &logon);
        }
        let for_ns = self.random.between(200 * US, 4 * MS);
        self.queue.push(self.now_ns + for_ns, Action::HangUp { connection });
        self.queue.push(self.now_ns + for_ns, Action::Broken { connection });
    }
}
