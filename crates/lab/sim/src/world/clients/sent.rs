//! What gateways have sent, and connections that they have closed.

use crate::queue::Action;
use crate::scenario::US;

use super::super::World;
use super::Session;

impl World<'_> {
    /// What gateways have written is on its way.
    pub(in crate::world) fn send_frames(&mut self) {
        // What a process that is stopped midway has written for FIX is covered by what it has not published yet.
        let is_taken = |number: usize| self.is_taken(number);
        let sent = self.machine.lock().net.take_sent(is_taken);
        for (connection, bytes) in sent {
            let delay_ns = self.random.between(10 * US, 80 * US);
            let session = &mut self.sessions[connection];
            session.to_client_ns = (self.now_ns + delay_ns).max(session.to_client_ns + 1);
            let at_ns = session.to_client_ns;
            self.queue.push(at_ns, Action::ToClient { connection, bytes });
        }
        self.notice_closed();
    }

    fn notice_closed(&mut self) {
        let closed: Vec<usize> = {
            let state = self.machine.lock();
            let is_open = |session: &Session| session.is_alive && !session.is_closing;
            let open = self.sessions.iter().enumerate().filter(|(_, session)| is_open(session));
            let open = open.map(|(number, _)| number).filter(|&number| self.is_taken(number));
            open.filter(|&n| state.net.connection(n).is_closed).collect()
        };
        for connection in closed {
            // What the gateway sent before arrives, and then the end.
            let session = &mut self.sessions[connection];
            session.is_closing = true;
            let at_ns = session.to_client_ns.max(self.now_ns) + 10 * US;
            self.queue.push(at_ns, Action::Broken { connection });
        }
    }
}
