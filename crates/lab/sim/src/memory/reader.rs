//! Reading a log in memory.

use pares_log::record::{self, Decoded, End, Invalid};
use pares_log::{LogReader, LogSalvage, Offset, RawStretch, ReadError, Record};

use super::host::Host;
use super::lens::Lens;
use super::log::{HEADER, Log, LogState};

/// A reader of a log in memory. A record is copied out, so that nobody holds the log.
#[derive(Debug)]
pub(crate) struct Reader {
    host: Host,
    /// The node whose log it is.
    of: pares_config::NodeId,
    log: Log,
    identity: u64,
    at: u64,
    payload: Vec<u8>,
    lens: Lens,
}

impl Reader {
    pub(super) fn open(
        host: &Host,
        of: pares_config::NodeId,
        log: Log,
        from: Option<Offset>,
    ) -> Result<Self, ReadError> {
        let (identity, start) = {
            let state = log.lock();
            (state.identity, state.released)
        };
        let lens = host.lens(of);
        let mut reader = Self { host: host.clone(), of, log, identity, at: 0, payload: Vec::new(), lens };
        reader.seek(from.unwrap_or(Offset(start)))?;
        Ok(reader)
    }

    /// How far this process sees the log.
    fn limit(&self, state: &LogState) -> u64 {
        self.host.seen(self.of, state.written)
    }
}

/// Whether the record could not be read, and why.
fn damaged(at: u64, what: Invalid) -> ReadError {
    ReadError::Damaged { offset: Offset(at), what }
}

/// The record at `at`, copied into `payload`, and where the next one is. `None` at a pad: the next is in the next segment.
fn record_at(
    state: &LogState,
    at: u64,
    verify: bool,
    payload: &mut Vec<u8>,
) -> Result<Option<u64>, ReadError> {
    match record::decode(state.rest(at), at, verify) {
        Ok(Decoded::Data(found)) => {
            payload.clear();
            payload.extend_from_slice(found);
            Ok(Some(at + record::size(found.len()) as u64))
        }
        Ok(Decoded::Pad) => Ok(None),
        Ok(Decoded::Nothing) => Err(damaged(at, Invalid::Kind)),
        Err(what) => Err(damaged(at, what)),
    }
}

