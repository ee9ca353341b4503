//! What a gateway learns from the logs as it starts.

use std::path::PathBuf;

use pares_gateway::{Gateway, Place};
use pares_log::{LogReader, Offset, OpenError};
use pares_types::{Epoch, GatewayId};
use pares_wire::record::RequestRecord;

use crate::committed::{Committed, CommittedStream};
use crate::config::SystemConfig;
use crate::world::World;
use crate::{NodeError, NodeId};

/// What a gateway knows from the recorders' logs alone.
pub(super) struct Record<W: World> {
    pub(super) rules: Gateway,
    committed: CommittedStream<W>,
    /// The number of this gateway's last request that was recorded in this life of the windows; 0 if none was.
    last: u64,
}

/// Reads all committed records.
pub(super) fn record<W: World>(
    world: &W,
    id: GatewayId,
    life: Epoch,
    config: &SystemConfig,
) -> Result<Record<W>, NodeError> {
    let mut rules = super::rules(id, config, world)?;
    let mut committed = CommittedStream::new(world, config, |_| Offset::START)?;
    let last = recover_committed(&mut rules, &mut committed, (id, life))?;
    Ok(Record { rules, committed, last })
}

/// Opens the gateway's log, and reads all committed records, then the requests of that log.
///
/// Only the start of everything makes a gateway's log ([`epoch::begin`](crate::epoch::begin)). Where there is none, or one that
/// ends before what was recorded of it in this life of the windows, another was lost: venues may have read it to any number, and
/// that number must not be given to another request.
pub(super) fn open<W: World>(
    world: &W,
    id: GatewayId,
    life: Epoch,
    config: &SystemConfig,
) -> Result<(W::Writer, Gateway, CommittedStream<W>), NodeError> {
    let log = NodeId::Gateway(id);
    let lost = || NodeError::LogLost { gateway: id, log: PathBuf::from(log.to_string()) };
    let writer = match world.write_log(log, super::log_config(config).existing()) {
        Err(OpenError::Absent { .. }) => return Err(lost()),
        opened => opened?,
    };
    let Record { mut rules, committed, last } = record(world, id, life, config)?;
    let mut own = world.read_log_from_start(log)?;
    // What is released was recorded; which numbers that were nobody can tell.
    let mut end = if own.released() > Offset::START { last } else { 0 };
    while let Some(entry) = own.next()? {
        let (request, offset) = (RequestRecord::read(entry.payload)?, entry.offset.0);
        if request.id.gateway() != id {
            return Err(NodeError::Refused(format!(
                "{log} has requests of gateway-{}: put the log there that is {log}'s own, or take this one away and start the \
                 whole system anew; members use other gateways meanwhile",
                request.id.gateway()
            )));
        }
        end = request.id.sequence();
        rules.recover_own(&request, offset);
    }
    if end < last { Err(lost()) } else { Ok((writer, rules, committed)) }
}

/// Says which was this gateway's last request that was recorded in this life.
fn recover_committed<W: World>(
    rules: &mut Gateway,
    committed: &mut CommittedStream<W>,
    (id, life): (GatewayId, Epoch),
) -> Result<u64, NodeError> {
    let (mut last, mut events) = (0, Vec::new());
    loop {
        let read = committed.poll(usize::MAX, |item| {
            match item {
                Committed::Result { recorder, offset, record } => {
                    let (request, outcome) = (record.request()?, record.outcome()?);
                    let place = Place { recorder, offset: offset.0 };
                    events.clear();
                    for event in record.events() {
                        events.push(event?);
                    }
                    if record.epoch() == life && request.id.gateway() == id {
                        last = last.max(request.id.sequence());
                    }
                    rules.recover_committed(record.position(), &request, &outcome, &events, place);
                }
                Committed::Shown { record } => rules.recover_uncommitted(&record.request()?),
                Committed::Moved { .. } | Committed::CheckpointStored { .. } => {}
            }
            Ok(())
        })?;
        if read == 0 {
            return Ok(last);
        }
    }
}
