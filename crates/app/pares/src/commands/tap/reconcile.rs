//! `pares tap reconcile`: messages held against the record.
//!
//! A gateway releases its journalled requests once they are answered, so its own log has the newest requests only; the recorders have all. A request in
//! is looked for in both. A report out names its place in the record, and must be there. And what the record has of a member must have come in.
//!
//! A tap may lack something, and then nothing is proven of that. So all that it lacks is counted, and said: by what taps and counters say, and by what the
//! record has and no tap.
//!
//! Members write what is compared here. So differences are counted and listed by session: nobody's hide another's.

use std::collections::{BTreeMap, BTreeSet};

use pares_node::Layout;
use pares_port::TapDoor;
use pares_tap::{TapeEnd, TapedConnection, TapedMeaning, TapedPiece, TapedRole, TapedTalk, is_ouch_change};
use pares_types::{ClientOrderId, GatewayId, MemberId, Position, ShardId, Timestamp};

use super::recorded::{Checked, Cover, Covered, ReadRecord, Who};
use super::select::{Select, Span, name, who};
use super::taped::{Follow, Taped, Taps};
use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text::{self, grouped};
use crate::utc;

/// Differences of a session that are listed at most.
const LISTED_MAX: usize = 20;

/// Bytes that nothing is proven of.
#[derive(Default)]
struct Lacking {
    /// Entries and bytes that gateways say they lost.
    lost: (u64, u64),
    /// Of logs that cannot be read to their ends: how many, and the bytes behind what can be read.
    unread: (u64, u64),
    /// Requests that the record has, of when taps lost something, and no tap has.
    requests: u64,
    /// Between entries of a connection.
    gaps: u64,
    /// Before the first entry that is kept of a connection.
    before: u64,
    /// Of members, and no message; of others.
    noise: u64,
    strange: u64,
    /// Blanked in a message that proves nothing.
    blanked: u64,
    /// Of a message that is not whole yet.
    open: u64,
}

/// What was found.
#[derive(Default)]
struct Findings {
    recorded: ReadRecord,
    gateway: GatewayId,
    span: Span,
    requests: u64,
    reports: u64,
    /// Refused at once.
    refused: u64,
    /// Not taken by their sessions.
    ignored: u64,
    /// Behind a gap in the numbers of their session that was not filled.
    ahead: u64,
    /// Neither recorded nor refused, behind missing bytes of their connections: perhaps not taken.
    unsure: u64,
    /// In no tap, and taken in while their gateway's tap was not there.
    outside: u64,
    dropped: u64,
    /// Sessions that came by OUCH.
    by_ouch: BTreeSet<Who>,
    differences: Differences,
    lacking: Lacking,
}

/// Differences of each session: the first of them, and how many there are.
#[derive(Default)]
struct Differences(BTreeMap<String, (Vec<String>, u64)>);

impl Differences {
    fn add(&mut self, of: String, line: impl FnOnce() -> String) {
        let (listed, count) = self.0.entry(of).or_default();
        *count += 1;
        if listed.len() < LISTED_MAX {
            listed.push(line());
        }
    }

    fn count(&self) -> u64 {
        self.0.values().map(|(_, count)| count).sum()
    }

    fn tell(&self) {
        for (of, (listed, count)) in &self.0 {
            listed.iter().for_each(|line| text::print(&format!("{line}\n")));
            let more = count - listed.len() as u64;
            if more > 0 {
                pares_text::tell!("{} more differences of {of}", grouped(more));
            }
        }
    }
}

/// A request that is not recorded and not refused yet.
struct Waiting {
    /// Bytes that came in on its connection before.
    at: u64,
    /// Its session took it.
    is_taken: bool,
}

/// A connection, and its requests that wait.
struct Asking {
    talk: TapedTalk,
    waiting: BTreeMap<ClientOrderId, Waiting>,
}

impl Findings {
    fn differ(&mut self, connection: &TapedConnection, way: &str, at: u64, what: &str) {
        let (gateway, who) = (self.gateway, who(connection));
        let of = if connection.who.is_some() { format!("session {who}") } else { "strangers".into() };
        self.differences
            .add(of, || format!("gateway-{gateway} {} {who} {way} {at}: {what}", name(connection)));
    }

