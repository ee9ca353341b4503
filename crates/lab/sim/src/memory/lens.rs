//! Logs that a process reads, or writes, otherwise than they are.

use pares_config::NodeId;
use pares_types::{Event, RecorderId, Request, VenueId};
use pares_wire::record::{
    self, RequestRecord, ResultPlace, ResultRecord, SessionMark, SessionMarkRecord, request_bytes,
    result_bytes, write_request, write_result,
};

use super::seam::Seam;
use crate::bug::Bug;
use crate::{build, defects};

/// What is wrong with how a process reads a log, or writes its own.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Lens {
    /// A record is believed whatever its checksum.
    pub(super) believes_damage: bool,
    /// Another log in the place of the one read is never noticed.
    pub(super) never_looks_again: bool,
    /// A venue whose build has other rules.
    other_rules: bool,
    /// Some orders are read for a share too many.
    misreads: bool,
    /// Up to which request of a gateway what a session left is cancelled.
    rebounds: Option<u64>,
    /// What is wrong with every result that is read, and with every one that is handed out.
    on_read: Option<Defect>,
    on_write: Option<Defect>,
    /// States of what is ordered are written without sequences.
    forgets_sequences: bool,
    /// What is wrong with every mark of a FIX session.
    on_mark: Option<fn(&mut SessionMark)>,
}

/// A change of a result.
type Defect = fn(&mut Request, &mut Vec<Event>);

impl Lens {
    /// What is read, as this process takes it.
    pub(super) fn look(&self, payload: &mut Vec<u8>) {
        if self.other_rules || self.misreads || self.rebounds.is_some() {
            self.change_request(payload);
        }
        if let Some(defect) = self.on_read {
            rewrite(payload, defect);
        }
        if let Some(defect) = self.on_mark
            && record::schema(payload) == Some(record::SESSION_MARK)
            && let Ok(mut read) = SessionMarkRecord::read(payload)
        {
            defect(&mut read.mark);
            *payload = read.bytes();
        }
    }

    /// What is handed out, as it is written.
    pub(super) fn hand_out(&self, payload: &mut Vec<u8>) {
        if self.other_rules {
            self.change_request(payload);
        }
        if let Some(defect) = self.on_write {
            rewrite(payload, defect);
        }
        if self.forgets_sequences && record::schema(payload) == Some(record::ORDERS_STATE) {
            defects::forget_sequences(payload);
        }
    }

    fn understands(&self, request: &Request) -> Request {
        let read = if self.misreads { defects::misread(request) } else { *request };
        let read = self.rebounds.map_or(read, |to| defects::rebound(&read, to));
        if self.other_rules { build::understands(&read) } else { read }
    }

    fn change_request(&self, payload: &mut Vec<u8>) {
        match record::schema(payload) {
            Some(record::REQUEST) => {
                let Ok(request) = RequestRecord::read(payload) else { return };
                let changed = self.understands(&request);
                *payload = vec![0; request_bytes(&changed)];
                write_request(payload, &changed);
            }
            _ => rewrite(payload, |request, _| *request = self.understands(request)),
        }
    }
}

/// Writes a result again, changed.
fn rewrite(payload: &mut Vec<u8>, change: impl FnOnce(&mut Request, &mut Vec<Event>)) {
    if record::schema(payload) != Some(record::RESULT) {
        return;
    }
    let Ok(result) = ResultRecord::read(payload) else { return };
    let (Ok(mut request), Ok(outcome)) = (result.request(), result.outcome()) else { return };
    let Ok(mut events) = result.events().collect::<Result<Vec<_>, _>>() else { return };
    let place = ResultPlace {
        shard: result.shard(),
        epoch: result.epoch(),
        position: result.position(),
        venue: result.venue(),
        state_hash: result.state_hash().unwrap_or_default(),
    };
    change(&mut request, &mut events);
    let mut changed = vec![0; result_bytes(&request, events.len())];
    write_result(&mut changed, &place, &request, &outcome, &events);
    *payload = changed;
}

impl Seam {
    pub(super) fn lens(&self, reader: NodeId, of: NodeId) -> Lens {
        let venue = matches!(reader, NodeId::Venue(_));
        let first = reader == NodeId::Venue(VenueId(0));
        let follows = matches!((reader, of), (NodeId::Gateway(_), NodeId::Recorder(_)));
        let takes_in = matches!((reader, of), (NodeId::Recorder(RecorderId(1..)), NodeId::Venue(_)));
        Lens {
            believes_damage: self.has(Bug::BelieveDamaged) && reader != of,
            never_looks_again: self.has(Bug::ReadOnInNewLog) && matches!(of, NodeId::Venue(_)),
            other_rules: self.other_builds.contains(&reader),
            forgets_sequences: self.has(Bug::ForgetSequences),
            misreads: first && self.has(Bug::ExecuteWrongly) && matches!(of, NodeId::Gateway(_)),
            rebounds: self.bug.and_then(defects::bound).filter(|_| venue && matches!(of, NodeId::Gateway(_))),
            on_read: match self.bug {
                Some(Bug::LeaveFillsOut) if follows => Some(defects::leave_a_fill_out),
                Some(Bug::OverlookRevocation) if follows => Some(defects::overlook_revocation),
                Some(Bug::CloseDaysAlone) if takes_in => Some(defects::miss_day_end),
                _ => None,
            },
            on_mark: match self.bug {
                // It covers none of the numbers that it was written for.
                Some(Bug::ShortMarks) => {
                    Some(|mark| mark.out_max = mark.out_max.saturating_sub(1_024).max(1))
                }
                // It says of no shard where its peer may have to be told again.
                Some(Bug::BelieveAllRead) => Some(|mark| mark.told.clear()),
                // Its places are in the streams of the session's own member.
                Some(Bug::ForgetCopied) => Some(|mark| mark.copied = None),
                _ => None,
            },
            on_write: match self.bug {
                Some(Bug::WrongPrices) if venue => Some(defects::misprice),
                Some(Bug::ForgetDayOrders) if venue => Some(defects::forget_a_day_order),
                _ => None,
            },
        }
    }
}
