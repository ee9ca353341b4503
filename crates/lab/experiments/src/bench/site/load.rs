//! The transactions that `pares bench site` has done, and what was noted of them.

use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use pares_load::{LabError, LabResult};
use pares_site::Process;
use pares_site::items::Items;
use pares_site::protocol::{Code, OPEN_MAX};
use pares_wice::TransactionId;
use serde::Serialize;

use super::{PATIENCE, failed};

/// Not counted at the beginning.
const WARM_UP: Duration = Duration::from_secs(1);

/// Latencies of a part, microseconds, and how many transactions it had.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Pass {
    /// Per second.
    pub(super) transactions_per_s: f64,
    /// From the request, or when it was due, to the answer.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
}

impl Pass {
    /// Of the answers that came in so long.
    fn of(took_ns: &Histogram<u64>, part: Duration) -> Result<Self, LabError> {
        if took_ns.is_empty() {
            return Err(LabError::Failed("no transaction was answered while it was measured".into()));
        }
        let us = |quantile| took_ns.value_at_quantile(quantile) as f64 / 1e3;
        let transactions_per_s = took_ns.len() as f64 / part.as_secs_f64();
        Ok(Self { transactions_per_s, p50_us: us(0.5), p99_us: us(0.99), max_us: us(1.0) })
    }
}

/// Transactions, by clients with 64 open ones each.
pub(super) struct Load {
    in_flight: u64,
    /// Next sequence of each client.
    sequences: Vec<u64>,
    /// When each open request was begun, or due: by client and slot.
    begun: Vec<[Option<Instant>; OPEN_MAX as usize]>,
    /// Clients that may begin a request, as often as they may.
    free: Vec<usize>,
    /// Answers that were not *done*.
    pub(super) not_done: u64,
}

impl Load {
    pub(super) fn new(in_flight: u64) -> Self {
        let clients = usize::try_from(in_flight.div_ceil(OPEN_MAX)).expect("few");
        let free = (0..usize::try_from(in_flight).expect("few")).map(|slot| slot % clients).collect();
        let begun = vec![[None; OPEN_MAX as usize]; clients];
        Self { in_flight, sequences: vec![0; clients], begun, free, not_done: 0 }
    }

    pub(super) fn begin(&mut self, site: &mut Process<Items>, due: Instant) -> bool {
        let Some(at) = self.free.iter().rposition(|&client| self.next_slot_is_free(client)) else {
            return false;
        };
        let client = self.free.swap_remove(at);
        let sequence = self.sequences[client];
        self.sequences[client] += 1;
        self.begun[client][(sequence % OPEN_MAX) as usize] = Some(due);
        // A client has 64 accounts, so that its open requests do not meet.
        let account = format!("{client}-{}", sequence % OPEN_MAX);
        let request =
            format!("trade cash/{account} holding/{account} rate/{} 100 {client}-{sequence}", sequence % 7);
        site.submit(TransactionId { client: client as u64 + 1, sequence }, request.into_bytes());
        true
    }

    /// How many were begun.
    pub(super) fn begun_of_all(&self) -> u64 {
        self.sequences.iter().sum()
    }

    fn next_slot_is_free(&self, client: usize) -> bool {
        self.begun[client][(self.sequences[client] % OPEN_MAX) as usize].is_none()
    }

    /// Takes answers; how long each took.
    fn take(&mut self, site: &mut Process<Items>, mut took: impl FnMut(Duration)) {
        for answered in site.answered().collect::<Vec<_>>() {
            let client = usize::try_from(answered.id.client - 1).expect("few");
            let begun = self.begun[client][(answered.id.sequence % OPEN_MAX) as usize].take();
            self.free.push(client);
            self.not_done += u64::from(answered.answer.code != Code::Done);
            took(begun.expect("it was open").elapsed());
        }
    }

    pub(super) fn run(
        &mut self,
        site: &mut Process<Items>,
        rate: Option<u64>,
        part: Duration,
    ) -> Result<Pass, LabError> {
        let mut histogram = Histogram::<u64>::new(3).expect("three digits");
        let began = Instant::now();
        let mut sent = 0u64;
        while began.elapsed() < WARM_UP + part {
            self.begin_what_is_due(site, rate, began, &mut sent);
            site.turn(Duration::from_micros(100)).map_err(failed)?;
            let counts = began.elapsed() > WARM_UP;
            self.take(site, |took| {
                if counts {
                    histogram.record(took.as_nanos() as u64).expect("a histogram that grows");
                }
            });
        }
        self.drain(site, PATIENCE)?;
        Pass::of(&histogram, part)
    }

    /// Without a rate as much as can be open, else what is late or due by now; `sent` counts that.
    fn begin_what_is_due(
        &mut self,
        site: &mut Process<Items>,
        rate: Option<u64>,
        began: Instant,
        sent: &mut u64,
    ) {
        let Some(rate) = rate else {
            while self.begin(site, Instant::now()) {}
            return;
        };
        let due = |count: u64| Duration::from_nanos(count * 1_000_000_000 / rate);
        let elapsed = began.elapsed();
        while due(*sent) <= elapsed && self.begin(site, began + due(*sent)) {
            *sent += 1;
        }
    }

    /// Requests that have no answer.
    fn open(&self) -> u64 {
        self.in_flight - self.free.len() as u64
    }

    /// Until nothing is open.
    pub(super) fn drain(&mut self, site: &mut Process<Items>, patience: Duration) -> LabResult {
        let began = Instant::now();
        while self.open() > 0 {
            if began.elapsed() >= patience {
                let open = self.open();
                return Err(LabError::Failed(format!(
                    "{open} transactions had no answer after {patience:?}"
                )));
            }
            site.turn(Duration::from_millis(1)).map_err(failed)?;
            self.take(site, |_| {});
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_without_an_answer_is_no_measurement() {
        let mut histogram = Histogram::new(3).unwrap();
        assert!(Pass::of(&histogram, Duration::from_secs(1)).is_err());
        histogram.record(2_000).unwrap();
        assert!(
            Pass::of(&histogram, Duration::from_secs(2)).is_ok_and(|pass| pass.transactions_per_s == 0.5)
        );
    }
}