impl LogReader for Reader {
    fn next_below(&mut self, end: Offset) -> Result<Option<Record<'_>>, ReadError> {
        self.host.passes();
        loop {
            let state = self.log.lock();
            if self.at >= self.limit(&state).min(end.0) {
                return Ok(None);
            }
            if self.at < state.released {
                let first = Offset(state.released);
                return Err(ReadError::Released { offset: Offset(self.at), first });
            }
            if self.at.is_multiple_of(state.segment_bytes) {
                self.at += HEADER;
                continue;
            }
            let at = self.at;
            match record_at(&state, at, !self.lens.believes_damage, &mut self.payload)? {
                Some(next) => self.at = next,
                None => {
                    self.at = state.base(at) + state.segment_bytes;
                    continue;
                }
            }
            drop(state);
            self.lens.look(&mut self.payload);
            return Ok(Some(Record { offset: Offset(at), payload: &self.payload }));
        }
    }

    fn next_stretch(&mut self, end: Offset, bytes_max: usize) -> Result<Option<RawStretch<'_>>, ReadError> {
        self.host.passes();
        let state = self.log.lock();
        let at = self.at + if self.at.is_multiple_of(state.segment_bytes) { HEADER } else { 0 };
        let until = self.limit(&state).min(end.0);
        if at >= until {
            return Ok(None);
        }
        if at < state.released {
            return Err(ReadError::Released { offset: Offset(at), first: Offset(state.released) });
        }
        let limit = (until - at).min(bytes_max as u64) as usize;
        let scan = record::scan(state.rest(at), at, 0, limit);
        let pad =
            matches!(record::decode(state.rest(at + scan.position as u64), at, false), Ok(Decoded::Pad));
        let len = scan.position + if pad && scan.end == End::Sealed { record::HEADER_BYTES } else { 0 };
        if len == 0 {
            return Err(damaged(at, Invalid::Kind));
        }
        self.at = if len > scan.position { state.base(at) + state.segment_bytes } else { at + len as u64 };
        self.payload.clear();
        self.payload.extend_from_slice(&state.rest(at)[..len]);
        drop(state);
        Ok(Some(RawStretch { offset: Offset(at), bytes: &self.payload }))
    }

    fn pass_if(&mut self, end: Offset, is_known: impl FnOnce(&[u8]) -> bool) -> bool {
        let state = self.log.lock();
        let is_inside = self.at >= state.released && !self.at.is_multiple_of(state.segment_bytes);
        if self.at >= self.limit(&state).min(end.0) || !is_inside {
            return false;
        }
        let at = self.at;
        let Ok(Some(next)) = record_at(&state, at, false, &mut self.payload) else { return false };
        drop(state);
        self.lens.look(&mut self.payload);
        let passes = is_known(&self.payload);
        if passes {
            self.host.passes();
            self.at = next;
        }
        passes
    }

    fn read_at(&mut self, offset: Offset) -> Result<Record<'_>, ReadError> {
        let state = self.log.lock();
        if offset.0 < state.released {
            return Err(ReadError::Released { offset, first: Offset(state.released) });
        }
        if offset.0 >= state.written {
            return Err(ReadError::BeyondEnd { offset, written: Offset(state.written) });
        }
        match record_at(&state, offset.0, true, &mut self.payload)? {
            Some(_) => Ok(Record { offset, payload: &self.payload }),
            None => Err(damaged(offset.0, Invalid::Kind)),
        }
    }

    fn seek(&mut self, from: Offset) -> Result<(), ReadError> {
        let state = self.log.lock();
        let header = from.0 % state.segment_bytes < HEADER && from.0 < state.written;
        let at = if header { state.base(from.0) + HEADER } else { from.0 };
        if at < state.released {
            return Err(ReadError::Released { offset: from, first: Offset(state.released) });
        }
        if from.0 != 0 && at > state.written {
            return Err(ReadError::BeyondEnd { offset: from, written: Offset(state.written) });
        }
        drop(state);
        self.at = at;
        Ok(())
    }

    fn skip_damage(&mut self) -> Offset {
        let state = self.log.lock();
        let limit = self.limit(&state);
        let mut at = self.at + 8;
        while at < limit {
            if at % state.segment_bytes < HEADER {
                at = state.base(at) + HEADER;
                continue;
            }
            if matches!(record::decode(state.rest(at), at, true), Ok(Decoded::Data(_) | Decoded::Pad)) {
                break;
            }
            at += 8;
        }
        self.at = at.min(limit);
        Offset(self.at)
    }

    fn is_replaced(&self) -> bool {
        !self.lens.never_looks_again
            && self.host.identity_of(self.of).is_some_and(|found| found != self.identity)
    }

    fn offset(&self) -> Offset {
        Offset(self.at)
    }

    fn written(&self) -> Offset {
        let state = self.log.lock();
        Offset(self.limit(&state))
    }

    fn durable(&self) -> Offset {
        let state = self.log.lock();
        Offset(state.durable.min(self.limit(&state)))
    }

    fn released(&self) -> Offset {
        Offset(self.log.lock().released)
    }

    fn segment_bytes(&self) -> u64 {
        self.log.lock().segment_bytes
    }
}

/// Reads what is whole of a log, wherever it lies.
#[derive(Debug)]
pub(crate) struct Salvage {
    log: Log,
    limit: u64,
    at: u64,
    payload: Vec<u8>,
}

impl Salvage {
    pub(crate) fn below(log: Log, limit: u64) -> Self {
        let at = log.lock().released + HEADER;
        Self { log, limit, at, payload: Vec::new() }
    }
}

/// The place of the first whole record from `at` on and below `limit`, past any damage, copied into `payload`. Behind it `at` is then.
fn next_whole(state: &LogState, at: &mut u64, limit: u64, payload: &mut Vec<u8>) -> Option<u64> {
    let limit = limit.min(state.bytes.len() as u64);
    while *at < limit {
        let found = *at;
        if found % state.segment_bytes < HEADER {
            *at = state.base(found) + HEADER;
            continue;
        }
        match record_at(state, found, true, payload) {
            Ok(Some(next)) => {
                *at = next;
                return Some(found);
            }
            Ok(None) => *at = state.base(found) + state.segment_bytes,
            Err(_) => *at += 8,
        }
    }
    None
}

impl LogSalvage for Salvage {
    fn next(&mut self) -> Option<Record<'_>> {
        let at = next_whole(&self.log.lock(), &mut self.at, self.limit, &mut self.payload)?;
        Some(Record { offset: Offset(at), payload: &self.payload })
    }

    fn read_at(&mut self, offset: Offset) -> Option<Record<'_>> {
        let state = self.log.lock();
        record_at(&state, offset.0, true, &mut self.payload).ok()??;
        Some(Record { offset, payload: &self.payload })
    }
}

/// Gives every whole record of a log from `from` up to `to` to `on`, past any damage; says where to continue.
pub(crate) fn scan(log: &Log, from: u64, to: u64, mut on: impl FnMut(u64, &[u8])) -> u64 {
    let (state, mut next, mut payload) = (log.lock(), from, Vec::new());
    while let Some(at) = next_whole(&state, &mut next, to, &mut payload) {
        on(at, &payload);
    }
    next
}
