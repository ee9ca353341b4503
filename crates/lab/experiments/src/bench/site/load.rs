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

/// What a part gave: latencies, microseconds, and how many transactions they are of.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Pass {
    /// Answered while it was measured, per second.
    pub(super) transactions_per_s: f64,
    /// That the latencies are of.
    pub(super) transactions: u64,
    /// At a rate, what was due by the end and could not be begun: as much as can be open was open. No latency says anything of these.
    pub(super) overdue: u64,
    /// From the request, or when it was due, to the answer.
    pub(super) p50_us: f64,
    pub(super) p99_us: f64,
    pub(super) max_us: f64,
}

/// A part that is being measured. Times count from its beginning, the warm-up in it.
struct Part {
    rate: Option<u64>,
    end: Duration,
    took_ns: Histogram<u64>,
    /// Answers that came while it was measured.
    answered: u64,
    /// Requests that were begun of those that were due.
    sent: u64,
}

impl Part {
    fn of(rate: Option<u64>, length: Duration) -> Self {
        let took_ns = Histogram::new(3).expect("three digits");
        Self { rate, end: WARM_UP + length, took_ns, answered: 0, sent: 0 }
    }

    /// An answer to what was begun, or due, at `due`.
    ///
    /// At full speed those count that come while it is measured. At a rate all that was due meanwhile counts, however late its answer is: otherwise the slowest are left
    /// out, and of a site that falls behind the latencies look good.
    fn note(&mut self, due: Duration, now: Duration) {
        let is_inside = now > WARM_UP && now <= self.end;
        self.answered += u64::from(is_inside);
        if if self.rate.is_some() { due >= WARM_UP } else { is_inside } {
            let took_ns = now.saturating_sub(due).as_nanos() as u64;
            self.took_ns.record(took_ns).expect("a histogram that grows");
        }
    }

    /// When the next request is due; none without a rate.
    fn next_due(&self) -> Option<Duration> {
        Some(Duration::from_nanos(self.sent * 1_000_000_000 / self.rate?))
    }

    /// How many were due by the end and not begun.
    fn overdue(&self) -> u64 {
        let due = |rate| self.end.as_nanos() * u128::from(rate) / 1_000_000_000 + 1;
        self.rate.map_or(0, |rate| (due(rate) as u64).saturating_sub(self.sent))
    }

    fn pass(&self) -> Result<Pass, LabError> {
        if self.took_ns.is_empty() {
            return Err(LabError::Failed("no transaction was answered while it was measured".into()));
        }
        let us = |quantile| self.took_ns.value_at_quantile(quantile) as f64 / 1e3;
        Ok(Pass {
            transactions_per_s: self.answered as f64 / (self.end - WARM_UP).as_secs_f64(),
            transactions: self.took_ns.len(),
            overdue: self.overdue(),
            p50_us: us(0.5),
            p99_us: us(0.99),
            max_us: us(1.0),
        })
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

    /// Takes answers; when what each is to was begun, or due.
    fn take(&mut self, site: &mut Process<Items>, mut answered: impl FnMut(Instant)) {
        for answer in site.answered().collect::<Vec<_>>() {
            let client = usize::try_from(answer.id.client - 1).expect("few");
            let begun = self.begun[client][(answer.id.sequence % OPEN_MAX) as usize].take();
            self.free.push(client);
            self.not_done += u64::from(answer.answer.code != Code::Done);
            answered(begun.expect("it was open"));
        }
    }

    pub(super) fn run(
        &mut self,
        site: &mut Process<Items>,
        rate: Option<u64>,
        length: Duration,
    ) -> Result<Pass, LabError> {
        let (mut part, began) = (Part::of(rate, length), Instant::now());
        while began.elapsed() < part.end {
            self.begin_what_is_due(site, &mut part, began);
            site.turn(Duration::from_micros(100)).map_err(failed)?;
            self.take(site, |due| part.note(due - began, began.elapsed()));
        }
        if rate.is_some() {
            self.begin_what_is_due(site, &mut part, began);
        }
        self.drain(site, PATIENCE, |due| part.note(due - began, began.elapsed()))?;
        part.pass()
    }

    /// Without a rate as much as can be open, else what is late or due by now.
    fn begin_what_is_due(&mut self, site: &mut Process<Items>, part: &mut Part, began: Instant) {
        let by = began.elapsed().min(part.end);
        while let Some(due) = part.next_due() {
            if due > by || !self.begin(site, began + due) {
                return;
            }
            part.sent += 1;
        }
        while self.begin(site, Instant::now()) {}
    }

    /// Requests that have no answer.
    fn open(&self) -> u64 {
        self.in_flight - self.free.len() as u64
    }

    /// Until nothing is open; `answered` hears when what an answer is to was begun, or due.
    pub(super) fn drain(
        &mut self,
        site: &mut Process<Items>,
        patience: Duration,
        mut answered: impl FnMut(Instant),
    ) -> LabResult {
        let began = Instant::now();
        while self.open() > 0 {
            if began.elapsed() >= patience {
                let open = self.open();
                return Err(LabError::Failed(format!(
                    "{open} transactions had no answer after {patience:?}"
                )));
            }
            site.turn(Duration::from_millis(1)).map_err(failed)?;
            self.take(site, &mut answered);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn a_part_without_an_answer_is_no_measurement() {
        let mut part = Part::of(None, 2 * SECOND);
        part.note(Duration::ZERO, MS); // while it warms up
        assert!(part.pass().is_err());
        part.note(WARM_UP, WARM_UP + 2 * MS);
        part.note(WARM_UP, part.end + MS);
        let pass = part.pass().unwrap();
        assert_eq!((pass.transactions_per_s, pass.transactions, pass.overdue), (0.5, 1, 0));
    }

    #[test]
    fn at_a_rate_the_slowest_count_and_what_was_never_begun_is_told() {
        let mut part = Part::of(Some(100), 2 * SECOND);
        assert_eq!(part.next_due(), Some(Duration::ZERO));
        part.sent = 200;
        assert_eq!(part.next_due(), Some(2 * SECOND));
        for number in 0..200 {
            // From the middle on nothing is answered until all is over.
            let due = number * 10 * MS;
            let now = if number < 150 { due + MS } else { part.end + SECOND };
            part.note(due, now);
        }
        let pass = part.pass().unwrap();
        assert_eq!(pass.transactions, 100, "all that was due after the warm-up");
        assert_eq!(pass.transactions_per_s, 25.0, "of which half was answered in time");
        assert!(pass.p99_us > 2e6 && pass.p50_us < 2e3, "{pass:?}");
        assert_eq!(pass.overdue, 101, "at 2.00 s, 2.01 s and so on to the end");
    }
}
