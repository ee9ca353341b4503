//! A gateway's process: `pares_gateway` over logs in memory.

use pares_gateway::{ClientRequest, Config, Gateway, GatewaySink, Place, Reply, SessionId};
use pares_types::{
    ClientOrderId, InstrumentId, MemberId, Position, Reason, RecorderId, Request, ShardId, Timestamp,
};

use crate::bug::Bug;
use crate::committed::{Committed, CommittedStream};
use crate::defects;
use crate::log::Log;
use crate::record::RecorderEntry;

/// Requests taken from clients in one step.
const INBOX_MAX: usize = 16;
/// Between two times told to a shard by one gateway.
const CLOCK_EVERY_NS: u64 = 1_000_000;

/// What comes from a client.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Input {
    SignOn(MemberId),
    Request(ClientRequest),
    Disconnected,
}

/// A gateway's memory: gone when its process dies.
pub(crate) struct GatewayNode {
    pub(crate) gateway: Gateway,
    /// Next offset in each gateway's log; its own is not read.
    pub(crate) peers: Vec<u64>,
    pub(crate) committed: CommittedStream,
    pub(crate) inbox: std::collections::VecDeque<(SessionId, Input)>,
    /// Replies of this step, sent when its journal is published.
    pub(crate) outbox: Vec<(SessionId, Reply)>,
    /// Marks to raise: what this gateway saw committed.
    pub(crate) recorded: Vec<(ShardId, Position)>,
    pub(crate) syncing: bool,
    /// Recorders that came back with an empty log: what this process knows to lie there may lie elsewhere now.
    pub(crate) replaced: Vec<bool>,
    /// Whether it needed something from such a log, and cannot go on.
    pub(crate) lost: bool,
    bug: Option<Bug>,
}

struct Out<'a> {
    log: &'a mut Log<Request>,
    room: bool,
    outbox: &'a mut Vec<(SessionId, Reply)>,
    again: Vec<(SessionId, Place)>,
}

/// What a step finds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Now {
    /// By its own clock.
    pub(crate) now_ns: u64,
    /// By a clock that nobody sets.
    pub(crate) elapsed_ns: u64,
    /// Whether it tells the time.
    pub(crate) ticks: bool,
    /// Whether its log takes more.
    pub(crate) room: bool,
}

impl GatewaySink for Out<'_> {
    fn journal(&mut self, request: &Request) -> Result<u64, Reason> {
        match self.room {
            true => Ok(self.log.append(*request)),
            false => Err(Reason::StorageUnavailable),
        }
    }

    fn reply(&mut self, session: SessionId, reply: Reply) {
        self.outbox.push((session, reply));
    }

    fn answer_again(&mut self, session: SessionId, place: Place, _: ClientOrderId) {
        self.again.push((session, place));
    }
}

fn place(recorder: usize, offset: u64) -> Place {
    Place { recorder: RecorderId(u16::try_from(recorder).expect("at most 8 recorders")), offset }
}

/// What a gateway starts from.
pub(crate) struct Recovery<'a> {
    pub(crate) config: Config,
    pub(crate) instruments: Vec<(InstrumentId, ShardId)>,
    pub(crate) shards: usize,
    pub(crate) quorum: usize,
    pub(crate) gateways: usize,
    pub(crate) own: &'a Log<Request>,
    pub(crate) recorders: &'a [&'a Log<RecorderEntry>],
    pub(crate) bug: Option<Bug>,
}

