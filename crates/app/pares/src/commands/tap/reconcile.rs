//! `pares tap reconcile`: messages held against the record.
//!
//! A gateway releases its journalled requests once they are answered, so its own log has the newest requests only; the recorders have all. A request in
//! is looked for in both. A report out names its place in the record, and must be there; and its request must have come in.
//!
//! A tap may lack something, and then nothing is proven of that. So all that it lacks is counted, and said.

use std::collections::BTreeMap;

use pares_node::Layout;
use pares_tap::{TapDoor, TapeEnd, TapedConnection, TapedMeaning, TapedPiece, TapedRole, TapedTalk};
use pares_types::{ClientOrderId, GatewayId, MemberId, Timestamp};

use super::recorded::{Checked, Covered, Known, ReadRecord, Who};
use super::select::{Follow, Select, Span, Taped, Taps, name, who};
use crate::commands::stat::configuration;
use crate::error::{CommandError, CommandResult};
use crate::text::{self, grouped};
use crate::utc;

/// Differences that are listed at most.
const LISTED_MAX: usize = 100;

/// Bytes that nothing is proven of.
#[derive(Default)]
struct Lacking {
    /// Entries and bytes that gateways say they lost.
    lost: (u64, u64),
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
struct Findings {
    recorded: ReadRecord,
    gateway: GatewayId,
    span: Span,
    requests: u64,
    reports: u64,
    /// Refused at once.
    refused: u64,
    /// Not looked at by their sessions.
    ignored: u64,
    /// Reported on, in no tap, and taken in while their gateway's tap was not there.
    outside: u64,
    dropped: u64,
    /// The first of them, and how many there are.
    listed: Vec<String>,
    differences: u64,
    lacking: Lacking,
}

/// A connection, and those of its requests that are not recorded and not refused yet; why that is a difference.
struct Asking {
    talk: TapedTalk,
    waiting: BTreeMap<ClientOrderId, Option<String>>,
}

impl Findings {
    fn differ(&mut self, line: impl FnOnce() -> String) {
        self.differences += 1;
        if self.listed.len() < LISTED_MAX {
            self.listed.push(line());
        }
    }

    fn line(&self, connection: &TapedConnection, one: &TapedMeaning, what: &str) -> String {
        let (way, at) = (if one.message.is_in { "in" } else { "out" }, one.message.at);
        let (name, who) = (name(connection), who(connection));
        format!("gateway-{} {name} {who} {way} {at}: {what}: {}", self.gateway, one.text)
    }

    fn take(
        &mut self,
        waiting: &mut BTreeMap<ClientOrderId, Option<String>>,
        connection: &TapedConnection,
        one: &TapedMeaning,
    ) {
        let (member, name) = (to(connection).0, one.name.map(ClientOrderId));
        self.lacking.blanked += one.blanked_bytes(connection.door);
        if !one.message.is_whole {
            self.no_message(connection, one.message.bytes.len() as u64);
        }
        match (one.role, name) {
            (TapedRole::Request, Some(name)) => {
                self.requests += 1;
                match self.recorded.request(member, name) {
                    Some(known) => known.is_asked = true,
                    None => _ = waiting.insert(name, self.waiting_line(waiting.len(), connection, one)),
                }
            }
            (TapedRole::Request, None) => self.requests += 1,
            (TapedRole::Ignored, _) => self.ignored += 1,
            (TapedRole::Refusal, Some(name)) => self.refused += u64::from(waiting.remove(&name).is_some()),
            (TapedRole::Answer(shard, position), _) => {
                self.report(connection, one, self.recorded.check(shard, position, to(connection), name));
            }
            (TapedRole::Told(shard, position), _) => {
                self.report(connection, one, self.recorded.check(shard, position, to(connection), None));
            }
            _ => {}
        }
    }

    /// Why it is a difference if it stays so, for the first of a connection.
    fn waiting_line(
        &self,
        before: usize,
        connection: &TapedConnection,
        one: &TapedMeaning,
    ) -> Option<String> {
        (before < LISTED_MAX).then(|| self.line(connection, one, "neither recorded nor refused"))
    }

    fn no_message(&mut self, connection: &TapedConnection, bytes: u64) {
        match connection.who {
            Some(_) => self.lacking.noise += bytes,
            None => self.lacking.strange += bytes,
        }
    }

    fn report(&mut self, connection: &TapedConnection, one: &TapedMeaning, checked: Checked) {
        self.reports += 1;
        match checked {
            Checked::Right(member) => {
                // Of OUCH, cancels have names of the gateway's making, which no member ever sends.
                let has_request = connection.door != TapDoor::Ouch
                    || ["Accepted", "Replaced", "Executed"].contains(&one.kind.as_str());
                let name = one.name.filter(|_| has_request).map(ClientOrderId);
                if let Some(known) = name.and_then(|name| self.recorded.request(member, name)) {
                    known.is_told = true;
                }
            }
            Checked::Dropped => self.dropped += 1,
            Checked::Differs(what) => {
                let line = self.line(connection, one, &what);
                self.differ(|| line);
            }
        }
    }

