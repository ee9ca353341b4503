//! A front's way to the sites: requests without end under way, each executed once whatever happens to sites and connections.
//!
//! The blocking client has one request under way. Here all of a front's go over one connection, to the site that certifies, since the order in which they
//! arrive there is the order in which they are executed; the others are connected too, and say how they are. A request that may be lost is asked for again under its name. One that is only slow is not: a connection that lives
//! loses nothing, and to ask again what a site has not come to yet is more work for a site that has too much.
//!
//! ```text
//!   submit --> sent to the site that certifies --answer--> done
//!                 \--its connection ends, another site certifies, it says "not known yet"--> sent again, under its name
//! ```
//! When the site that certifies is gone, sites elect another within a fraction of a second. Requests sent to one that is left meanwhile would lose their order: so they wait until a site says that
//! it certifies, and are sent there in their order. All are asked often then. Which site certifies is not decided by the front's own clock, which may be the slow one: the others decide whether one is gone, and the
//! one that they elected says so, in a later reign. Of a site that says nothing for a second only the connection is ended: its requests go to the one that certifies then, which may be the same over another connection.
//!
//! An answer names the sequence and not the client. So on the wire a sequence is a count of this link's, with the last six bits of the
//! client's own behind it: unique here, ascending for each client, and in the same one of the 64 places in which sites remember answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use mio::Registry;
use pares_link::Door;
use pares_site::protocol::{Ask, Code, Horizon, OPEN_MAX, Reply};
use pares_site::{Access, SiteReport};
use pares_wice::TransactionId;

use crate::error::{BrokerageError, BrokerageResult, failed};
use crate::link::{Conn, Hearing, Retry, SocketOwner};

/// Longest frame of a site, bytes.
const FRAME_MAX: usize = 1 << 20;
/// Between two questions how a site is.
const ASK_EVERY: Duration = Duration::from_millis(50);
/// The same while it is to be found out who certifies, of a site that has answered the last one.
const ASK_OFTEN: Duration = Duration::from_millis(5);
/// A site that certifies and has not answered for so long may be gone: the others are asked.
const DOUBT_AFTER: Duration = Duration::from_millis(60);
/// The connection to a site that says nothing for so long is given up.
const SILENCE_MAX: Duration = Duration::from_secs(1);
/// When no site has certified for so long, requests go to one that participates: a site that this front does not reach may certify.
const UNLED_MAX: Duration = Duration::from_secs(1);
/// A request that was not taken, or of which a site knows nothing yet, is asked for again after so long, then after twice that, and so on.
pub(crate) const PAUSE: Duration = Duration::from_millis(5);
/// Up to this.
pub(crate) const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Answers of one site that are read in one turn, bytes.
const READ_MAX: usize = 1 << 20;
/// Tags of questions how a site is; sequences are below.
const FIRST_TAG: u64 = 1 << 63;

/// What a request came to at the sites.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SiteAnswer {
    /// Which.
    pub id: TransactionId,
    /// The reply of the accounts, or why they do not take it, for good.
    pub reply: Result<Vec<u8>, String>,
}

/// Who certifies in a later one is the one that counts: era, and term of its cluster's log.
type CertifierTerm = ((u32, u32, u8), u64);

/// As a site said last.
#[derive(Clone, Copy)]
struct Standing {
    takes_part: bool,
    /// If it certifies.
    reign: Option<CertifierTerm>,
}

struct Place {
    door: Door,
    conn: Option<Conn>,
    retry: Retry,
    hearing: Hearing,
    standing: Option<Standing>,
}

impl Place {
    /// Its reign, if it can be asked.
    fn reign(&self) -> Option<CertifierTerm> {
        self.usable()?.reign
    }

    fn usable(&self) -> Option<Standing> {
        self.standing.filter(|standing| self.conn.is_some() && standing.takes_part)
    }
}

struct Open {
    id: TransactionId,
    request: Vec<u8>,
    /// Where it was sent, if it waits for an answer there.
    at: Option<usize>,
    /// When it is to be sent, if it waits for that.
    due: Instant,
    /// From the next no to its being sent again.
    pause: Duration,
}

/// See the [module](self).
pub struct SiteLink {
    registry: Registry,
    owner: SocketOwner,
    places: Vec<Place>,
    /// By the sequence on the wire, which is the order in which they came.
    open: BTreeMap<u64, Open>,
    count: u64,
    tag: u64,
    horizon: Horizon,
    answers: Vec<SiteAnswer>,
    looked: Instant,
    /// Requests wait that came before any other: they are sent first.
    is_due: bool,
    /// Since when no site is known to certify.
    unled: Option<Instant>,
}

