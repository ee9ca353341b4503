//! Why a command is refused.

use pares_wice::codec::{Coded, DecodeError};

macro_rules! refusals {
    ($($number:literal $variant:ident $words:literal)*) => {
        /// Why a command changes nothing. Told to the user, and written to the log in the same words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
        pub enum Refusal { $(
            #[doc = $words]
            #[error($words)]
            $variant = $number,
        )* }

        impl Refusal {
            const ALL: &[Self] = &[$(Self::$variant),*];
        }
    };
}
refusals! {
    1 NotText "the line is not ASCII text"
    2 NoNumber "the line does not begin with its number in brackets, 1 or above"
    3 UnknownCommand "there is no such command"
    4 Arity "the command has other fields"
    5 BadUser "a user's name is 1 to 32 visible characters"
    6 BadSymbol "a symbol is 1 to 3 upper-case letters"
    7 BadAmount "an amount is above zero, with two decimals at most"
    8 BadFile "a file's name is letters, digits, dots, dashes"
    9 NoAccount "the user has no account"
    10 NoQuote "the quote server gave no quote"
    11 StaleQuote "the quote is older than 60 seconds"
    12 OtherSymbol "the quote is of another stock"
    13 InsufficientCash "insufficient cash"
    14 BelowOneShare "the amount is below the price of one share"
    15 InsufficientShares "insufficient shares"
    16 NothingPending "nothing is pending"
    17 Lapsed "what was pending has lapsed after 60 seconds"
    18 TooManyPending "too much is pending"
    19 NoAmountSet "no amount is set for this stock"
    20 TooMuch "no account holds so much"
    21 FrontsSpent "no front has a number any more"
    22 OtherPending "the newest that is pending is another one"
    23 ClockOff "this front's clock is off: nothing was done, and through another one it can be"
    60 BadOrder "an order is for one share at least, at a price above zero, and for no more than an account holds"
    61 OrderTooLarge "the order is larger than allowed"
    62 TooManyOrders "too many orders are open"
    63 PositionLimit "the position would be larger than allowed"
    64 LossLimit "the loss of the day is as large as allowed"
    65 Blocked "trading on the exchange is blocked for this user"
    66 NoOrder "there is no such order"
    67 OrderEnded "the order has ended"
    68 InDebt "what a void trade left owed comes first"
    69 NotRouter "another router has taken over"
    70 RouterAlive "another router is at work"
    71 OtherOrder "the exchange tells of what was not ordered"
    72 OtherMember "the orders of this broker are another member's"
    40 PersonTaken "the name is taken"
    41 NoPerson "there is no such person"
    42 TooManyTries "too many tries to sign in: wait"
    43 CodeUsed "the code was used: wait for the next one"
    44 PersonChanged "what is known of the person has changed meanwhile"
    45 NoRight "this needs the right supervisor"
    46 OwnLimits "your own limits are for another supervisor to change"
}

impl Coded for Refusal {
    fn encode(&self, to: &mut Vec<u8>) {
        to.push(*self as u8);
    }
    fn decode(from: &mut &[u8]) -> Result<Self, DecodeError> {
        let number = u8::decode(from)?;
        let found = Self::ALL.iter().copied().find(|refusal| *refusal as u8 == number);
        found.ok_or(DecodeError::Kind(number, "refusal"))
    }
}
