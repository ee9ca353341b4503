"""Why something was refused, or why an order ended: the codes of the protocol."""

from __future__ import annotations

from enum import IntEnum
from typing import Union


class Reason(IntEnum):
    """docs/protocols/order-entry.md says what each means, who refuses, and what to do."""

    NONE = 0
    UNKNOWN_INSTRUMENT = 1
    ZERO_QUANTITY = 2
    OFF_LOT = 3
    QUANTITY_TOO_LARGE = 4
    OFF_TICK = 5
    PRICE_OUT_OF_RANGE = 6
    WOULD_TRADE = 7
    INVALID_COMBINATION = 8
    UNKNOWN_ORDER = 9
    NOTHING_TO_TRADE = 11
    CANNOT_FILL_WHOLE = 12
    REQUESTED = 13
    DUPLICATE_REQUEST = 14
    BOOK_FULL = 15
    HALTED = 16
    OVERLOADED = 17
    STORAGE_UNAVAILABLE = 18
    MALFORMED_REQUEST = 19
    NOT_SIGNED_ON = 20
    UNKNOWN_CLIENT_ORDER_ID = 21
    NOTHING_CHANGED = 22
    BLOCKED = 23
    NOT_IN_THIS_PHASE = 24
    IN_TRANSITION = 25
    VALUE_TOO_LARGE = 26
    INVALID_DISPLAY = 27
    INVALID_MINIMUM = 28
    MINIMUM_NOT_MET = 29
    SELF_TRADE = 30
    PRICE_BAND = 31
    EXPIRED = 33
    NOT_PERMITTED = 34
    INSTRUMENT_EXISTS = 35
    BOOK_NOT_EMPTY = 36
    INVALID_RULE = 37
    ALREADY_BUSTED = 38
    TOO_MANY_BUSTS = 39
    TOO_MANY_PEGS = 40
    NOT_CLOSING_PRICE = 41
    UNFINISHED = 42
    TOO_MANY_INSTRUMENTS = 43
    NOT_BLOCKED = 44
    NOT_CLOSEABLE = 45
    THROTTLED = 46
    VOID = 47
    QUARANTINED = 48
    NOT_RECORDED = 49
    SYMBOL_IN_USE = 50
    NOT_QUARANTINED = 51
    TOO_OLD = 52
    TOO_MANY_SERIES = 53
    NOT_KEPT = 54
    UNKNOWN_SHARD = 55
    ALREADY_ASKED = 56
    BOOK_CROSSED = 57
    DAY_OVER = 60
    DAY_NOT_OVER = 61
    WRONG_DAY = 62
    WRONG_KEY = 70
    TOO_MANY_ATTEMPTS = 71
    REVOKED = 72
    TAKEN_OVER = 73
    NO_RIGHT = 74
    QUANTITY_LIMIT = 75
    VALUE_LIMIT = 76
    PRICE_COLLAR = 77
    ORDERS_LIMIT = 78
    SECOND_OPERATOR = 79
    OTHER_SERIES = 80
    UNKNOWN_MEMBER = 81
    MEMBER_EXISTS = 82
    UNKNOWN_SESSION = 83
    REGISTER_FULL = 84
    LAST_OPERATOR = 85
    OVERTAKEN = 86
    WRONG_CLOCK = 87
    TLS_REQUIRED = 90
    POSITION_LIMIT = 91
    TOO_MANY_CONNECTIONS = 92
    TOO_MANY_SESSIONS = 93


def known(code: int) -> Union[Reason, int]:
    """The reason of that code; the code itself if a later version has added it."""
    try:
        return Reason(code)
    except ValueError:
        return code


def reason_word(code: int) -> str:
    """The word of a reason code, as all of the exchange spells it."""
    reason = known(code)
    return reason.name.lower() if isinstance(reason, Reason) else f"reason_{code}"
