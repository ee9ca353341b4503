//! Crash points: named places at which a node can be told to die as if it were killed there.
//!
//! A signal from outside hits a process wherever it happens to be: nearly always asleep, hardly ever between two stores
//! that follow each other. Yet it is between those that a node can leave behind what no one expects: a slot won and
//! nothing executed, a record whose second half is missing, a batch that is written and not published. So the places
//! have names, and a test says at which one, and at which passage, the node ends.
//!
//! ```text
//!  PARES_CRASH_AT=venue-decided:37 pares-lab node venue-1     dies when it passes venue-decided for the 37th time
//! ```
//! It dies by SIGKILL, from itself: nothing is unwound, flushed or told. All points lie where the node touches its world: what it
//! does in between, no other process could see.
//!
//! What a kill cannot show has no point: the page cache survives the process, so between a sync and the mark
//! that tells of it nothing changes that the next start could see. Power failures are the simulator's. A venue without a
//! sequencer orders requests by itself, and passes none of the points of the window.

use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pares_config::NodeId;

/// The variable of the environment that arms a node: `POINT:PASSAGE`.
pub const VARIABLE: &str = "PARES_CRASH_AT";

/// What a node's last line says before the name of the point.
pub const LAST_WORDS: &str = "dies at the crash point";

macro_rules! points {
    ($($name:ident $text:literal $meaning:literal)*) => {
        /// A place at which a node can be told to die. The name begins with the role that passes it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Point {
            $(#[doc = $meaning] $name,)*
        }

        impl Point {
            /// All points, role by role, in the order in which a request meets them.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Its name, as [`VARIABLE`] has it.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

points! {
    VenueRestored "venue-restored"
        "A starting venue has loaded every shard's checkpoint, or found none; no record is read."
    VenueReplaying "venue-replaying"
        "A venue that has not caught up is about to execute the next position it has missed."
    VenueReceived "venue-received"
        "Requests are read from a gateway's log and queued; nothing is proposed."
    VenueHalfDecided "venue-half-decided"
        "The first half of the requests at hand is proposed, the second is not."
    VenueDecided "venue-decided"
        "Everything at hand is proposed, and something is decided; nothing is executed."
    VenueExecuting "venue-executing"
        "The venue has learnt what was decided and is about to execute the first of it."
    VenueExecuted "venue-executed"
        "The requests of a step are executed; the venue has not vouched for them, and no result is in the log."
    VenueWriting "venue-writing"
        "The first half of a result is in the log."
    VenueAppended "venue-appended"
        "The results of a batch are in the log, unpublished."
    VenuePublished "venue-published"
        "Results are published; the recorders are not woken."
    VenueObserving "venue-observing"
        "A record is met that the venue has not learnt from the window; the recorded mark is raised, nothing is executed."
    VenueCheckpoint "venue-checkpoint"
        "A part of a checkpoint is handed out, but not all of it."
    RecorderRecovered "recorder-recovered"
        "A starting recorder has read its own log through; nothing is read from anybody else."
    RecorderReceived "recorder-received"
        "A result is read from a venue's log and not judged yet."
    RecorderWriting "recorder-writing"
        "The first half of a record is in the log."
    RecorderTook "recorder-took"
        "A venue's result is in the log; those of the batch before it too, those after it are not."
    RecorderTookFromPeer "recorder-took-from-peer"
        "A record that was read from a peer is in the log."
    RecorderAppended "recorder-appended"
        "A batch is in the log, unpublished."
    RecorderPublished "recorder-published"
        "A batch is published; with `os` that makes it durable. Nobody is woken."
    RecorderUnsynced "recorder-unsynced"
        "With `disk`: a batch is written and readable; it is not synced, so nobody may count on it."
    RecorderSynced "recorder-synced"
        "With `disk`: a batch is durable and marked so; nobody is woken."
    RecorderStoring "recorder-storing"
        "The first half of a piece of a checkpoint's file is written."
    RecorderStored "recorder-stored"
        "A checkpoint's file is whole and verified; it does not have its name yet."
    RecorderNamed "recorder-named"
        "A checkpoint's file has its name; older ones are still there and nobody is told."
    GatewayRecovering "gateway-recovering"
        "A starting gateway knows what is committed and reads its own log: before each record of it is taken in."
    GatewayRecovered "gateway-recovered"
        "A starting gateway knows all names again; it accepts nobody yet."
    GatewaySigningOn "gateway-signing-on"
        "A client has signed on; it is not told yet."
    GatewayReceived "gateway-received"
        "Something is read from a connection; nothing of it is journalled."
    GatewayWriting "gateway-writing"
        "The first half of a request is in the log."
    GatewayJournalled "gateway-journalled"
        "The requests of a batch are in the log, unpublished."
    GatewayPublished "gateway-published"
        "Requests are published; the venues are not woken."
    GatewayCommitted "gateway-committed"
        "A record is read from a recorder's log; nobody is told."
    GatewayAnswered "gateway-answered"
        "Something that a signed-on client is to be told waits to be sent."
    GatewayRepeating "gateway-repeating"
        "A repeat is known as one; its first answer is looked up and not given."
    GatewaySent "gateway-sent"
        "Something is handed to a socket, perhaps not all that waits; the gateway does not know yet how much."
    PublisherWriting "publisher-writing"
        "The first half of a record of messages, or of a piece of a state, is in the log."
    PublisherAppended "publisher-appended"
        "Messages are in the log, unpublished; none of them is sent."
    PublisherPublished "publisher-published"
        "Messages are published in the log, and none of them is sent."
}

impl Point {
    /// Whether a node of that role passes it.
    #[must_use]
    pub fn is_of(self, role: NodeId) -> bool {
        self.name().split('-').next() == role.to_string().split('-').next()
    }
}

/// What a node is to do: at which point to die, and at which passage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrashTrigger {
    /// Where.
    pub point: Point,
    /// When: 1 for the first passage.
    pub passage: u64,
}

impl fmt::Display for CrashTrigger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.point.name(), self.passage)
    }
}

