//! Entries put together again: which connections there were, and what went over each.

use std::collections::BTreeMap;

use pares_port::{TapClose, TapDoor, TapEntry, TapKind, TapLoss};

/// A request is recorded within this of the read that gave it, or it makes no difference.
pub const SETTLED_NS: u64 = 1_000_000_000;

/// How a connection ended, as far as the tap knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeEnd {
    /// It has not.
    Open,
    /// Its gateway closed it, for this reason; `None` if this program does not know it.
    Closed(Option<TapClose>),
    /// Its gateway's process is gone.
    Gateway,
}

impl TapeEnd {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed(why) => why.map_or("closed", TapClose::word),
            Self::Gateway => "gateway ended",
        }
    }
}

/// Bytes that went one way, at once.
#[derive(Clone, Copy, Debug)]
pub struct TapedPiece<'a> {
    /// When, nanoseconds since 1970, and by the clock that never goes back.
    pub wall_ns: u64,
    /// See above.
    pub mono_ns: u64,
    /// Whether it came in.
    pub is_in: bool,
    /// Bytes that went the same way before.
    pub at: u64,
    /// The bytes.
    pub bytes: &'a [u8],
    /// Some of them are blanked.
    pub is_blanked: bool,
}

impl<'a> TapedPiece<'a> {
    /// The bytes of an entry, if it has any of a connection.
    #[must_use]
    pub fn of(entry: &TapEntry<'a>) -> Option<Self> {
        let head = entry.head;
        matches!(entry.kind, TapKind::In | TapKind::Out).then(|| Self {
            wall_ns: head.wall_ns.get(),
            mono_ns: head.mono_ns.get(),
            is_in: entry.kind == TapKind::In,
            at: head.at.get(),
            bytes: entry.bytes,
            is_blanked: entry.is_blanked(),
        })
    }
}

/// A connection.
#[derive(Clone, Debug)]
pub struct TapedConnection {
    /// Its name: the life of its gateway, and which it was in that.
    pub life: u64,
    /// See above.
    pub number: u32,
    /// At which port it came.
    pub door: TapDoor,
    /// When it was taken in, or first seen if that entry is dropped; nanoseconds since 1970.
    pub opened_ns: u64,
    /// When it ended, or was last seen.
    pub seen_ns: u64,
    /// Both addresses, the peer's first; empty if that entry is dropped or lost.
    pub addresses: String,
    /// Member and session, once it has signed on.
    pub who: Option<(u32, u16)>,
    /// How it ended.
    pub end: TapeEnd,
    /// Bytes that came in and that went out, the lost ones too.
    pub totals: [u64; 2],
    /// Those that the tap lost, or has dropped since.
    pub missing: [u64; 2],
    /// Of these: those before the first that is there, of a connection that began before the tap.
    pub before: [u64; 2],
}

impl TapedConnection {
    fn new(entry: &TapEntry<'_>) -> Self {
        let ns = entry.head.wall_ns.get();
        Self {
            life: entry.head.life.get(),
            number: entry.head.connection.get(),
            door: entry.door,
            opened_ns: ns,
            seen_ns: ns,
            addresses: String::new(),
            who: None,
            end: TapeEnd::Open,
            totals: [0; 2],
            missing: [0; 2],
            before: [0; 2],
        }
    }

    /// Its name, by which it is found again.
    #[must_use]
    pub fn place(&self) -> (u64, u32) {
        (self.life, self.number)
    }

    /// Bytes one way have come to `at`: those between are missing.
    fn reach(&mut self, way: usize, at: u64, more: u64) {
        let gap = at.saturating_sub(self.totals[way]);
        if self.totals[way] == 0 && self.addresses.is_empty() {
            self.before[way] += gap;
        }
        self.missing[way] += gap;
        self.totals[way] = self.totals[way].max(at).saturating_add(more);
    }

    fn take(&mut self, entry: &TapEntry<'_>) {
        let head = entry.head;
        self.seen_ns = head.wall_ns.get();
        if head.member.get() > 0 || head.session.get() > 0 {
            self.who = Some((head.member.get(), head.session.get()));
        }
        match entry.kind {
            TapKind::In | TapKind::Out => {
                let is_in = entry.kind == TapKind::In;
                self.reach(usize::from(!is_in), head.at.get(), entry.bytes.len() as u64);
            }
            TapKind::Opened => self.addresses = String::from_utf8_lossy(entry.bytes).into_owned(),
            TapKind::Ended => {
                self.end = TapeEnd::Closed(TapClose::of(head.detail));
                let totals = entry.totals().unwrap_or_default();
                totals.into_iter().enumerate().for_each(|(way, total)| self.reach(way, total, 0));
            }
            TapKind::Began | TapKind::Lost => {}
        }
    }
}

/// A tap as far as it is read: which connections there were, without their bytes.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The connections, as they came.
    pub connections: Vec<TapedConnection>,
    /// Entries and bytes that the gateway says it lost.
    pub lost: (u64, u64),
    /// Of each life of its gateway when its first and its last entry are of, nanoseconds since 1970. Between them everything is there that is not lost.
    pub lives: Vec<(u64, u64)>,
    /// When entries were lost: from the one before to the one that says so.
    pub holes: Vec<(u64, u64)>,
    /// When the last entry was of that is about more than the beginning of a process.
    pub said_ns: u64,
    life: u64,
    open: BTreeMap<u32, usize>,
}

impl Tape {
    /// Takes the next entry; says of which connection it is.
    pub fn take(&mut self, entry: &TapEntry<'_>) -> Option<usize> {
        self.follow_lives(entry);
        let wall_ns = entry.head.wall_ns.get();
        let before_ns = self.said_ns;
        if entry.kind != TapKind::Began {
            self.said_ns = wall_ns.max(before_ns);
        }
        match entry.kind {
            TapKind::Began => return None,
            TapKind::Lost => {
                let TapLoss { entries, bytes } = entry.loss().unwrap_or_default();
                self.lost.0 = self.lost.0.saturating_add(entries.get());
                self.lost.1 = self.lost.1.saturating_add(bytes.get());
                self.holes.push((before_ns, wall_ns));
                return None;
            }
            _ => {}
        }
        let (number, connections) = (entry.head.connection.get(), &mut self.connections);
        let index = *self.open.entry(number).or_insert_with(|| {
            connections.push(TapedConnection::new(entry));
            connections.len() - 1
        });
        self.connections[index].take(entry);
        if entry.kind == TapKind::Ended {
            self.open.remove(&number);
        }
        Some(index)
    }

    /// An entry of another life: what was open is over.
    fn follow_lives(&mut self, entry: &TapEntry<'_>) {
        let (life, wall_ns) = (entry.head.life.get(), entry.head.wall_ns.get());
        if life != self.life || entry.kind == TapKind::Began || self.lives.is_empty() {
            self.life = life;
            // Behind the first entry that is kept may be what follows from one that is not.
            let settled_ns = if entry.kind == TapKind::Began { 0 } else { SETTLED_NS };
            self.lives.push((wall_ns.saturating_add(settled_ns), wall_ns));
            for (_, index) in std::mem::take(&mut self.open) {
                self.connections[index].end = TapeEnd::Gateway;
            }
        }
        if let Some((_, until)) = self.lives.last_mut() {
            *until = wall_ns.max(*until);
        }
    }
}