impl GatewayNode {
    /// Rebuilds the gateway from the logs: the committed stream, then its own.
    pub(crate) fn recover(recovery: &Recovery<'_>) -> Self {
        let Recovery { config, recorders, .. } = *recovery;
        let timed = recovery.instruments.iter().map(|(_, shard)| *shard);
        let mut gateway =
            Gateway::new(config, recovery.instruments.iter().copied()).with_clock(CLOCK_EVERY_NS, timed);
        let readable: Vec<u64> = recorders.iter().map(|log| log.durable()).collect();
        let mut committed =
            CommittedStream::new(recovery.shards, recorders.len(), recovery.quorum, vec![0; recorders.len()]);
        committed.poll(recorders, &readable, |item| match item {
            Committed::Result { recorder, offset, record } => gateway.recover_committed(
                record.position,
                &record.request,
                &record.outcome,
                record.events.len(),
                place(recorder, offset),
            ),
            Committed::Shown { record } if recovery.bug != Some(Bug::ReuseSequence) => {
                gateway.recover_uncommitted(&record.request);
            }
            Committed::Shown { .. } | Committed::Known | Committed::CheckpointStored { .. } => {}
        });
        for (offset, request) in (0..).zip(recovery.own.range(0, recovery.own.end())) {
            gateway.recover_own(request, offset);
        }
        Self {
            gateway,
            peers: vec![0; recovery.gateways],
            committed,
            inbox: std::collections::VecDeque::new(),
            outbox: Vec::new(),
            recorded: Vec::new(),
            syncing: false,
            replaced: vec![false; recorders.len()],
            lost: false,
            bug: recovery.bug,
        }
    }

    /// One duty cycle. Requests lie in `log` afterwards, unpublished; replies in the outbox.
    pub(crate) fn step(
        &mut self,
        Now { now_ns, elapsed_ns, ticks, room }: Now,
        own: usize,
        log: &mut Log<Request>,
        peers: &[(&Log<Request>, u64)],
        recorders: &[&Log<RecorderEntry>],
        readable: &[u64],
    ) {
        let mut out = Out { log, room, outbox: &mut self.outbox, again: Vec::new() };
        let (gateway, recorded) = (&mut self.gateway, &mut self.recorded);
        self.committed.poll(recorders, readable, |item| {
            if let Committed::Result { recorder, offset, record } = item {
                let place = place(recorder, offset);
                let (request, outcome) = (&record.request, &record.outcome);
                gateway.on_committed(record.position, request, outcome, &record.events, place, &mut out);
                recorded.push((record.shard(), record.position.next()));
            }
        });
        gateway.watch(elapsed_ns);
        for (peer, (requests, readable)) in peers.iter().enumerate().filter(|(peer, _)| *peer != own) {
            let from = self.peers[peer];
            self.peers[peer] = (*readable).max(from);
            requests.range(from, self.peers[peer]).iter().for_each(|r| gateway.on_peer_request(r));
        }
        for (session, input) in self.inbox.drain(..self.inbox.len().min(INBOX_MAX)) {
            match input {
                Input::SignOn(member) => gateway.on_sign_on(session, member, true),
                Input::Request(request) => gateway.on_request(Timestamp(now_ns), session, request, &mut out),
                Input::Disconnected => gateway.on_disconnect(session),
            }
        }
        if ticks {
            gateway.on_time(Timestamp(now_ns), &mut out);
        }
        let durable = match self.bug {
            Some(Bug::AcceptBeforeWrite) => out.log.end(),
            _ => out.log.durable(),
        };
        gateway.on_journalled(durable, &mut out);
        for (session, place) in std::mem::take(&mut out.again) {
            self.answer_again(session, place, recorders);
        }
        match self.bug {
            Some(Bug::AnswerTwice) => defects::answer_twice(&mut self.outbox),
            Some(Bug::AnswerBeforeDecision) => defects::answer_when_journalled(&mut self.outbox, log),
            _ => {}
        }
    }

    /// Answers from the record of the first answer; if that may no longer be where it was, this process cannot go on.
    fn answer_again(&mut self, session: SessionId, place: Place, recorders: &[&Log<RecorderEntry>]) {
        let recorder = usize::from(place.recorder.0);
        let log = recorders[recorder];
        let believes = self.bug == Some(Bug::BelieveOldPlaces) && place.offset < log.published();
        if self.replaced[recorder] && !believes || log.is_damaged(place.offset) {
            self.lost = true;
            return;
        }
        let RecorderEntry::Result(record) = log.get(place.offset) else { return self.lost = true };
        let (request, outcome) = (&record.request, &record.outcome);
        let answer = self.gateway.replay_answer(record.position, request, outcome, record.events.len());
        self.outbox.push((session, Reply::Answer(answer)));
    }
}