impl FromStr for CrashTrigger {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "{VARIABLE}={text} is not a crash point; expected POINT:PASSAGE, such as venue-decided:37"
            )
        };
        let (name, passage) = text.split_once(':').ok_or_else(wrong)?;
        let point = Point::ALL.iter().copied().find(|point| point.name() == name).ok_or_else(wrong)?;
        let passage = passage.parse().ok().filter(|&passage| passage > 0).ok_or_else(wrong)?;
        Ok(Self { point, passage })
    }
}

/// Whether this node is to die somewhere, and how far it is from that.
#[derive(Debug)]
pub(crate) struct Crash {
    doom: Option<CrashTrigger>,
    /// Passages left, the last one included.
    left: AtomicU64,
    /// Whether the node has come so far that it participates.
    open: AtomicBool,
    /// Whether the last result was read from a peer's log.
    from_peer: AtomicBool,
    /// How the process ends.
    end: fn(Point) -> !,
}

impl Crash {
    /// As the variable says.
    pub(crate) fn read(node: NodeId, variable: &impl Fn(&str) -> Option<String>) -> Result<Self, String> {
        let doom = variable(VARIABLE).map(|text| text.parse::<CrashTrigger>()).transpose()?;
        match doom.filter(|doom| !doom.point.is_of(node)) {
            Some(doom) => Err(format!("{VARIABLE}={doom} is not a crash point of {node}")),
            None => Ok(Self::new(doom, die)),
        }
    }

    pub(crate) fn new(doom: Option<CrashTrigger>, end: fn(Point) -> !) -> Self {
        let left = AtomicU64::new(doom.map_or(0, |doom| doom.passage));
        let (open, from_peer) = (AtomicBool::new(false), AtomicBool::new(false));
        Self { doom, left, open, from_peer, end }
    }

    pub(crate) fn doom(&self) -> Option<CrashTrigger> {
        self.doom
    }

    /// Whether the node is to die anywhere: only then what it does needs looking at.
    #[inline]
    pub(crate) fn is_armed(&self) -> bool {
        self.doom.is_some()
    }

    /// The node participates from now on.
    pub(crate) fn opened(&self) {
        self.open.store(true, Ordering::Relaxed);
    }

    /// Whether it does.
    pub(crate) fn is_open(&self) -> bool {
        self.open.load(Ordering::Relaxed)
    }

    /// A result was read, from a peer's log or from a venue's.
    pub(crate) fn on_result(&self, from_peer: bool) {
        self.from_peer.store(from_peer, Ordering::Relaxed);
    }

    /// Whether the last one was from a peer's log.
    pub(crate) fn is_from_peer(&self) -> bool {
        self.from_peer.load(Ordering::Relaxed)
    }

    /// Passes a point: ends the process if it is doomed at this passage.
    #[inline]
    pub(crate) fn at(&self, point: Point) {
        self.after(point, || {});
    }

    /// Passes a point at which the node is to have done only a part of what follows: `part` is done if the process ends
    /// here, and not otherwise.
    #[inline]
    pub(crate) fn after(&self, point: Point, part: impl FnOnce()) {
        if self.doom.is_some_and(|doom| doom.point == point) && self.is_last_passage() {
            part();
            (self.end)(point);
        }
    }

    /// Passes a point in the middle of writing: if the process ends here, the second half of `bytes` is what it was before,
    /// zeros.
    pub(crate) fn torn(&self, point: Point, bytes: &mut [u8]) {
        self.after(point, || {
            let half = bytes.len() / 2;
            bytes[half..].fill(0);
        });
    }

    #[cold]
    fn is_last_passage(&self) -> bool {
        self.left.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

#[cold]
fn die(point: Point) -> ! {
    crate::say(&format_args!("{LAST_WORDS} {}", point.name()));
    // Nothing else can be done about a signal to itself that fails.
    let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    // The signal meets the process before it returns from the system call, or another of its threads within moments.
    loop {
        std::thread::park();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_types::{GatewayId, PublisherId, RecorderId, VenueId};

    #[test]
    fn points_are_read_as_they_are_printed() {
        for &point in Point::ALL {
            let doom = CrashTrigger { point, passage: 37 };
            assert_eq!(doom.to_string().parse(), Ok(doom));
        }
    }

    #[test]
    fn what_is_no_point_is_refused_and_told_why() {
        for text in ["", "venue-decided", "venue-decided:", "venue-decided:0", "venue-decided:x", "venus:1"] {
            assert!(text.parse::<CrashTrigger>().unwrap_err().contains("POINT:PASSAGE"), "{text}");
        }
    }

    #[test]
    fn every_point_is_of_one_role() {
        let roles = [
            NodeId::Venue(VenueId(1)),
            NodeId::Recorder(RecorderId(0)),
            NodeId::Gateway(GatewayId(2)),
            NodeId::Publisher(PublisherId(0)),
        ];
        for point in Point::ALL {
            assert_eq!(roles.iter().filter(|&&role| point.is_of(role)).count(), 1, "{}", point.name());
        }
    }
}