    /// Requests that members were told of, but that are in no tap; those apart that came in while there was none.
    fn find_unasked(&mut self) {
        let unasked: Vec<Known> = self.recorded.unasked().collect();
        for one in unasked {
            if !one.is_covered {
                self.outside += 1;
                continue;
            }
            self.differ(|| {
                let (name, member) = (one.name, one.member);
                format!("request {name} of member {member} was reported on, and is in no tap")
            });
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
        Asking { talk: TapedTalk::new(connection.door), waiting: BTreeMap::new() }
    }

    fn pass(
        &mut self,
        asking: &mut Asking,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult {
        let (Asking { talk, waiting }, is_in_span) = (asking, self.span.has(piece.wall_ns));
        talk.take(piece, |one| {
            if is_in_span {
                self.take(waiting, connection, &one);
            }
        });
        Ok(())
    }

    fn end(&mut self, asking: Asking, connection: &TapedConnection) -> CommandResult {
        for line in asking.waiting.into_values() {
            self.differ(|| line.unwrap_or_default());
        }
        match connection.end {
            TapeEnd::Open => self.lacking.open += asking.talk.rest(),
            _ => self.no_message(connection, asking.talk.rest()),
        }
        Ok(())
    }
}

/// Holds them against each other.
///
/// # Errors
/// If there is no tap, something cannot be read, there are differences, or taps lack something that a member said or was told.
pub fn run(layout: &Layout, select: &Select) -> CommandResult {
    let config = configuration(layout)?;
    // The taps first, up to their ends of now: by the time the record is read, it has their requests, or they were refused.
    let taps = select.read(layout)?;
    let covered = taps.taped.iter().map(|taped| (taped.gateway, taped.lives.clone())).collect();
    let mut findings = Findings {
        recorded: ReadRecord::read(&config, layout, Covered(covered))?,
        gateway: GatewayId(0),
        span: select.span(),
        requests: 0,
        reports: 0,
        refused: 0,
        ignored: 0,
        outside: 0,
        dropped: 0,
        listed: Vec::new(),
        differences: 0,
        lacking: Lacking::default(),
    };
    for taped in &taps.taped {
        findings.follow(taped)?;
    }
    if select.is_all() && taps.done().is_ok() {
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
        taped.follow(self)
    }

    fn tell(&self) {
        self.listed.iter().for_each(|line| text::print(&format!("{line}\n")));
        for (gateway, lives) in &self.recorded.covered.0 {
            let (Some((from_ns, _)), Some((_, to_ns))) = (lives.first(), lives.last()) else { continue };
            let [from, to] = [from_ns, to_ns].map(|ns| utc::format(Timestamp(*ns)));
            let times = if lives.len() == 1 {
                "without a break".into()
            } else {
                format!("in {} lives of its gateway", lives.len())
            };
            pares_text::tell!("the tap of gateway-{gateway} covers {from} to {to}, {times}");
        }
        if self.outside > 0 {
            pares_text::tell!(
                "{} requests that were reported on are in no tap, and came in when their gateways' taps were not there",
                grouped(self.outside)
            );
        }
        pares_text::tell!(
            "{} requests in, {} of them refused at once; {} ignored by their sessions; {} reports out, {} of them from before what recorders keep; {}",
            grouped(self.requests),
            grouped(self.refused),
            grouped(self.ignored),
            grouped(self.reports),
            grouped(self.dropped),
            self.lacking.text()
        );
    }

    fn judge(&self, taps: &Taps) -> CommandResult {
        taps.done()?;
        if self.differences > 0 {
            let count = self.differences;
            return Err(CommandError::Failed(format!(
                "{count} differences between taps and record; listed are {LISTED_MAX} at most"
            )));
        }
        match self.lacking.is_of_members() {
            true => {
                Err(CommandError::Failed("the taps do not have all that members said and were told".into()))
            }
            false => Ok(()),
        }
    }
}

impl Lacking {
    /// Whether something is missing that a member may have said or been told since the taps began.
    fn is_of_members(&self) -> bool {
        self.lost.0 > 0 || self.gaps > 0 || self.noise > 0 || self.blanked > 0
    }

    fn text(&self) -> String {
        let counts = [
            (self.lost.0, "entries that gateways say they lost"),
            (self.lost.1, "bytes in them"),
            (self.gaps, "bytes missing within connections"),
            (self.before, "bytes from before the taps"),
            (self.noise, "bytes of members that are no message"),
            (self.strange, "bytes of strangers that are no message"),
            (self.blanked, "bytes blanked in messages that prove nothing"),
            (self.open, "bytes of messages that are not whole yet"),
        ];
        let told = counts.iter().filter(|(count, _)| *count > 0);
        let told: Vec<_> = told.map(|(count, what)| format!("{} {what}", grouped(*count))).collect();
        if told.is_empty() { "0 bytes of the taps missing".into() } else { told.join(", ") }
    }
}