    fn take(
        &mut self,
        waiting: &mut BTreeMap<ClientOrderId, Waiting>,
        connection: &TapedConnection,
        one: &TapedMeaning,
    ) {
        if !self.span.has(one.message.wall_ns) {
            return;
        }
        let (member, name) = (to(connection).0, one.name.map(ClientOrderId));
        self.lacking.blanked += one.blanked_bytes(connection.door);
        if !one.message.is_whole {
            self.no_message(connection, one.message.bytes.len() as u64);
        }
        match (one.role, name) {
            (TapedRole::Request | TapedRole::Unsure, name) => {
                self.requests += 1;
                let Some(name) = name else { return };
                let is_taken = one.role == TapedRole::Request;
                match self.recorded.request(member, name) {
                    Some(known) => known.is_asked = true,
                    None => _ = waiting.insert(name, Waiting { at: one.message.at, is_taken }),
                }
            }
            (TapedRole::Ignored, _) => self.ignored += 1,
            (TapedRole::Waiting, _) => self.ahead += 1,
            (TapedRole::Refusal, Some(name)) => self.refused += u64::from(waiting.remove(&name).is_some()),
            (TapedRole::Answer(shard, position), of) => self.report(connection, one, (shard, position), of),
            (TapedRole::Told(shard, position), _) => self.report(connection, one, (shard, position), None),
            _ => {}
        }
    }

    fn no_message(&mut self, connection: &TapedConnection, bytes: u64) {
        match connection.who {
            Some(_) => self.lacking.noise += bytes,
            None => self.lacking.strange += bytes,
        }
    }

    /// A report of what is recorded there, and perhaps of the request of that name.
    fn report(
        &mut self,
        connection: &TapedConnection,
        one: &TapedMeaning,
        (shard, position): (ShardId, Position),
        of: Option<ClientOrderId>,
    ) {
        self.reports += 1;
        match self.recorded.check(shard, position, to(connection), of) {
            Checked::Right => {}
            Checked::Dropped => self.dropped += 1,
            Checked::Differs(what) => {
                self.differ(connection, "out", one.message.at, &format!("{what}: {}", one.text));
            }
        }
    }

    /// Requests of members that are recorded, and in no tap; those apart that came in while there was none, or it lost something.
    fn find_unasked(&mut self) {
        let Self { recorded, by_ouch, differences, lacking, outside, .. } = self;
        for one in recorded.unasked() {
            let (name, member) = (one.name, one.member);
            // Their gateways name them, and no member does.
            let mut sessions = by_ouch.range((member, 0)..=(member, u16::MAX));
            if sessions.any(|(_, session)| is_ouch_change(*session, name)) {
                continue;
            }
            match one.covered {
                Covered::Not => *outside += 1,
                Covered::Perhaps => lacking.requests += 1,
                Covered::Surely => differences.add(format!("member {member}"), || {
                    format!("request {name} of member {member} is recorded, but in no tap")
                }),
            }
        }
    }
}

/// The session of a connection; of a stranger's none that is a member's.
fn to(connection: &TapedConnection) -> Who {
    connection.who.map_or((MemberId(0), 0), |(member, session)| (MemberId(member), session))
}

impl Follow for Findings {
    type State = Asking;

    fn begin(&mut self, connection: &TapedConnection) -> Asking {
        let before: u64 = connection.before.iter().sum();
        self.lacking.before += before;
        self.lacking.gaps += connection.missing.iter().sum::<u64>() - before;
        if connection.door == TapDoor::Ouch {
            self.by_ouch.insert(to(connection));
        }
        Asking { talk: TapedTalk::new(connection.door), waiting: BTreeMap::new() }
    }

    fn pass(
        &mut self,
        asking: &mut Asking,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult {
        let Asking { talk, waiting } = asking;
        talk.take(piece, |one| self.take(waiting, connection, &one));
        Ok(())
    }

    fn end(&mut self, asking: Asking, connection: &TapedConnection) -> CommandResult {
        let Asking { mut talk, mut waiting } = asking;
        talk.finish(|one| self.take(&mut waiting, connection, &one));
        for (name, Waiting { at, is_taken }) in waiting {
            let what = || format!("request {name} is neither recorded nor refused");
            match is_taken {
                true => self.differ(connection, "in", at, &what()),
                false => self.unsure += 1,
            }
        }
        match connection.end {
            TapeEnd::Open => self.lacking.open += talk.rest(),
            _ => self.no_message(connection, talk.rest()),
        }
        Ok(())
    }
}

/// Holds them against each other.
///
/// # Errors
/// If there is no tap, something cannot be read, there are differences, or taps lack something that a member sent or received.
pub fn run(layout: &Layout, select: &Select) -> CommandResult {
    let config = configuration(layout)?;
    // The taps first, up to their ends of now: by the time the record is read, it has their requests, or they were refused.
    let taps = select.read(layout)?;
    let cover = |taped: &Taped| Cover { lives: taped.lives.clone(), holes: taped.holes.clone() };
    let covers = taps.taped.iter().map(|taped| (taped.gateway, cover(taped))).collect();
    let mut findings = Findings {
        recorded: ReadRecord::read(&config, layout, covers)?,
        span: select.span(),
        ..Findings::default()
    };
    for taped in &taps.taped {
        findings.follow(taped)?;
    }
    if select.is_all() {
        findings.find_unasked();
    }
    findings.tell();
    findings.judge(&taps)
}

impl Findings {
    fn follow(&mut self, taped: &Taped) -> CommandResult {
        self.gateway = taped.gateway;
        let lost = &mut self.lacking.lost;
        *lost = (lost.0.saturating_add(taped.lost.0), lost.1.saturating_add(taped.lost.1));
        if let Some(bytes) = taped.unread {
            self.lacking.unread.0 += 1;
            self.lacking.unread.1 += bytes;
        }
        taped.follow(self)
    }

