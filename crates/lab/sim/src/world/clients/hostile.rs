//! Clients that send what none should.

use super::super::World;

impl World<'_> {
    /// What no client should send: a second sign-on, another member's name, a kind that does not exist, half a frame; or
    /// connections that never say anything.
    pub(super) fn send_something_hostile(&mut self, connection: usize, client: usize) {
        self.summary.hostile += 1;
        let gateway = self.sessions[connection].gateway;
        match self.random.below(5) {
            0 => {
                let sign_on = self.sign_on(client);
                self.send_to_gateway(connection, &sign_on);
            }
            1 => {
                let other = (client + 1) % self.clients.len();
                let sign_on = self.sign_on(other);
                self.send_to_gateway(connection, &sign_on);
            }
            2 => {
                let rubbish: Vec<u8> =
                    (0..self.random.between(1, 40)).map(|_| self.random.next_u64() as u8).collect();
                let stranger = self.open_connection(client, gateway);
                self.send_to_gateway(stranger, &rubbish);
            }
            3 => {
                let half = self.sign_on(client);
                let stranger = self.open_connection(client, gateway);
                self.send_to_gateway(stranger, &half[..half.len() / 2]);
            }
            _ => {
                for _ in 0..self.random.between(1, 6) {
                    self.open_connection(client, gateway);
                }
            }
        }
    }
}
