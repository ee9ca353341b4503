//! Why a server does not do what a trader wants.

use pares_types::coded;

coded! {
    /// Why something was not taken in.
    pub enum Refusal {
        /// Longer than an item may be.
        TooLong = 1 "too_long",
        /// No item of its kind.
        Malformed = 2 "malformed",
        /// Too much waits to be ordered: try again.
        Busy = 3 "busy",
        /// A watcher may not submit: sign on as a trader, from 1.
        Watcher = 4 "watcher",
        /// There is no room for another trader.
        TooManyTraders = 5 "too_many_traders",
        /// Numbers begin at 1, and rise to 2^63.
        Number = 6 "number",
        /// The server's disk is full: try again, or another server.
        NoRoom = 7 "no_room",
    }
}

coded! {
    /// Why a server ends a connection.
    pub enum CutOff {
        /// It did not.
        None = 0 "none",
        /// The trader did not read for long.
        TooSlow = 1 "too_slow",
        /// What came is no frame, or has no business there.
        Malformed = 2 "malformed",
        /// The place asked for is of another stream: begin again from position 0.
        OtherStream = 3 "other_stream",
        /// There is no room for another connection.
        TooMany = 4 "too_many",
        /// The peer runs in another life of the window.
        OtherEpoch = 5 "other_epoch",
        /// The server takes nothing more in just now: say it again to another one.
        NoRoom = 6 "no_room",
    }
}

#[allow(clippy::derivable_impls)] // a list of codes has no place for it
impl Default for CutOff {
    fn default() -> Self {
        Self::None
    }
}
