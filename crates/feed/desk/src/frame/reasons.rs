//! Why something is refused, or a connection ends.

/// Why something was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[repr(u8)]
pub enum Refusal {
    /// Longer than an item may be.
    #[error("too long")]
    TooLong = 1,
    /// No item of its kind.
    #[error("no item of its kind")]
    Malformed = 2,
    /// Too much waits to be ordered: try again.
    #[error("too much waits to be ordered: try again")]
    Busy = 3,
    /// A watcher may not submit.
    #[error("a watcher may not submit: sign on as a trader, from 1")]
    Watcher = 4,
    /// There is no room for another trader.
    #[error("there is no room for another trader")]
    TooManyTraders = 5,
    /// Numbers begin at 1 and rise, up to [`NUMBER_MAX`](crate::item::NUMBER_MAX).
    #[error("numbers begin at 1, and rise to 2^63")]
    Number = 6,
    /// The server's disk is full: try again, or another server.
    #[error("the server's disk is full: try another server")]
    NoRoom = 7,
}

impl Refusal {
    /// The refusal of that code.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        use Refusal::*;
        [TooLong, Malformed, Busy, Watcher, TooManyTraders, Number, NoRoom]
            .into_iter()
            .find(|refusal| *refusal as u8 == code)
    }
}

/// Why a server ends a connection.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum CutOff {
    /// It did not.
    #[default]
    None = 0,
    /// The trader did not read for long.
    TooSlow = 1,
    /// What came is no frame, or has no business there.
    Malformed = 2,
    /// The place asked for is of another stream: begin again from position 0.
    OtherStream = 3,
    /// There is no room for another connection.
    TooMany = 4,
    /// The peer runs in another life of the window.
    OtherEpoch = 5,
    /// The server takes nothing more in just now: say it again to another one.
    NoRoom = 6,
}

impl CutOff {
    /// The reason of that code.
    #[must_use]
    pub fn of(code: u8) -> Option<Self> {
        use CutOff::*;
        [None, TooSlow, Malformed, OtherStream, TooMany, OtherEpoch, NoRoom]
            .into_iter()
            .find(|cut_off| *cut_off as u8 == code)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_read_back() {
        for code in 0..=255 {
            assert!(Refusal::of(code).is_none_or(|refusal| refusal as u8 == code));
            assert!(CutOff::of(code).is_none_or(|cut_off| cut_off as u8 == code));
        }
        assert_eq!((1..=7).filter_map(Refusal::of).count(), 7);
        assert_eq!((0..=6).filter_map(CutOff::of).count(), 7);
    }
}
