//! What was asked under a name, in three bytes.
//!
//! A name stands for one request, for life. Two sessions of a member may ask for different things under it, and the second would take the first one's
//! answer for its own. So an answer bears a digest of what its request says, made of the record: its receiver compares it with that of its own request.

use std::hash::{Hash, Hasher};

use crate::{Amendment, ClientRequest, Command, OrderId, RequestId};

const NO_ORDER: OrderId = OrderId(RequestId::NONE);

/// A digest of what a request asks. A chance of one in 16 million makes two requests look alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct RequestDigest([u8; 3]);

impl RequestDigest {
    /// It is not known what was asked.
    pub const UNKNOWN: Self = Self([0; 3]);

    /// Of all that is said.
    #[must_use]
    pub fn of(said: &impl Hash) -> Self {
        let mut digest = Digest::default();
        said.hash(&mut digest);
        let [.., low, middle, high] = digest.finish().to_le_bytes();
        // All zeros say that nothing is known.
        Self(if [low, middle, high] == [0; 3] { [1, 0, 0] } else { [low, middle, high] })
    }

    /// As a number below 2^24.
    #[must_use]
    pub const fn bits(self) -> u32 {
        let Self([low, middle, high]) = self;
        u32::from_le_bytes([low, middle, high, 0])
    }

    /// Reads what [`RequestDigest::bits`] made; a higher byte is left out.
    #[must_use]
    pub const fn from_bits(bits: u32) -> Self {
        let [low, middle, high, _] = bits.to_le_bytes();
        Self([low, middle, high])
    }

    /// Whether something else was asked, as far as both are known.
    #[must_use]
    pub fn differs(self, other: Self) -> bool {
        self != other && self != Self::UNKNOWN && other != Self::UNKNOWN
    }
}

impl Command {
    /// What is asked, in terms that its client knows too: without the ids that gateways and venues give.
    #[must_use]
    pub fn asked(&self) -> RequestDigest {
        RequestDigest::of(&match *self {
            Self::Amend(terms) => Self::Amend(Amendment { target: NO_ORDER, ..terms }),
            Self::Cancel { .. } => Self::Cancel { target: NO_ORDER },
            Self::Time { .. } => Self::TIME,
            said => said,
        })
    }
}

impl ClientRequest {
    /// What the answer to it says that was asked.
    #[must_use]
    pub fn asked(&self) -> RequestDigest {
        let command = match *self {
            Self::Enter { order, .. } => Command::Enter(order),
            Self::Amend { target, terms, .. } => Command::Amend(terms.of(NO_ORDER, target)),
            Self::Cancel { .. } => Command::Cancel { target: NO_ORDER },
            Self::MassCancel { side, .. } => Command::MassCancel { side },
            Self::Exchange { command, .. } => command,
        };
        command.asked()
    }
}

/// Not proof against collisions that a member looks for: they would confuse nothing but its own requests. Answers are compared by programs of different
/// builds, so what it makes of a command must stay as it is.
#[derive(Default)]
struct Digest(u64);

impl Hasher for Digest {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let turned = self.0.rotate_left(23) ^ u64::from_le_bytes(word);
            // Zeros count, too.
            self.0 = turned.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use crate::{ClientOrderId, InstrumentId, NewOrder, NewTerms, Phase, Price, Quantity, Side};

    use super::*;

    /// Servers and gateways of different builds compare them.
    #[test]
    fn digests_of_requests_stay_what_they_are() {
        let (client_order_id, target, instrument) = (ClientOrderId(5), ClientOrderId(1), InstrumentId(3));
        let order = NewOrder::limit(Side::Buy, Price(2_238_200), Quantity(100));
        let other = NewOrder::limit(Side::Sell, Price(2_238_200), Quantity(100));
        let terms = NewTerms::new(Price(2_238_200), Quantity(50));
        let requests = [
            ClientRequest::Enter { client_order_id, instrument, order },
            ClientRequest::Enter { client_order_id, instrument, order: other },
            ClientRequest::Amend { client_order_id, target, terms },
            ClientRequest::Amend { client_order_id, target: ClientOrderId(2), terms },
            ClientRequest::Cancel { client_order_id, target },
            ClientRequest::MassCancel { client_order_id, instrument, side: None },
            ClientRequest::MassCancel { client_order_id, instrument, side: Some(Side::Buy) },
            ClientRequest::Exchange {
                client_order_id,
                instrument,
                command: Command::SetPhase(Phase::Halted),
            },
        ];
        let bits = requests.map(|request| request.asked().bits());
        let known =
            [1_952_132, 14_498_524, 2_416_656, 7_211_725, 8_557_290, 7_357_471, 15_550_154, 5_095_362];
        assert_eq!(bits, known);
        assert_eq!(bits.map(RequestDigest::from_bits), requests.map(|request| request.asked()));
    }
}
