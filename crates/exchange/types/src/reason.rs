//! Why a request was refused, or its order cancelled.

use crate::coded::coded;

coded! {
    /// Why a request was refused or an order cancelled. Codes are part of the protocol: never reuse one.
    pub enum Reason {
        /// No reason: it was carried out in full.
        None = 0 "none",
        /// No instrument has that id.
        UnknownInstrument = 1 "unknown_instrument",
        /// Quantity is zero.
        ZeroQuantity = 2 "zero_quantity",
        /// Quantity is not a multiple of the lot.
        OffLot = 3 "off_lot",
        /// Quantity is above the instrument's maximum.
        QuantityTooLarge = 4 "quantity_too_large",
        /// Price is not a multiple of the tick size.
        OffTick = 5 "off_tick",
        /// Price is outside the instrument's range.
        PriceOutOfRange = 6 "price_out_of_range",
        /// The order is post-only and would have traded at once.
        WouldTrade = 7 "would_trade",
        /// That combination of kind, time in force and flags is not allowed.
        InvalidCombination = 8 "invalid_combination",
        /// The member has no resting order of that id in this instrument; it may have just traded.
        UnknownOrder = 9 "unknown_order",
        /// The unfilled part of an IOC or market order; the opposite side had no more to trade.
        NothingToTrade = 11 "nothing_to_trade",
        /// A fill-or-kill order could not be filled completely.
        CannotFillWhole = 12 "cannot_fill_whole",
        /// The member asked for it.
        Requested = 13 "requested",
    /// This member used that client order id before, or another request of the member waits under it; the first answer stands.
        DuplicateRequest = 14 "duplicate_request",
        /// The book is full.
        BookFull = 15 "book_full",
        /// The shard is halted.
        Halted = 16 "halted",
        /// Gateway: too many requests in flight; try again shortly.
        Overloaded = 17 "overloaded",
        /// Gateway: its journal cannot take the request (disk full or failed).
        StorageUnavailable = 18 "storage_unavailable",
        /// The frame breaks the protocol, or contains values that no session may send.
        MalformedRequest = 19 "malformed_request",
        /// Gateway: no sign-on on this connection yet.
        NotSignedOn = 20 "not_signed_on",
        /// Gateway: the order named by client order id is not known here.
        UnknownClientOrderId = 21 "unknown_client_order_id",
        /// The request would change nothing.
        NothingChanged = 22 "nothing_changed",
        /// The member is blocked by the kill switch.
        Blocked = 23 "blocked",
        /// The instrument's phase does not allow it.
        NotInThisPhase = 24 "not_in_this_phase",
        /// The instrument is finishing an operation of several steps; try again shortly.
        InTransition = 25 "in_transition",
        /// Price times quantity exceeds the instrument's maximum.
        ValueTooLarge = 26 "value_too_large",
        /// An iceberg must display less than its quantity, at least a hundredth of it, in whole lots.
        InvalidDisplay = 27 "invalid_display",
        /// The minimum quantity is not a multiple of the lot, or exceeds the quantity.
        InvalidMinimum = 28 "invalid_minimum",
        /// Less than the minimum quantity could trade at once.
        MinimumNotMet = 29 "minimum_not_met",
        /// The order would have traded with an order of the same member.
        SelfTrade = 30 "self_trade",
        /// The next trade would have been outside the price band.
        PriceBand = 31 "price_band",
        /// The order's expiry date has passed.
        Expired = 33 "expired",
        /// Only the exchange may request this.
        NotPermitted = 34 "not_permitted",
        /// An instrument of that id already exists.
        InstrumentExists = 35 "instrument_exists",
        /// This rule can change only while the book is empty.
        BookNotEmpty = 36 "book_not_empty",
        /// The rule has invalid values.
        InvalidRule = 37 "invalid_rule",
        /// That trade is already busted.
        AlreadyBusted = 38 "already_busted",
        /// The instrument has reached its limit of busted trades for today.
        TooManyBusts = 39 "too_many_busts",
        /// The instrument has reached its limit of pegged orders.
        TooManyPegs = 40 "too_many_pegs",
        /// After the close, orders are accepted at the closing price only.
        NotClosingPrice = 41 "not_closing_price",
        /// Executed in part, as much as one step allows. An order continues by itself; any other request must be sent again for the rest.
        Unfinished = 42 "unfinished",
        /// The shard has reached its limit of instruments.
        TooManyInstruments = 43 "too_many_instruments",
        /// The member is not blocked.
        NotBlocked = 44 "not_blocked",
        /// The instrument must be closed or halted first.
        NotCloseable = 45 "not_closeable",
        /// Gateway: the session exceeded its order rate; cancels are still accepted.
        Throttled = 46 "throttled",
        /// The matching engine failed on this request, so the venues agreed to void it; it was never executed.
        Void = 47 "void",
        /// The matching engine failed on a request for this instrument, which accepts none until the exchange releases it.
        Quarantined = 48 "quarantined",
        /// Gateway: recording has stalled, so new requests are refused until it resumes.
        NotRecorded = 49 "not_recorded",
        /// Another instrument of the shard has that symbol, ignoring case.
        SymbolInUse = 50 "symbol_in_use",
        /// The instrument is not quarantined.
        NotQuarantined = 51 "not_quarantined",
        /// The name is older than all remembered names of its series, or its series was given back: nothing was done now, and the record has the answer if the name was used before.
        TooOld = 52 "too_old",
        /// The shard has reached its limit of name series, and no other member has one to spare.
        TooManySeries = 53 "too_many_series",
        /// Gateway: the stream no longer keeps messages below that number.
        NotKept = 54 "not_kept",
        /// Gateway: no shard has that number.
        UnknownShard = 55 "unknown_shard",
        /// Gateway: the session's previous list request is still being answered.
        AlreadyAsked = 56 "already_asked",
        /// The book is crossed; only an auction call can open it.
        BookCrossed = 57 "book_crossed",
        /// No business day is open. Orders are accepted when the next day begins; cancels are accepted now.
        DayOver = 60 "day_over",
        /// The previous business day has not ended.
        DayNotOver = 61 "day_not_over",
        /// An end must name the current business day; a beginning must name a later day than the last one, at most 31 days ahead.
        WrongDay = 62 "wrong_day",
        /// Gateway: that key does not sign on as this session.
        WrongKey = 70 "wrong_key",
        /// Gateway: too many wrong keys came from that address; try again shortly.
        TooManyAttempts = 71 "too_many_attempts",
        /// Gateway: the session was disconnected, because its key was changed or revoked, or its drop-copy member changed.
        Revoked = 72 "revoked",
        /// Gateway: this connection was closed, because another one signed on as this session.
        TakenOver = 73 "taken_over",
        /// Gateway: the session lacks the right for this request.
        NoRight = 74 "no_right",
        /// Gateway: the quantity exceeds the session's limit per order.
        QuantityLimit = 75 "quantity_limit",
        /// Gateway: price times quantity exceeds the session's limit per order.
        ValueLimit = 76 "value_limit",
        /// Gateway: the limit price is outside the session's price collar around the last trade.
        PriceCollar = 77 "price_collar",
        /// Gateway: the member has reached its limit of open orders, or its share of the instrument's.
        OrdersLimit = 78 "orders_limit",
        /// Gateway: this needs two operators. The first proposes it (--propose, or propose over HTTP); a second sends the same request within ten minutes.
        SecondOperator = 79 "second_operator",
        /// Gateway: the name of an operator's request or of a guarded order must belong to the series of its own session.
        OtherSeries = 80 "other_series",
        /// The register has no such member.
        UnknownMember = 81 "unknown_member",
        /// The register has that member already.
        MemberExists = 82 "member_exists",
        /// The member has no such session.
        UnknownSession = 83 "unknown_session",
        /// The register has reached its limit of members, sessions or listed instruments.
        RegisterFull = 84 "register_full",
        /// The change would leave no operator who can change the register.
        LastOperator = 85 "last_operator",
        /// A later operator request, accepted more than a second after this one, was executed first: nothing was done in that shard.
        Overtaken = 86 "overtaken",
        /// Gateway: the Logon's time is more than two minutes off, not later than that of the session's last accepted Logon, or used before.
        WrongClock = 87 "wrong_clock",
        /// Gateway: this port requires TLS; connect with TLS.
        TlsRequired = 90 "tls_required",
        /// Gateway: the order could take the member's position beyond its limit for the day.
        PositionLimit = 91 "position_limit",
        /// Gateway: all its places for connections are taken, or all for those without a sign-on; sign on at another gateway, or here in a moment.
        TooManyConnections = 92 "too_many_connections",
        /// Gateway: the member has as many sessions here as it may; end one, or sign on at another gateway.
        TooManySessions = 93 "too_many_sessions",
    }
}
