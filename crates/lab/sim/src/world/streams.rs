//! Members' streams: each message is what the record tells its member under that number, and who follows gets every number once, in order.

use std::collections::BTreeMap;

use pares_stream::{StreamNumbers, Told};
use pares_types::{MemberId, Position, Reply, ShardId};
use pares_wire::frame;

use crate::ledger::Ledger;
use crate::{Verdict, must};

use super::{World, shard_id};

const STREAMS: &str = "members' streams";

/// What the record tells members.
#[derive(Default)]
pub(super) struct Streams {
    /// By shard: as far as the record was read, and what members received there.
    shards: BTreeMap<ShardId, (Position, StreamNumbers)>,
    told: BTreeMap<(ShardId, MemberId, u64), Reply>,
}

impl Streams {
    /// Reads a shard's record below `end`.
    fn read(&mut self, ledger: &Ledger, shard: ShardId, end: Position) {
        let (next, numbers) = self.shards.entry(shard).or_default();
        while *next < end {
            let Some(record) = ledger.record(shard, *next) else { return };
            let (request, outcome, events) = (&record.request, &record.outcome, &record.events);
            let told = Told { position: *next, request, outcome, events };
            told.read(|member, reply| {
                let number = numbers.next(member);
                self.told.insert((shard, member, number), reply.numbered(number));
            });
            *next = next.next();
        }
    }
}

/// Shard, position and number of what is of a stream.
pub(super) fn place(reply: &Reply) -> Option<(ShardId, Position, u64)> {
    let place = match reply {
        Reply::Answer(answer) => (answer.shard, answer.position, answer.number),
        Reply::Trade(trade) => (trade.shard, trade.position, trade.number),
        Reply::Cancelled(cancelled) => (cancelled.shard, cancelled.position, cancelled.number),
        Reply::News(news) => (news.shard, news.position, news.number),
        Reply::Busted(bust) => (bust.shard, bust.position, bust.number),
        Reply::Journalled { .. } | Reply::Rejected { .. } => return None,
    };
    (place.2 > 0).then_some(place)
}

impl World<'_> {
    /// Asks for the streams that the session is to follow.
    pub(super) fn write_resumes(&self, connection: usize, bytes: &mut Vec<u8>) {
        let Some((_, stream)) = self.sessions[connection].followed() else { return };
        for (shard, &next) in stream.iter().enumerate() {
            frame::write_resume(bytes, Some(shard_id(shard)), next);
        }
    }

    /// A reply reached a client.
    pub(super) fn check_stream(&mut self, connection: usize, reply: &Reply) -> Verdict {
        let Some((shard, position, number)) = place(reply).filter(|_| !self.ledger.looks_away) else {
            return Ok(());
        };
        let (client, next) = self.sessions[connection].stream(usize::from(shard.0));
        if let Some(next) = next {
            must(number == *next, STREAMS, || {
                format!("client {client} lacks {next} of shard {shard} and is told {reply:?}")
            })?;
            *next += 1;
            let known = &mut self.clients[client].stream[usize::from(shard.0)];
            *known = number.max(*known - 1) + 1;
        }
        self.streams.read(&self.ledger, shard, position.next());
        let told = self.streams.told.get(&(shard, self.clients[client].member, number));
        must(told == Some(reply), STREAMS, || {
            format!("client {client} is told {reply:?}; the record tells {told:?}")
        })
    }

    /// Whether all who follow have been told everything.
    pub(super) fn streams_are_told(&mut self) -> bool {
        if self.ledger.looks_away {
            return true;
        }
        for shard in 0..self.scenario.shards {
            let end = Position(u64::MAX);
            self.streams.read(&self.ledger, shard_id(shard), end);
        }
        let is_told = |(client, stream): (usize, &[u64])| {
            stream.iter().enumerate().all(|(shard, next)| {
                let counted = self.streams.shards.get(&shard_id(shard));
                let last = counted.map_or(0, |(_, numbers)| numbers.last(self.clients[client].member));
                *next > last
            })
        };
        self.sessions.iter().filter_map(super::clients::Session::followed).all(is_told)
    }
}
