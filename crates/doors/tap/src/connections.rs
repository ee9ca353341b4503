//! Entries put together again: which connections there were, and what went over each.

use std::collections::BTreeMap;

use crate::{TapDoor, TapEntry, TapKind, TapLoss};

/// How a connection ended, as far as the tap knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapeEnd {
    /// It has not.
    Open,
    /// Its gateway closed it, for this reason.
    Closed(u8),
    /// Its gateway's process is gone.
    Gateway,
}

impl TapeEnd {
    /// As it is written.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Open => "open",
            Self::Closed(1) => "gone",
            Self::Closed(2) => "malformed",
            Self::Closed(3) => "slow",
            Self::Closed(4) => "silent",
            Self::Closed(5) => "refused",
            Self::Closed(_) => "closed",
            Self::Gateway => "gateway ended",
        }
    }
}

/// A piece of what went one way.
#[derive(Clone, Debug)]
pub struct TapedPiece {
    /// When, nanoseconds since 1970, and by the clock that never goes back.
    pub wall_ns: u64,
    /// See above.
    pub mono_ns: u64,
    /// Whether it came in.
    pub is_in: bool,
    /// Bytes that went the same way before.
    pub at: u64,
    /// The bytes.
    pub bytes: Vec<u8>,
    /// Some of them are blanked.
    pub is_blanked: bool,
}

/// A connection.
#[derive(Clone, Debug)]
pub struct TapedConnection {
    /// Which since its gateway began, and how often that began before in this tap.
    pub number: u32,
    /// See above.
    pub life: u32,
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
    /// What went over it, if that was wanted.
    pub pieces: Vec<TapedPiece>,
}

impl TapedConnection {
    fn new(entry: &TapEntry<'_>, life: u32) -> Self {
        let ns = entry.head.wall_ns.get();
        Self {
            number: entry.head.connection.get(),
            life,
            door: entry.door,
            opened_ns: ns,
            seen_ns: ns,
            addresses: String::new(),
            who: None,
            end: TapeEnd::Open,
            totals: [0; 2],
            missing: [0; 2],
            pieces: Vec::new(),
        }
    }

    /// Bytes one way have come to `at`: what is between is missing.
    fn reach(&mut self, way: usize, at: u64, more: u64) {
        self.missing[way] += at.saturating_sub(self.totals[way]);
        self.totals[way] = self.totals[way].max(at) + more;
    }

    fn take(&mut self, entry: &TapEntry<'_>, keeps: bool) {
        let head = entry.head;
        self.seen_ns = head.wall_ns.get();
        if head.member.get() > 0 || head.session.get() > 0 {
            self.who = Some((head.member.get(), head.session.get()));
        }
        match entry.kind {
            TapKind::In | TapKind::Out => {
                let is_in = entry.kind == TapKind::In;
                self.reach(usize::from(!is_in), head.at.get(), entry.bytes.len() as u64);
                self.pieces.extend(keeps.then(|| TapedPiece {
                    wall_ns: head.wall_ns.get(),
                    mono_ns: head.mono_ns.get(),
                    is_in,
                    at: head.at.get(),
                    bytes: entry.bytes.to_vec(),
                    is_blanked: entry.is_blanked(),
                }));
            }
            TapKind::Opened => self.addresses = String::from_utf8_lossy(entry.bytes).into_owned(),
            TapKind::Ended => {
                self.end = TapeEnd::Closed(head.detail);
                let totals = entry.totals().unwrap_or_default();
                totals.into_iter().enumerate().for_each(|(way, total)| self.reach(way, total, 0));
            }
            TapKind::Began | TapKind::Lost => {}
        }
    }
}

/// A whole tap, read.
#[derive(Clone, Debug, Default)]
pub struct Tape {
    /// The connections, as they came.
    pub connections: Vec<TapedConnection>,
    /// What the gateway says it lost.
    pub lost: (u64, u64),
    life: u32,
    open: BTreeMap<u32, usize>,
}

impl Tape {
    /// Takes the next entry; keeps its bytes if those of that connection are wanted, by life and number.
    pub fn take(&mut self, entry: &TapEntry<'_>, keeps: &dyn Fn((u32, u32)) -> bool) {
        match entry.kind {
            TapKind::Began => {
                self.life += 1;
                for (_, index) in std::mem::take(&mut self.open) {
                    self.connections[index].end = TapeEnd::Gateway;
                }
                return;
            }
            TapKind::Lost => {
                let TapLoss { entries, bytes } = entry.loss().unwrap_or_default();
                self.lost.0 += entries.get();
                self.lost.1 += bytes.get();
                return;
            }
            _ => {}
        }
        let (life, connections) = (self.life, &mut self.connections);
        let number = entry.head.connection.get();
        let index = *self.open.entry(number).or_insert_with(|| {
            connections.push(TapedConnection::new(entry, life));
            connections.len() - 1
        });
        self.connections[index].take(entry, keeps((life, number)));
        if entry.kind == TapKind::Ended {
            self.open.remove(&number);
        }
    }
}