impl SiteLink {
    /// To all sites of a system.
    ///
    /// # Errors
    /// If there is no such system, or the operating system refuses.
    pub fn new(access: &Access, registry: &Registry, owner: SocketOwner) -> BrokerageResult<Self> {
        let sites = pares_operator::sites::all(&access.config);
        let doors: Result<Vec<Door>, _> =
            sites.iter().map(|site| access.door(*site).map_err(failed)).collect();
        Self::to(doors?, registry, owner)
    }

    fn to(doors: Vec<Door>, registry: &Registry, owner: SocketOwner) -> BrokerageResult<Self> {
        let now = Instant::now();
        let place = |door| Place {
            door,
            conn: None,
            retry: Retry::default(),
            hearing: Hearing::begin(),
            standing: None,
        };
        let registry = registry.try_clone().map_err(BrokerageError::io("watching sockets"))?;
        Ok(Self {
            registry,
            owner,
            places: doors.into_iter().map(place).collect(),
            open: BTreeMap::new(),
            count: 0,
            tag: FIRST_TAG,
            horizon: Horizon::default(),
            answers: Vec::new(),
            looked: now,
            is_due: false,
            unled: Some(now),
        })
    }

    /// Something has happened to a connection.
    pub fn wake(&mut self, site: u64) {
        let place = usize::try_from(site).ok().and_then(|site| self.places.get_mut(site));
        if let Some(conn) = place.and_then(|place| place.conn.as_mut()) {
            conn.wake();
        }
    }

    /// How far this front has seen: who reads on its account is shown nothing older.
    pub fn horizon(&self) -> Horizon {
        self.horizon
    }

    /// Has a request executed.
    pub fn submit(&mut self, id: TransactionId, request: Vec<u8>) {
        self.count += 1;
        let sequence = self.count * OPEN_MAX + id.sequence % OPEN_MAX;
        self.open.insert(sequence, Open { id, request, at: None, due: Instant::now(), pause: PAUSE });
        if !self.is_due {
            self.send(sequence);
        }
    }

    /// Sends, reads, dials and repeats; what was answered.
    pub fn turn(&mut self) -> Vec<SiteAnswer> {
        for at in 0..self.places.len() {
            self.dial(at);
            if self.go_on(at).is_none() {
                self.lose(at);
            }
        }
        self.look_who_certifies();
        self.repeat();
        std::mem::take(&mut self.answers)
    }

    /// Hands the sockets what is to go.
    pub fn flush(&mut self) {
        for at in 0..self.places.len() {
            if self.places[at].conn.as_mut().is_some_and(|conn| conn.flush().is_err()) {
                self.lose(at);
            }
        }
    }

    /// The site to which requests go.
    fn best(&self) -> Option<usize> {
        // The first of equals: the order is that of `sites.toml`.
        let all = 0..self.places.len();
        let certifies = all.clone().rev().filter(|at| self.places[*at].reign().is_some());
        certifies.max_by_key(|at| self.places[*at].reign()).or_else(|| {
            let has_waited = self.unled.is_some_and(|since| since.elapsed() >= UNLED_MAX);
            all.clone().find(|at| has_waited && self.places[*at].usable().is_some())
        })
    }

    fn send(&mut self, sequence: u64) {
        let Some(at) = self.best() else { return };
        let (Some(open), Some(conn)) = (self.open.get_mut(&sequence), &mut self.places[at].conn) else {
            return;
        };
        let id = TransactionId { sequence, ..open.id };
        conn.push_frame(&Ask::Execute(id, self.horizon, open.request.clone()).to_bytes());
        open.at = Some(at);
    }

    fn dial(&mut self, at: usize) {
        let place = &mut self.places[at];
        if place.conn.is_some() || !place.retry.is_due() {
            return;
        }
        match Conn::connect(&place.door, &self.registry, self.owner.token(at as u64)) {
            Ok(conn) => {
                (place.conn, place.hearing) = (Some(conn), Hearing::begin());
                self.ask_how(at);
            }
            Err(_) => place.retry.failed(),
        }
    }

    fn ask_how(&mut self, at: usize) {
        self.tag += 1;
        let place = &mut self.places[at];
        place.hearing.asked();
        if let Some(conn) = &mut place.conn {
            conn.push_frame(&Ask::Report(self.tag).to_bytes());
        }
    }

