//! What a gateway learns from the logs as it starts.

use std::path::PathBuf;

use pares_gateway::{Gateway, Place};
use pares_log::{LogReader, Offset};
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
    /// Whether requests of this gateway were recorded in this life of the windows.
    is_known: bool,
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
    let is_known = recover_committed(&mut rules, &mut committed, (id, life))?;
    Ok(Record { rules, committed, is_known })
}

/// Opens the gateway's log, and reads all committed records, then the requests of that log. A log in which nothing was ever
/// written is not the one from which requests were recorded in this life of the windows.
pub(super) fn open<W: World>(
    world: &W,
    id: GatewayId,
    life: Epoch,
    config: &SystemConfig,
) -> Result<(W::Writer, Gateway, CommittedStream<W>), NodeError> {
    let log = NodeId::Gateway(id);
    let writer = world.write_log(log, super::log_config(config))?;
    let Record { mut rules, committed, is_known } = record(world, id, life, config)?;
    let mut own = world.read_log_from_start(log)?;
    let mut has_begun = own.released() > Offset::START;
    while let Some(entry) = own.next()? {
        has_begun = true;
        let offset = entry.offset.0;
        rules.recover_own(&RequestRecord::read(entry.payload)?, offset);
    }
    match has_begun || !is_known {
        true => Ok((writer, rules, committed)),
        false => Err(NodeError::LogLost { gateway: id, log: PathBuf::from(log.to_string()) }),
    }
}

/// Says whether requests of this gateway were recorded in this life.
fn recover_committed<W: World>(
    rules: &mut Gateway,
    committed: &mut CommittedStream<W>,
    (id, life): (GatewayId, Epoch),
) -> Result<bool, NodeError> {
    let mut known = false;
    loop {
        let read = committed.poll(usize::MAX, |item| {
            match item {
                Committed::Result { recorder, offset, record } => {
                    let (request, outcome) = (record.request()?, record.outcome()?);
                    let (place, events) = (Place { recorder, offset: offset.0 }, record.events().len());
                    known |= record.epoch() == life && request.id.gateway() == id;
                    rules.recover_committed(record.position(), &request, &outcome, events, place);
                }
                Committed::Shown { record } => rules.recover_uncommitted(&record.request()?),
                Committed::Moved { .. } | Committed::CheckpointStored { .. } => {}
            }
            Ok(())
        })?;
        if read == 0 {
            return Ok(known);
        }
    }
}
