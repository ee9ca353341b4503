//! Why a command is refused.

macro_rules! refusals {
    ($($number:literal $variant:ident $words:literal)*) => {
        /// Why a command changes nothing. Told to the user, and written to the log in the same words.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
        pub enum Refusal { $(
            #[doc = $words]
            #[error($words)]
            $variant = $number,
        )* }

        pares_wice::kinds!(Refusal, "refusal" { $($number => $variant),* });
    };
}
refusals! {
    1 NotText "the line must be ASCII text"
    2 NoNumber "the line must begin with its number in brackets, from 1"
    3 UnknownCommand "there is no such command"
    4 Arity "the command has the wrong fields"
    5 BadUser "a user's name must be 1 to 32 visible characters"
    6 BadSymbol "a symbol must be 1 to 3 upper-case letters"
    7 BadAmount "an amount must be above zero, with at most two decimals"
    8 BadFile "a file's name may have only letters, digits, dots and dashes"
    9 NoAccount "the user has no account: add cash first"
    10 NoQuote "the quote server gave no quote"
    11 StaleQuote "the quote is older than 60 seconds"
    12 OtherSymbol "the quote is for another stock"
    13 InsufficientCash "insufficient cash"
    14 BelowOneShare "the amount is below the price of one share"
    15 InsufficientShares "insufficient shares"
    16 NothingPending "nothing is pending"
    17 Lapsed "the pending command expired after 60 seconds"
    18 TooManyPending "too many commands are pending"
    19 NoAmountSet "no amount is set for this stock"
    20 TooMuch "the amount exceeds the maximum of an account"
    21 FrontsSpent "this front has used up its numbers"
    22 OtherPending "another command is the newest pending one"
    23 ClockOff "this front's clock is wrong, so nothing was done: use another front"
    60 BadOrder "an order must be for at least one share, at a price above zero, and within the maximum of an account"
    61 OrderTooLarge "the order is larger than allowed"
    62 TooManyOrders "the user has reached the limit of open orders"
    63 PositionLimit "the position would be larger than allowed"
    64 LossLimit "the day's loss has reached its limit"
    65 Blocked "trading on the exchange is blocked for this user"
    66 NoOrder "there is no such order"
    67 OrderEnded "the order has ended"
    68 InDebt "the debt from a void trade must be paid first"
    69 NotRouter "another router has taken over"
    70 RouterAlive "another router is active"
    71 OtherOrder "the exchange reported a trade without an order"
    72 OtherMember "this broker's orders belong to another member"
    40 PersonTaken "the name is taken"
    41 NoPerson "there is no such person"
    42 TooManyTries "too many attempts to sign in: wait"
    43 CodeUsed "the code was already used: wait for the next one"
    44 PersonChanged "the person's data changed in the meantime: try again"
    45 NoRight "this needs the right supervisor"
    46 OwnLimits "another supervisor must change your own limits"
}
