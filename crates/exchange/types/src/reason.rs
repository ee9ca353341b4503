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
        /// Price is not a multiple of the tick.
        OffTick = 5 "off_tick",
        /// Price is outside the instrument's range.
        PriceOutOfRange = 6 "price_out_of_range",
        /// Post-only, and it would have traded at once.
        WouldTrade = 7 "would_trade",
        /// That combination of kind, time in force and flags means nothing.
        InvalidCombination = 8 "invalid_combination",
        /// No resting order of that id for this member and instrument (it may have just traded).
        UnknownOrder = 9 "unknown_order",
        /// The part of an IOC or market order that found nothing to trade with.
        NothingToTrade = 11 "nothing_to_trade",
        /// A fill-or-kill order that could not be filled whole.
        CannotFillWhole = 12 "cannot_fill_whole",
        /// The member asked for it.
        Requested = 13 "requested",
        /// This member used that client order id before; the first answer stands.
        DuplicateRequest = 14 "duplicate_request",
        /// The book holds as many orders as it may.
        BookFull = 15 "book_full",
        /// The shard is halted.
        Halted = 16 "halted",
        /// Gateway: too many requests in flight; try again shortly.
        Overloaded = 17 "overloaded",
        /// Gateway: its journal cannot take the request (disk full or failed).
        StorageUnavailable = 18 "storage_unavailable",
        /// The frame does not follow the protocol, or no session can have such an entry.
        MalformedRequest = 19 "malformed_request",
        /// Gateway: no sign-on on this connection yet.
        NotSignedOn = 20 "not_signed_on",
        /// Gateway: the order named by client order id is not known here.
        UnknownClientOrderId = 21 "unknown_client_order_id",
        /// A request that changes nothing.
        NothingChanged = 22 "nothing_changed",
        /// The member is blocked by the kill switch.
        Blocked = 23 "blocked",
        /// The instrument's phase does not allow it.
        NotInThisPhase = 24 "not_in_this_phase",
        /// The instrument is in the middle of something that takes several steps; try again shortly.
        InTransition = 25 "in_transition",
        /// Price times quantity is above the instrument's maximum.
        ValueTooLarge = 26 "value_too_large",
        /// An iceberg must show less than all of it, at least a hundredth, on the lot.
        InvalidDisplay = 27 "invalid_display",
        /// The minimum is off the lot or above the quantity.
        InvalidMinimum = 28 "invalid_minimum",
        /// Less than the minimum could trade at once.
        MinimumNotMet = 29 "minimum_not_met",
        /// It met an order of the same member.
        SelfTrade = 30 "self_trade",
        /// The next trade would have been outside a price band.
        PriceBand = 31 "price_band",
        /// Its date has passed.
        Expired = 33 "expired",
        /// Only the exchange may ask for that.
        NotPermitted = 34 "not_permitted",
        /// An instrument of that id is there already.
        InstrumentExists = 35 "instrument_exists",
        /// That can only be changed while no order is there.
        BookNotEmpty = 36 "book_not_empty",
        /// No instrument can have such a rule.
        InvalidRule = 37 "invalid_rule",
        /// That trade has been busted before.
        AlreadyBusted = 38 "already_busted",
        /// The instrument remembers no more busted trades today.
        TooManyBusts = 39 "too_many_busts",
        /// The instrument takes no more pegged orders.
        TooManyPegs = 40 "too_many_pegs",
        /// After the close orders are at the closing price only.
        NotClosingPrice = 41 "not_closing_price",
        /// Carried out in part, as much as one step allows. An order goes on by itself; all else: send it again for the rest.
        Unfinished = 42 "unfinished",
        /// The shard takes no more instruments.
        TooManyInstruments = 43 "too_many_instruments",
        /// The member is not blocked.
        NotBlocked = 44 "not_blocked",
        /// The instrument must be closed or halted for that.
        NotCloseable = 45 "not_closeable",
        /// Gateway: more orders than this session may send in a second; cancels pass.
        Throttled = 46 "throttled",
        /// The matching engine failed at it: it was declared void, by agreement, and never executed.
        Void = 47 "void",
        /// The matching engine failed at a request for this instrument; it takes none until the exchange releases it.
        Quarantined = 48 "quarantined",
        /// Gateway: requests wait and nothing is being recorded; nothing new is taken in until it is again.
        NotRecorded = 49 "not_recorded",
        /// Another instrument of the shard has that symbol, in whatever case.
        SymbolInUse = 50 "symbol_in_use",
        /// The instrument is not quarantined: there is nothing to release it from.
        NotQuarantined = 51 "not_quarantined",
        /// The name lies below all that is remembered of its series: if it was used, its answer is in the record; this time nothing was done.
        TooOld = 52 "too_old",
        /// The shard takes no more series of names.
        TooManySeries = 53 "too_many_series",
        /// Gateway: what the stream holds below that number is not kept any more.
        NotKept = 54 "not_kept",
        /// Gateway: no shard has that number.
        UnknownShard = 55 "unknown_shard",
        /// Gateway: the session is still being told the list it asked for before.
        AlreadyAsked = 56 "already_asked",
        /// Orders cross, and only a call may open such a book.
        BookCrossed = 57 "book_crossed",
        /// No business day is on: orders are taken again when the next one begins. Cancels pass.
        DayOver = 60 "day_over",
        /// The business day before has not ended.
        DayNotOver = 61 "day_not_over",
        /// For an end: not the day that is on. For a beginning: not after the last day, or more than 31 days ahead.
        WrongDay = 62 "wrong_day",
        /// Gateway: no such session signs on with that key.
        WrongKey = 70 "wrong_key",
        /// Gateway: too many wrong keys were tried for that session; try again shortly.
        TooManyAttempts = 71 "too_many_attempts",
        /// Gateway: the key of this session was changed or revoked, or it is told of another member from now on; it is disconnected.
        Revoked = 72 "revoked",
        /// Gateway: another connection has signed on as this session; this one is disconnected.
        TakenOver = 73 "taken_over",
        /// Gateway: the session has no right to ask for that.
        NoRight = 74 "no_right",
        /// Gateway: more shares than the session may order at once.
        QuantityLimit = 75 "quantity_limit",
        /// Gateway: price times quantity is more than the session may order at once.
        ValueLimit = 76 "value_limit",
        /// Gateway: the limit lies farther beyond the last trade than the session may go.
        PriceCollar = 77 "price_collar",
        /// Gateway: the member has as many orders at work as it may.
        OrdersLimit = 78 "orders_limit",
        /// Gateway: a second operator has to ask for that. The first proposes it (with --propose, or over HTTP propose), then another asks for the same, within ten minutes.
        SecondOperator = 79 "second_operator",
        /// Gateway: the name of an operator's request, or of a guarded order, is not of the series that has its session's number.
        OtherSeries = 80 "other_series",
        /// The register has no such member.
        UnknownMember = 81 "unknown_member",
        /// The register has that member already.
        MemberExists = 82 "member_exists",
        /// The member has no such session.
        UnknownSession = 83 "unknown_session",
        /// The register takes no more members, sessions or listed instruments.
        RegisterFull = 84 "register_full",
        /// Nobody could change the register any more.
        LastOperator = 85 "last_operator",
        /// Another request of an operator, taken in more than a second after this one, came before it: nothing was done in that shard.
        Overtaken = 86 "overtaken",
        /// Gateway: it speaks TLS, and this connection came without.
        TlsRequired = 90 "tls_required",
        /// Gateway: the member might have bought or sold more today than it may.
        PositionLimit = 91 "position_limit",
    }
}
