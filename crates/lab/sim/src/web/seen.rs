//! What members that come by HTTP met.

/// What members that come by HTTP met.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct WebSeen {
    /// Sign-ons that gateways accepted.
    pub sign_ons: u64,
    /// Servers that died, with all that they knew.
    pub deaths: u64,
    /// Requests asked again by clients.
    pub asked_again: u64,
    /// Requests answered.
    pub answered: u64,
    /// Of those, by what says that it was done before.
    pub repeats: u64,
    /// Questions answered.
    pub questions: u64,
    /// Reports told, to each who follows.
    pub reports: u64,
    /// Streams that were not told to one who follows: what comes next for him is kept no more.
    pub not_told: u64,
    /// Times that one who follows was ahead of what the gateway has.
    pub ahead: u64,
    /// Times that one who was ahead came to be told.
    pub caught_up: u64,
}

impl WebSeen {
    pub(crate) fn and(self, other: &Self) -> Self {
        Self {
            sign_ons: self.sign_ons + other.sign_ons,
            deaths: self.deaths + other.deaths,
            asked_again: self.asked_again + other.asked_again,
            answered: self.answered + other.answered,
            repeats: self.repeats + other.repeats,
            questions: self.questions + other.questions,
            reports: self.reports + other.reports,
            not_told: self.not_told + other.not_told,
            ahead: self.ahead + other.ahead,
            caught_up: self.caught_up + other.caught_up,
        }
    }
}