    fn tell(&self) {
        self.differences.tell();
        self.tell_covers();
        for (count, what) in [
            (
                self.outside,
                "recorded requests are in no tap, because their gateways' taps were off when they arrived",
            ),
            (self.ahead, "requests wait behind gaps in their sessions' sequence numbers, and are unanswered"),
            (
                self.unsure,
                "requests are neither recorded nor refused, but their sessions may have ignored them: earlier bytes of the connection are missing or blanked, or the sending time is at its limit",
            ),
        ] {
            if count > 0 {
                pares_text::tell!("{} {what}", grouped(count));
            }
        }
        pares_text::tell!(
            "{} requests in, {} of them refused at once; {} ignored by their sessions; {} reports out, {} of them older than the recorders' logs; {}",
            grouped(self.requests),
            grouped(self.refused),
            grouped(self.ignored),
            grouped(self.reports),
            grouped(self.dropped),
            self.lacking.text()
        );
    }

    fn tell_covers(&self) {
        for (gateway, Cover { lives, .. }) in &self.recorded.covers {
            let (Some((from_ns, _)), Some((_, to_ns))) = (lives.first(), lives.last()) else { continue };
            let [from, to] = [from_ns, to_ns].map(|ns| utc::format(Timestamp(*ns)));
            let times = match lives.len() {
                1 => "without a break".into(),
                lives => format!("in {lives} runs of its gateway"),
            };
            pares_text::tell!("the tap of gateway-{gateway} covers {from} to {to}, {times}");
        }
    }

    fn judge(&self, taps: &Taps) -> CommandResult {
        taps.done()?;
        let count = self.differences.count();
        if count > 0 {
            return Err(CommandError::Failed(format!(
                "{count} differences between taps and record; at most {LISTED_MAX} per session are listed"
            )));
        }
        match self.lacking.is_of_members() {
            true => Err(CommandError::Failed("the taps are incomplete".into())),
            false => Ok(()),
        }
    }
}

impl Lacking {
    /// Whether something is missing that a member may have said or been told since the taps began.
    fn is_of_members(&self) -> bool {
        let counts = [self.lost.0, self.unread.0, self.requests, self.gaps, self.noise, self.blanked];
        counts.iter().any(|count| *count > 0)
    }

    fn text(&self) -> String {
        let counts = [
            (self.lost.0, "entries that gateways report as lost"),
            (self.lost.1, "bytes in them"),
            (self.unread.0, "taps that cannot be read to the end"),
            (self.unread.1, "bytes of their logs after that"),
            (
                self.requests,
                "recorded requests in no tap, from times when taps lost entries or are unreadable",
            ),
            (self.gaps, "bytes missing within connections"),
            (self.before, "bytes from before the taps"),
            (self.noise, "bytes from members that form no message"),
            (self.strange, "bytes from unknown clients that form no message"),
            (self.blanked, "blanked bytes in messages other than proofs"),
            (self.open, "bytes of incomplete messages"),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<_> = told.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
        if told.is_empty() { "0 bytes of the taps missing".into() } else { told.join(", ") }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_differences_of_one_session_do_not_hide_those_of_another() {
        let mut differences = Differences::default();
        (0..1_000).for_each(|_| differences.add("session 7/0".into(), || "noise".into()));
        differences.add("session 8/0".into(), || "real".into());
        assert_eq!(differences.0["session 8/0"], (vec!["real".to_owned()], 1));
        assert_eq!((differences.0["session 7/0"].0.len(), differences.count()), (LISTED_MAX, 1_001));
    }
}