    /// Reads what a site says; nothing if the connection is over.
    fn go_on(&mut self, at: usize) -> Option<()> {
        let Some(mut conn) = self.places[at].conn.take() else { return Some(()) };
        conn.fill(READ_MAX).ok()?;
        while let Some(frame) = conn.frame(FRAME_MAX).ok()? {
            let reply = Reply::from_bytes(&frame).ok()?;
            self.places[at].hearing.heard();
            self.heard(at, reply)?;
        }
        let place = &mut self.places[at];
        if conn.has_ended() || place.hearing.silence() >= SILENCE_MAX {
            return None;
        }
        place.conn = Some(conn);
        Some(())
    }

    /// Nothing if who says it cannot be used.
    fn heard(&mut self, at: usize, reply: Reply) -> Option<()> {
        if reply.to >= FIRST_TAG {
            let report: SiteReport = serde_json::from_slice(&reply.body).ok()?;
            let takes_part = report.apart.is_none() && !report.recalling;
            let reign = report.certifies.then_some((report.era, report.term));
            self.places[at].standing = Some(Standing { takes_part, reign });
            self.places[at].retry.answered();
            return Some(());
        }
        self.horizon = self.horizon.and(reply.horizon);
        match reply.code {
            Code::Done | Code::Refused => {
                // Another site may have answered before.
                let Some(Open { id, .. }) = self.open.remove(&reply.to) else { return Some(()) };
                let why = || String::from_utf8_lossy(&reply.body).into_owned();
                let reply = if reply.code == Code::Done { Ok(reply.body) } else { Err(why()) };
                self.answers.push(SiteAnswer { id, reply });
            }
            // Nothing was done, or nobody knows: it is asked for again.
            _ => {
                if let Some(open) = self.open.get_mut(&reply.to).filter(|open| open.at == Some(at)) {
                    (open.at, open.due) = (None, Instant::now() + open.pause);
                    open.pause = (2 * open.pause).min(PAUSE_MAX);
                }
            }
        }
        Some(())
    }

    /// A site is gone: what waits for it is asked for elsewhere.
    fn lose(&mut self, at: usize) {
        let place = &mut self.places[at];
        (place.conn, place.standing) = (None, None);
        place.retry.failed();
        self.recall(at);
    }

    /// What waits for a site's answer is to be sent again.
    fn recall(&mut self, at: usize) {
        for open in self.open.values_mut().filter(|open| open.at == Some(at)) {
            (open.at, open.due, open.pause) = (None, Instant::now(), PAUSE);
            self.is_due = true;
        }
    }

    /// Asks sites how they are, often as long as it is in doubt which one certifies. One that another has followed certifies no more.
    fn look_who_certifies(&mut self) {
        let latest = self.places.iter().filter_map(Place::reign).max();
        for at in 0..self.places.len() {
            if self.places[at].reign().is_some_and(|reign| Some(reign) < latest) {
                self.places[at].standing = None;
                self.recall(at);
            }
        }
        if latest.is_some() && self.unled.take().is_some() {
            self.is_due = true;
        } else if latest.is_none() {
            self.unled.get_or_insert_with(Instant::now);
        }
        let is_unled_long = self.unled.is_some_and(|since| since.elapsed() >= UNLED_MAX);
        let mut certifying = self.places.iter().filter(|place| place.reign().is_some());
        let is_in_doubt = !is_unled_long && certifying.all(|place| place.hearing.silence() >= DOUBT_AFTER);
        for at in 0..self.places.len() {
            let hearing = &self.places[at].hearing;
            let is_quick = is_in_doubt && hearing.silence() == Duration::ZERO;
            if hearing.since_asked() >= if is_quick { ASK_OFTEN } else { ASK_EVERY } {
                self.ask_how(at);
            }
        }
    }

    /// Sends again what is due, in its order.
    fn repeat(&mut self) {
        if (!self.is_due && self.looked.elapsed() < PAUSE) || self.best().is_none() {
            return;
        }
        (self.looked, self.is_due) = (Instant::now(), false);
        let is_due = |open: &Open| open.at.is_none() && open.due <= self.looked;
        let due = self.open.iter().filter(|(_, open)| is_due(open)).map(|(sequence, _)| *sequence);
        for sequence in due.collect::<Vec<_>>() {
            self.send(sequence);
        }
    }
}

#[cfg(test)]
mod tests;
