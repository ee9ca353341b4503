//! A venue that is wrong on purpose: it executes other orders than were entered.
//!
//! ```text
//!  PARES_WRONG=600 pares-lab node venue-1      from each gateway's 600th request on it doubles the quantity of every new order
//!  PARES_WRONG=600:3 pares-lab node venue-1    the same, but only of orders that belong to shard 3
//! ```
//! Requests are changed as they are read from the logs of gateways and recorders, and restored in what the venue appends. So
//! what it hands out carries the request as it was: the record of a wrong engine, not of damaged memory. Its books, its
//! answers and its state hashes are wrong from there on, and a venue that replays its records with a right build is right.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use pares_config::NodeId;
use pares_log::Reader;
use pares_types::{Command, NewOrder, Position, Quantity, Request, ShardId};
use pares_wire::record::{self, RequestRecord, ResultHead, ResultRecord, request_bytes, write_request};

/// The variable of the environment that makes a venue wrong: `FROM` or `FROM:SHARD`.
pub const VARIABLE: &str = "PARES_WRONG";

/// What a venue is to do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wrong {
    /// From which request of each gateway on; 1 is the first.
    pub from: u64,
    /// In which shard; in all if `None`.
    pub shard: Option<ShardId>,
}

impl fmt::Display for Wrong {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.shard {
            Some(shard) => write!(f, "{}:{shard}", self.from),
            None => write!(f, "{}", self.from),
        }
    }
}

impl FromStr for Wrong {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            || format!("{VARIABLE}={text} is invalid; expected FROM or FROM:SHARD, such as 600 or 600:3");
        let (from, shard) = text.split_once(':').map_or((text, None), |(from, shard)| (from, Some(shard)));
        let shard = shard.map(|shard| shard.parse().map(ShardId)).transpose().map_err(|_| wrong())?;
        let from = from.parse().ok().filter(|&from| from > 0).ok_or_else(wrong)?;
        Ok(Self { from, shard })
    }
}

/// What the variable says.
///
/// # Errors
/// If it makes no sense, or says it to a node that is no venue.
pub(crate) fn read(
    node: NodeId,
    variable: &impl Fn(&str) -> Option<String>,
) -> Result<Option<Wrong>, String> {
    let wrong = variable(VARIABLE).map(|text| text.parse::<Wrong>()).transpose()?;
    match wrong.filter(|_| !matches!(node, NodeId::Venue(_))) {
        Some(wrong) => Err(format!("{VARIABLE}={wrong} is for venues, and this is {node}")),
        None => Ok(wrong),
    }
}

impl Wrong {
    /// The first position of a shard for which a venue that is wrong so handed out something wrong, by the venue's log.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn first_in(self, log: &Path, shard: ShardId) -> Result<Option<Position>, String> {
        let unreadable = |error: &dyn fmt::Display| format!("{}: {error}", log.display());
        let mut log = Reader::at_start(log).map_err(|error| unreadable(&error))?;
        while let Some(entry) = log.next().map_err(|error| unreadable(&error))? {
            if record::schema(entry.payload) != Some(record::RESULT) {
                continue;
            }
            let result = ResultRecord::read(entry.payload).map_err(|error| unreadable(&error))?;
            let request = result.request().map_err(|error| unreadable(&error))?;
            let is_wrong = request.id.sequence() >= self.from && matches!(request.command, Command::Enter(_));
            if result.shard() == shard && is_wrong {
                return Ok(Some(result.position()));
            }
        }
        Ok(None)
    }

    /// Changes the request in a record that the venue reads. What is no request, or cannot be understood, stays as it is.
    /// Rotating doubles what is not absurdly large, and is taken back by rotating the other way, whatever it was.
    pub(crate) fn change(self, payload: &mut [u8]) {
        self.with_quantity(payload, |quantity| quantity.rotate_left(1));
    }

    /// Takes the change back, in a record that the venue appends.
    pub(crate) fn restore(self, payload: &mut [u8]) {
        self.with_quantity(payload, |quantity| quantity.rotate_right(1));
    }

    fn with_quantity(self, payload: &mut [u8], change: impl FnOnce(u64) -> u64) {
        let (start, request) = match record::schema(payload) {
            Some(record::REQUEST) => (0, RequestRecord::read(payload)),
            Some(record::RESULT) => {
                (size_of::<ResultHead>(), ResultRecord::read(payload).and_then(|result| result.request()))
            }
            _ => return,
        };
        let Ok(request) = request else { return };
        let Command::Enter(order) = request.command else { return };
        if !self.concerns(&request) {
            return;
        }
        let quantity = Quantity(change(order.quantity.0));
        let request = Request { command: Command::Enter(NewOrder { quantity, ..order }), ..request };
        // A quantity takes the same room whatever it is.
        write_request(&mut payload[start..start + request_bytes(&request)], &request);
    }

    fn concerns(self, request: &Request) -> bool {
        request.id.sequence() >= self.from && self.shard.is_none_or(|shard| shard == request.shard)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wrong_is_read_as_it_is_printed() {
        for wrong in [Wrong { from: 600, shard: None }, Wrong { from: 1, shard: Some(ShardId(3)) }] {
            assert_eq!(wrong.to_string().parse(), Ok(wrong));
        }
        for text in ["", "0", "x", "600:", "600:x", ":3"] {
            assert!(text.parse::<Wrong>().unwrap_err().contains("FROM:SHARD"), "{text}");
        }
    }
}
