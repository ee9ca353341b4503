//! What a source sends next.

use std::collections::BTreeMap;

use crate::{LogName, MirrorFault};

/// Bytes of one log, of all logs, and of files that are on their way.
const LOG_CREDIT: u64 = 4 << 20;
const CREDIT: u64 = 16 << 20;
const FILE_CREDIT: u64 = 1 << 20;

/// Bytes of a stretch, but for what its last record has beyond. One that stays in a processor's cache on its way is sent faster than a longer one.
pub const STRETCH_MAX: usize = 128 << 10;
/// Bytes of a piece of a file.
pub const FILE_PIECE_MAX: usize = 256 << 10;

/// What is on its way, counted since the connection began.
#[derive(Clone, Copy, Debug, Default)]
struct Way {
    sent: u64,
    taken: u64,
}

impl Way {
    fn bytes(self) -> u64 {
        self.sent - self.taken
    }

    fn on_taken(&mut self, bytes: u64) -> Result<(), MirrorFault> {
        if bytes <= self.taken || bytes > self.sent {
            return Err(MirrorFault::OutOfTurn("that it has what it was not sent, or nothing more"));
        }
        self.taken = bytes;
        Ok(())
    }
}

#[derive(Debug)]
struct Sent {
    /// The next stretch begins there.
    next: u64,
    /// The round goes up to there.
    end: u64,
    way: Way,
}

/// The logs that a source sends to one receiver.
#[derive(Debug, Default)]
pub struct Sender {
    logs: BTreeMap<LogName, Sent>,
    files: Way,
}

/// What comes next of the logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// A stretch.
    Stretch {
        /// Of which.
        log: LogName,
        /// It may go up to there.
        end: u64,
    },
    /// Nothing, before the receiver has taken more.
    Credit,
    /// Nothing: the logs are sent up to the end of the round.
    Nothing,
}

impl Sender {
    /// A log is sent from there on.
    pub fn begin(&mut self, log: LogName, from: u64) {
        let fresh = self.logs.insert(log, Sent { next: from, end: from, way: Way::default() });
        assert!(fresh.is_none(), "{log} begins once on a connection");
    }

    /// The round goes up to there of that log. To be said of recorders' first.
    pub fn reach(&mut self, log: LogName, end: u64) {
        let sent = self.logs.get_mut(&log).expect("it has begun");
        sent.end = sent.end.max(end);
    }

    /// What comes next: gateways' logs, then recorders', of each the one with least on its way.
    #[must_use]
    pub fn due(&self) -> Due {
        let open = |(_, sent): &(&LogName, &Sent)| sent.next < sent.end;
        let is_gateway = |log: &LogName| matches!(log, LogName::Gateway(_));
        let waiting = self.logs.iter().filter(open);
        let first = waiting.min_by_key(|(log, sent)| (!is_gateway(log), sent.way.bytes()));
        let Some((&log, sent)) = first else { return Due::Nothing };
        match self.on_their_way() < CREDIT && sent.way.bytes() < LOG_CREDIT {
            true => Due::Stretch { log, end: sent.end },
            false => Due::Credit,
        }
    }

    /// Bytes of logs that were sent and not taken yet.
    #[must_use]
    pub fn on_their_way(&self) -> u64 {
        self.logs.values().map(|sent| sent.way.bytes()).sum()
    }

    /// Whether the receiver has all that was sent, of logs and of files.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.on_their_way() + self.files.bytes() == 0
    }

    /// A stretch of so many bytes was sent, behind which the log continues at `next`; none, if there was nothing.
    pub fn on_sent(&mut self, log: LogName, bytes: u64, next: u64) {
        let sent = self.logs.get_mut(&log).expect("it has begun");
        sent.way.sent += bytes;
        sent.next = next;
    }

    /// Whether another piece of a file may go.
    #[must_use]
    pub fn may_send_file(&self) -> bool {
        self.files.bytes() < FILE_CREDIT
    }

    /// A piece of a file was sent.
    pub fn on_file_sent(&mut self, bytes: u64) {
        self.files.sent += bytes;
    }

    /// The receiver has stored so many bytes of a log.
    ///
    /// # Errors
    /// If they were not sent.
    pub fn on_taken(&mut self, log: LogName, bytes: u64) -> Result<(), MirrorFault> {
        let sent = self
            .logs
            .get_mut(&log)
            .ok_or(MirrorFault::OutOfTurn("that it has a log that it was not sent"))?;
        sent.way.on_taken(bytes)
    }

    /// The same of files.
    ///
    /// # Errors
    /// If they were not sent.
    pub fn on_files_taken(&mut self, bytes: u64) -> Result<(), MirrorFault> {
        self.files.on_taken(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const G: LogName = LogName::Gateway(0);
    const H: LogName = LogName::Gateway(1);
    const R: LogName = LogName::Recorder(0);

    fn sender() -> Sender {
        let mut sender = Sender::default();
        [R, G, H].into_iter().for_each(|log| sender.begin(log, 64));
        sender
    }

    fn due(sender: &Sender) -> Option<LogName> {
        if let Due::Stretch { log, .. } = sender.due() { Some(log) } else { None }
    }

    #[test]
    fn a_recorders_log_waits_for_the_gateways() {
        let mut sender = sender();
        assert_eq!(sender.due(), Due::Nothing);
        [R, G, H].into_iter().for_each(|log| sender.reach(log, 1_000));
        assert_eq!(due(&sender), Some(G));
        sender.on_sent(G, 500, 564);
        assert_eq!(due(&sender), Some(H), "who has less on its way");
        sender.on_sent(H, 936, 1_000);
        sender.on_sent(G, 436, 1_000);
        assert_eq!(sender.due(), Due::Stretch { log: R, end: 1_000 });
        sender.on_sent(R, 936, 1_000);
        assert_eq!(sender.due(), Due::Nothing);
    }

    #[test]
    fn what_is_not_taken_is_not_followed_by_more() {
        let mut sender = sender();
        sender.reach(G, 1 << 40);
        sender.reach(R, 1 << 40);
        let mut sent = 0;
        while let Due::Stretch { log: G, .. } = sender.due() {
            sent += 1 << 20;
            sender.on_sent(G, 1 << 20, sent);
        }
        assert_eq!((sender.due(), sent), (Due::Credit, LOG_CREDIT));
        sender.on_taken(G, 1).unwrap();
        assert_eq!(due(&sender), Some(G));
        assert!(sender.on_taken(G, 1).is_err(), "it had that");
        assert!(sender.on_taken(G, sent + 1).is_err(), "it was sent less");
        assert!(sender.on_taken(LogName::Gateway(7), 0).is_err());
    }
}
