//! What time alone brings about: heartbeats, test requests, the end of a silent peer.
//!
//! Nothing heard for 1.2 intervals: a TestRequest. For 2.4: the peer is gone. The fifth on top is for the way; while the
//! test is open no heartbeat goes out, since the TestRequest was one.

use super::{FixSession, FixSink, Phase};

impl FixSession {
    /// Time has come to `now_ns`.
    pub fn tick(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        match self.phase {
            Phase::Away => {}
            Phase::LoggingOut { until_ns } if now_ns >= until_ns => self.cut(sink),
            Phase::LoggingOut { .. } => {}
            Phase::LoggedOn => {
                self.ask_again(now_ns, sink);
                self.listen(now_ns, sink);
            }
        }
    }

    fn listen(&mut self, now_ns: u64, sink: &mut impl FixSink) {
        if self.heartbeat_ns == 0 {
            return;
        }
        match () {
            () if now_ns >= self.gone_ns() => self.cut(sink),
            () if self.is_test_requested => {}
            () if now_ns >= self.test_ns() => {
                self.is_test_requested = true;
                self.send_test_request(now_ns, sink);
            }
            () if now_ns >= self.last_out_ns + self.heartbeat_ns => self.send_heartbeat(now_ns, None, sink),
            () => {}
        }
    }

    /// When [`Self::tick`] has something to do next.
    #[must_use]
    pub fn next_deadline(&self) -> Option<u64> {
        match self.phase {
            Phase::Away => None,
            Phase::LoggingOut { until_ns } => Some(until_ns),
            Phase::LoggedOn => {
                let gap = self.gap.map(|gap| gap.again_ns);
                let listens = (self.heartbeat_ns > 0).then(|| match self.is_test_requested {
                    true => self.gone_ns(),
                    false => self.test_ns().min(self.last_out_ns + self.heartbeat_ns),
                });
                gap.into_iter().chain(listens).min()
            }
        }
    }

    fn test_ns(&self) -> u64 {
        self.last_in_ns + self.heartbeat_ns / 5 * 6
    }

    fn gone_ns(&self) -> u64 {
        self.last_in_ns + self.heartbeat_ns / 5 * 12
    }
}
