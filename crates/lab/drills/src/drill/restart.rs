//! A start of everything after a long record: how long until the exchange answers again, and does it remember what it had said?
//!
//! ```text
//!   N answers under load | kill -9 of all nodes | start ... up ... first new answer | old names asked again, all of them alike?
//!                                               <---------- restart ------------->
//! ```
//! Time that a start needs grows with the record it reads, so the figure is seconds per million records. Files
//! are in the page cache, as after a crash of the processes; after a loss of power the disk's own speed comes on top.

use std::path::Path;
use std::time::{Duration, Instant};

use pares_client::{Client, Update};
use pares_flow::SyntheticFlow;
use pares_load::{LabError, LoadPlan, Rate, ScratchDirectory, ScratchSystem, check_patience};
use pares_node::{NodeId, SystemConfig};
use pares_os::CountersReader;
use pares_text::progress;
use pares_types::{Answer, ClientOrderId, ClientRequest, MemberId, Position, RequestId, Status};
use rustix::process::Signal;
use serde::Serialize;

/// Requests in flight while the record grows, and when old names are asked again.
const IN_FLIGHT: u64 = 2_048;
/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

/// What a start of everything gave.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Start {
    /// Requests answered when everything was killed.
    pub records: u64,
    /// From the start of the supervisor until all nodes have announced themselves, seconds.
    pub up_s: f64,
    /// Until a new request was answered.
    pub restart_s: f64,
    /// The same by a million records.
    pub seconds_per_million: f64,
    /// Old names asked again.
    pub checked: u64,
    /// Of those, never answered or answered otherwise than the first time.
    pub lost: u64,
    /// Shards that recorders halted because venues' states differed.
    pub halted_shards: u64,
}

/// Has so many answers recorded, kills everything, starts it again, and asks `check` of the old names again.
///
/// # Errors
/// If the system does not come up.
pub(super) fn measure(
    config: &SystemConfig,
    within: Option<&Path>,
    records: u64,
    check: u64,
) -> Result<Start, LabError> {
    let scratch = ScratchDirectory::create(within)?;
    let dir = scratch.path().join("system");
    let mut system = ScratchSystem::start(config, Some(dir.clone()))?;
    let mut member = Member::new(&system)?;
    member.ask_new(records)?;
    for role in NodeId::all(system.supervisor.config()) {
        system.supervisor.signal(role, Signal::KILL)?;
    }
    drop(system);
    let begun = Instant::now();
    let system = ScratchSystem::start(config, Some(dir))?;
    let up = begun.elapsed();
    member.client = connect(&system)?;
    member.ask_one()?;
    let restart = begun.elapsed();
    let (checked, lost) = member.ask_again(records, check)?;
    Ok(Start {
        records,
        up_s: up.as_secs_f64(),
        restart_s: restart.as_secs_f64(),
        seconds_per_million: restart.as_secs_f64() * 1e6 / records as f64,
        checked,
        lost,
        halted_shards: halted_shards(&system),
    })
}

fn connect(system: &ScratchSystem) -> Result<Client, LabError> {
    Ok(Client::connect(system.addresses()?[0], MemberId(1))?)
}

fn halted_shards(system: &ScratchSystem) -> u64 {
    let recorders = system.supervisor.config().recorder_ids().map(NodeId::Recorder);
    let counters = recorders.filter_map(|role| {
        CountersReader::open(&system.supervisor.layout().counters(&role.to_string())).ok()
    });
    counters.filter_map(|counters| counters.get("halted_shards")).sum()
}

/// What an answer said that its repeat must say again.
type Said = (RequestId, Position, Status);

fn said(answer: &Answer) -> Said {
    (answer.request, answer.position, answer.status)
}

/// The one who asks, and remembers what was answered.
struct Member {
    client: Client,
    flow: SyntheticFlow,
    requests: Vec<ClientRequest>,
    /// By name, from 1.
    answers: Vec<Option<Said>>,
}

impl Member {
    fn new(system: &ScratchSystem) -> Result<Self, LabError> {
        let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, Rate::Max);
        let (requests, answers) = (Vec::new(), Vec::new());
        Ok(Self { client: connect(system)?, flow: plan.flow(), requests, answers })
    }

    /// Sends new requests until so many are answered; others are in flight then.
    fn ask_new(&mut self, wanted: u64) -> Result<(), LabError> {
        let bar = progress::steps("recording", wanted);
        let mut answered = 0;
        let mut last = Instant::now();
        while answered < wanted {
            for _ in (self.requests.len() as u64 - answered)..IN_FLIGHT {
                let request = self.flow.next_command().to_request();
                self.client.send(&request)?;
                self.requests.push(request);
                self.answers.push(None);
            }
            let answers = &mut self.answers;
            let before = answered;
            turn(&mut self.client, |name, answer| {
                answers[name] = Some(said(answer));
                answered += 1;
            })?;
            if answered > before {
                last = Instant::now();
            }
            check_patience(last, PATIENCE, "nothing was answered")?;
            bar.set_position(answered);
        }
        bar.finish_and_clear();
        Ok(())
    }

    /// Sends one new request and waits for its answer.
    fn ask_one(&mut self) -> Result<(), LabError> {
        let request = ClientRequest::MassCancel {
            client_order_id: ClientOrderId(u64::MAX >> 8),
            instrument: pares_types::InstrumentId(1),
            side: None,
        };
        self.client.submit_and_wait(&request)?;
        Ok(())
    }

    /// Asks names again that were answered before: how many, and how many of them have another answer now.
    fn ask_again(&mut self, first: u64, check: u64) -> Result<(u64, u64), LabError> {
        let every = (first / check.max(1)).max(1) as usize;
        let last = self.answers.len().saturating_sub(check as usize / 2);
        let names = (0..self.answers.len()).filter(|name| name % every == 0 || *name >= last);
        let names: Vec<usize> = names.filter(|&name| self.answers[name].is_some()).collect();
        let bar = progress::steps("asking again", names.len() as u64);
        let (mut sent, mut answered, mut alike) = (0, 0, 0);
        let mut waited = Instant::now();
        while answered < names.len() {
            while sent < names.len() && sent - answered < IN_FLIGHT as usize {
                self.client.send(&self.requests[names[sent]])?;
                sent += 1;
            }
            let answers = &self.answers;
            let before = answered;
            turn(&mut self.client, |name, answer| {
                // What was in flight when everything died is answered now, unasked.
                if let Some(first) = answers.get(name).copied().flatten() {
                    answered += 1;
                    alike += u64::from(first == said(answer));
                }
            })?;
            if answered > before {
                waited = Instant::now();
            } else if waited.elapsed() >= PATIENCE {
                break;
            }
            bar.set_position(answered as u64);
        }
        bar.finish_and_clear();
        Ok((names.len() as u64, names.len() as u64 - alike))
    }
}

/// Sends and reads what there is, waiting a little if there is nothing; tells answers with their place among the names.
fn turn(client: &mut Client, mut on_answer: impl FnMut(usize, &Answer)) -> Result<(), LabError> {
    client.flush()?;
    let mut answers = 0;
    client.poll(|update| {
        if let Update::Answer(answer) = update {
            answers += 1;
            on_answer(answer.client_order_id.0 as usize - 1, &answer);
        }
    })?;
    if answers == 0 {
        client.wait(Duration::from_millis(10))?;
    }
    Ok(())
}

impl Start {
    /// What it broke of its promise.
    pub(super) fn broken(&self) -> [(u64, &'static str); 2] {
        [(self.lost, "old names answered otherwise or not at all"), (self.halted_shards, "shards halted")]
    }
}
