//! `pares tap reconcile`: messages held against the record.
//!
//! What a gateway journals it releases once it is answered, so its own log has the newest requests only; the recorders have all. A request in is looked for
//! in both. A report out names its place in the record, and must be there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use pares_log::Reader;
use pares_node::{Layout, SystemConfig};
use pares_tap::{TapedMeaning, TapedRole, meanings};
use pares_types::{ClientOrderId, MemberId, Position, Request, ShardId};
use pares_wire::record::{self, RequestRecord, ResultRecord};

use super::select::{Select, who};
use crate::commands::journal::failed;
use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text::{self, grouped};

/// Differences that are listed at most.
const LISTED_MAX: usize = 100;

/// What the record has.
#[derive(Default)]
struct Recorded {
    names: BTreeSet<(MemberId, ClientOrderId)>,
    /// What is recorded where.
    places: BTreeMap<(ShardId, Position), (MemberId, ClientOrderId)>,
    /// By shard: where the record that is kept begins.
    first: BTreeMap<ShardId, Position>,
}

impl Recorded {
    fn take(&mut self, request: &Request) {
        self.names.insert((request.member, request.client_order_id));
    }

    fn read(config: &SystemConfig, layout: &Layout) -> Result<Self, CommandError> {
        let mut recorded = Self::default();
        for id in config.gateway_ids() {
            each(&layout.gateway_log(id), |payload| {
                if record::schema(payload) == Some(record::REQUEST) {
                    recorded.take(&RequestRecord::read(payload)?);
                }
                Ok(())
            })?;
        }
        for id in config.recorder_ids() {
            each(&layout.recorder_log(id), |payload| {
                if record::schema(payload) == Some(record::RESULT) {
                    let result = ResultRecord::read(payload)?;
                    let request = result.request()?;
                    let place = (result.shard(), result.position());
                    recorded.take(&request);
                    recorded.places.insert(place, (request.member, request.client_order_id));
                    let first = recorded.first.entry(place.0).or_insert(place.1);
                    *first = place.1.min(*first);
                }
                Ok(())
            })?;
        }
        Ok(recorded)
    }

    /// What is wrong with a report of what is recorded there.
    fn check(&self, shard: ShardId, position: Position, of: Option<(MemberId, ClientOrderId)>) -> Checked {
        match self.places.get(&(shard, position)) {
            Some(found) if of.is_some_and(|of| of != *found) => Checked::Differs(format!(
                "the record has request {} of member {} at {shard}:{position}",
                found.1, found.0
            )),
            Some(_) => Checked::Right,
            None if self.first.get(&shard).is_some_and(|first| position < *first) => Checked::Dropped,
            None => Checked::Differs(format!("nothing is recorded at {shard}:{position}")),
        }
    }
}

enum Checked {
    Right,
    /// The record is not kept so far back.
    Dropped,
    Differs(String),
}

/// Reads a log to its end.
fn each(
    log: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), pares_wire::WireError>,
) -> Result<(), CommandError> {
    let mut reader = Reader::at_start(log).map_err(|error| failed(log, &error))?;
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                let read = take(record.payload);
                read.map_err(|error| CommandError::Failed(format!("{}: {error}", log.display())))?;
            }
            Ok(None) => return Ok(()),
            Err(pares_log::ReadError::Released { first, .. }) => {
                reader.seek(first).map_err(|error| failed(log, &error))?;
            }
            Err(error) => return Err(failed(log, &error)),
        }
    }
}

/// What was found.
#[derive(Default)]
struct Findings {
    requests: u64,
    reports: u64,
    /// Refused at once.
    refused: u64,
    dropped: u64,
    differences: Vec<String>,
}

impl Findings {
    fn take(&mut self, place: &str, member: MemberId, meanings: &[TapedMeaning], recorded: &Recorded) {
        let refused: BTreeSet<u64> =
            meanings.iter().filter(|one| one.role == TapedRole::Refusal).filter_map(|one| one.name).collect();
        for one in meanings {
            let name = one.name.map(ClientOrderId);
            let checked = match one.role {
                TapedRole::Request => {
                    self.requests += 1;
                    match name.filter(|name| !recorded.names.contains(&(member, *name))) {
                        None => Checked::Right,
                        Some(name) if refused.contains(&name.0) => {
                            self.refused += 1;
                            Checked::Right
                        }
                        Some(_) => Checked::Differs("neither recorded nor refused".into()),
                    }
                }
                TapedRole::Answer(shard, position) => {
                    self.reports += 1;
                    recorded.check(shard, position, name.map(|name| (member, name)))
                }
                TapedRole::Told(shard, position) => {
                    self.reports += 1;
                    recorded.check(shard, position, None)
                }
                TapedRole::AnswerOnly | TapedRole::Refusal | TapedRole::Other => Checked::Right,
            };
            match checked {
                Checked::Right => {}
                Checked::Dropped => self.dropped += 1,
                Checked::Differs(what) => {
                    let (way, at) = (if one.message.is_in { "in" } else { "out" }, one.message.at);
                    self.differences.push(format!("{place} {way} {at}: {what}: {}", one.text));
                }
            }
        }
    }
}

/// Holds them against each other.
///
/// # Errors
/// If there is no tap, something cannot be read, or there are differences.
pub fn run(layout: &Layout, select: &Select) -> CommandResult {
    let config = configuration(layout)?;
    // The taps first: what they have is in the record, or refused, by the time that is read.
    let taped = select.read(layout, true)?;
    let recorded = Recorded::read(&config, layout)?;
    let mut findings = Findings::default();
    let (mut missing, span) = (0, select.span());
    for taped in &taped {
        for connection in &taped.connections {
            let place = format!("gateway-{} {} {}", taped.gateway, connection.number, who(connection));
            let member = MemberId(connection.who.map_or(0, |(member, _)| member));
            let mut meanings = meanings(connection);
            meanings.retain(|one| span.has(one.message.wall_ns));
            findings.take(&place, member, &meanings, &recorded);
            missing += connection.missing[0] + connection.missing[1];
        }
    }
    tell(&findings, missing)
}

fn tell(findings: &Findings, missing: u64) -> CommandResult {
    findings.differences.iter().take(LISTED_MAX).for_each(|line| text::print(&format!("{line}\n")));
    pares_text::tell!(
        "{} requests in, {} of them refused at once; {} reports out, {} of them from before what recorders keep; {} bytes of the taps missing",
        grouped(findings.requests),
        grouped(findings.refused),
        grouped(findings.reports),
        grouped(findings.dropped),
        grouped(missing)
    );
    match findings.differences.len() {
        0 => Ok(()),
        count => Err(CommandError::Failed(format!(
            "{count} differences between taps and record; listed are {LISTED_MAX} at most"
        ))),
    }
}
