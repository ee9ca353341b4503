"""Bytes of the protocol: what a client sends, what a gateway sends. No sockets here.

Every frame is `length u16, kind u8, version u8, body`, little-endian. A body may be longer than what is known here: later
versions append fields. Fields that an earlier gateway did not send yet are 0.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from decimal import Decimal
from enum import IntEnum
from typing import Union

from .reasons import Reason, known

VERSION = 1
HEAD = struct.Struct("<HBB")
FRAME_MAX = 128
PRICE_UNITS = 10_000
"""Price units in one unit of the currency."""


class ProtocolError(Exception):
    """The other end does not speak this protocol. The connection is of no further use."""


class Side(IntEnum):
    BUY = 1
    SELL = 2


class OrderKind(IntEnum):
    LIMIT = 1
    MARKET = 2
    POST_ONLY = 3
    PEG_TO_OWN_SIDE = 5
    PEG_TO_MIDDLE = 6


class TimeInForce(IntEnum):
    DAY = 1
    IMMEDIATE_OR_CANCEL = 2
    FILL_OR_KILL = 3
    GOOD_TILL_CANCELLED = 4
    GOOD_TILL_DATE = 5
    AT_OPEN = 6
    AT_CLOSE = 7


class SelfTrade(IntEnum):
    """What happens when an order meets one of the same member."""

    TRADES = 0
    CANCEL_RESTING = 1
    CANCEL_INCOMING = 2
    CANCEL_BOTH = 3
    REDUCE_BOTH = 4


class Status(IntEnum):
    RESTING = 1
    FILLED = 2
    CANCELLED = 3
    REFUSED = 4
    MASS_CANCELLED = 5
    ACCEPTED = 6
    HELD = 7


def price(amount: Union[Decimal, str]) -> int:
    """A decimal amount in price units: `price("223.82")` is 2238200. Raises ValueError if it is finer than a unit, TypeError for a float."""
    if isinstance(amount, float):
        raise TypeError(f"a float is not an exact price: write price({str(amount)!r})")
    units = Decimal(amount) * PRICE_UNITS
    if units != units.to_integral_value():
        raise ValueError(f"{amount}: prices must be multiples of {Decimal(1) / PRICE_UNITS}")
    return int(units)


def frame(kind: int, body: bytes) -> bytes:
    """The frame of that body."""
    return HEAD.pack(HEAD.size + len(body), kind, VERSION) + body


def split(data: bytes) -> Union[tuple[int, bytes, bytes], None]:
    """The first frame's kind and body, and what is behind it. None if it is not all there."""
    if len(data) < HEAD.size:
        return None
    length, kind, version = HEAD.unpack_from(data)
    if not HEAD.size <= length <= FRAME_MAX or version != VERSION:
        raise ProtocolError(f"a frame of {length} bytes, version {version}: check that the port is a gateway's, and its version")
    if len(data) < length:
        return None
    return kind, data[HEAD.size : length], data[length:]


# From the client.


@dataclass(frozen=True)
class Order:
    """Terms of an order. Prices are in price units."""

    side: Side
    quantity: int
    price: int = 0
    kind: OrderKind = OrderKind.LIMIT
    time_in_force: TimeInForce = TimeInForce.DAY
    self_trade: SelfTrade = SelfTrade.TRADES
    display: int = 0
    """Shares an iceberg shows at a time; 0 shows everything."""
    minimum: int = 0
    """Shares that must match at once; 0 for no such wish."""
    trigger: Union[int, None] = None
    """The price a stop order waits for."""
    until_ns: int = 0
    """When a good-till-date order expires, ns since 1970."""


@dataclass(frozen=True)
class Enter:
    """Enter an order."""

    client_order_id: int
    instrument: int
    order: Order

    def encode(self) -> bytes:
        name, terms = self.client_order_id, self.order
        codes = (self.instrument, terms.side, terms.kind, terms.time_in_force, terms.self_trade)
        if not (terms.display or terms.minimum or terms.until_ns or terms.trigger is not None):
            return frame(2, struct.pack("<QqQIBBBB", name, terms.price, terms.quantity, *codes))
        trigger = terms.trigger if terms.trigger is not None else 0
        head = struct.pack("<QqQQQqQ", name, terms.price, terms.quantity, terms.display, terms.minimum, trigger, terms.until_ns)
        return frame(7, head + struct.pack("<IBBBBB7x", *codes, terms.trigger is not None))


@dataclass(frozen=True)
class Amend:
    """Change price and total quantity (what is executed included) of the order entered as `target`."""

    client_order_id: int
    target: int
    price: int
    quantity: int

    def encode(self) -> bytes:
        return frame(3, struct.pack("<QQqQ", self.client_order_id, self.target, self.price, self.quantity))


@dataclass(frozen=True)
class Cancel:
    """Cancel the order entered as `target`."""

    client_order_id: int
    target: int

    def encode(self) -> bytes:
        return frame(4, struct.pack("<QQ", self.client_order_id, self.target))


@dataclass(frozen=True)
class MassCancel:
    """Cancel all orders of the member in `instrument` (0: everywhere), or only those of one side."""

    client_order_id: int
    instrument: int = 0
    side: Union[Side, None] = None

    def encode(self) -> bytes:
        return frame(5, struct.pack("<QIB3x", self.client_order_id, self.instrument, self.side or 0))


Request = Union[Enter, Amend, Cancel, MassCancel]


def answers(request: Request, update: object) -> bool:
    """Whether that is the answer to the request, or its rejection. A session that has resumed is told each shard's part of a
    `MassCancel` of instrument 0 first, with its number in that shard's stream; the answer has the total and no number."""
    if not isinstance(update, (Answer, Rejection)) or update.client_order_id != request.client_order_id:
        return False
    is_part = isinstance(update, Answer) and update.number != 0
    return not (is_part and isinstance(request, MassCancel) and request.instrument == 0)


def sign_on(
    member: int, session: int = 0, token: int = 0, journalled: bool = False, heartbeat_ms: int = 0, resuming: bool = False
) -> bytes:
    """The first frame of a connection."""
    flags = int(journalled) | int(resuming) << 1
    return frame(1, struct.pack("<IIQHI26x", member, flags, token, session, heartbeat_ms))


def guarded(session: int, number: int) -> int:
    """The client order id of that number in the guarded series of a session: the order is cancelled when the session ends."""
    if not 0 <= session < 1 << 15 or not 0 <= number < 1 << 48:
        raise ValueError(f"session {session}, number {number}: a session must be below 32,768, a number below 2**48")
    return (0x8000 | session) << 48 | number


def cancel_after(after_ms: int) -> bytes:
    """A dead man's timer: what the session guards is cancelled then, unless it is sent again before; 0 stops it."""
    return frame(19, struct.pack("<I4x", after_ms))


def ping(token: int) -> bytes:
    """Asks the gateway whether it is there."""
    return frame(6, struct.pack("<Q", token))


def proof(proven: bytes) -> bytes:
    """The answer to a `Challenge`: 64 bytes."""
    if len(proven) != 64:
        raise ValueError("a proof must have 64 bytes")
    return frame(26, proven)


def resume(shard: int, following: int) -> bytes:
    """Asks for the member's stream of a shard from number `following` on; 0: from now on."""
    return frame(18, struct.pack("<QH6x", following, shard))


def order_status_request(client_order_id: int = 0, order_id: int = 0) -> bytes:
    """Asks how an order of the member is, by its name or by its id; the other is 0."""
    if client_order_id and order_id:
        raise ValueError("give either the name or the id")
    return frame(27, struct.pack("<QQ", client_order_id, order_id))


class List(IntEnum):
    """What can be listed."""

    ORDERS = 1
    INSTRUMENTS = 2


def list_request(listed: List, instrument: int = 0, token: int = 0) -> bytes:
    """Asks for the member's orders that are in flight or work, or for instruments; of one instrument, or all (0)."""
    return frame(28, struct.pack("<QIB3x", token, instrument, listed))


def limits_request(token: int = 0) -> bytes:
    """Asks what the session may do, and how much of that is used."""
    return frame(29, struct.pack("<Q", token))


# From the gateway.


@dataclass(frozen=True)
class SignedOn:
    token: int
    gateway: int
    in_flight_max: int
    member: int
    heartbeat_ms: int


@dataclass(frozen=True)
class Challenge:
    """Prove who you are."""

    nonce: bytes
    gateway: int


@dataclass(frozen=True)
class Journalled:
    """The request will be ordered and executed."""

    client_order_id: int
    request_id: int


@dataclass(frozen=True)
class Answer:
    """The one answer to a request; committed."""

    client_order_id: int
    request_id: int
    order_id: int
    position: int
    executed: int
    remaining: int
    instrument: int
    shard: int
    status: Status
    reason: Union[Reason, int]
    """Its code, if a later version has added it."""
    flags: int
    events: int
    number: int = 0

    @property
    def is_repeat(self) -> bool:
        """Whether it repeats an earlier answer."""
        return bool(self.flags & 1)


@dataclass(frozen=True)
class Trade:
    """One of the member's orders traded. `role` 1: it was resting, 2: it was incoming."""

    client_order_id: int
    order_id: int
    position: int
    price: int
    quantity: int
    remaining: int
    instrument: int
    shard: int
    side: Side
    role: int
    index: int
    number: int = 0


@dataclass(frozen=True)
class Cancelled:
    """Shares of one of the member's orders were cancelled."""

    client_order_id: int
    order_id: int
    position: int
    quantity: int
    instrument: int
    shard: int
    cause: int
    side: Side
    price: int
    """Where the order rests when they leave; its limit if it is not on the book, 0 for a market order."""
    number: int = 0


@dataclass(frozen=True)
class Rejection:
    """A gateway did not take a request in; its name (0 if it could not be read) is still free."""

    client_order_id: int
    reason: Union[Reason, int]


@dataclass(frozen=True)
class Pong:
    token: int


@dataclass(frozen=True)
class News:
    """One of the member's orders did something that nobody asked for just now."""

    client_order_id: int
    order_id: int
    position: int
    price: int
    remaining: int
    shown: int
    instrument: int
    shard: int
    side: Side
    change: int
    number: int = 0


@dataclass(frozen=True)
class Busted:
    """A trade of one of the member's orders was declared void."""

    client_order_id: int
    order_id: int
    position: int
    traded_at: int
    price: int
    quantity: int
    instrument: int
    shard: int
    index: int
    number: int = 0


@dataclass(frozen=True)
class Resumed:
    """All that was missed in a shard has been told; `following` is the number of the next message."""

    following: int
    shard: int
    reason: Union[Reason, int]


class OrderState(IntEnum):
    """What became of an order."""

    UNKNOWN = 0
    IN_FLIGHT = 1
    WORKING = 2
    ENDED = 3


@dataclass(frozen=True)
class OrderStatus:
    """How an order is, as far as the gateway has read its shard: what lies before `next_position` is counted in."""

    client_order_id: int
    order_id: int
    next_position: int
    remaining: int
    instrument: int
    shard: int
    state: OrderState
    side: int
    executed: int


@dataclass(frozen=True)
class InstrumentStatus:
    """An instrument, its rules and how it trades, as far as the gateway has read its shard. 0 means no limit where that makes sense."""

    symbol: str
    next_position: int
    lot: int
    quantity_max: int
    value_max: int
    price_min: int
    price_max: int
    last: Union[int, None]
    reference: Union[int, None]
    call_ns: int
    instrument: int
    orders_max: int
    static_band: int
    dynamic_band: int
    shard: int
    phase: int
    is_quarantined: bool
    tick_rows: int


@dataclass(frozen=True)
class TickRow:
    """A row of an instrument's tick table: the smallest price step from a price up to that of the next row."""

    start: int
    tick: int
    instrument: int


@dataclass(frozen=True)
class ListEnd:
    """All of a list has been told, or with a `reason` nothing of it is."""

    token: int
    count: int
    instrument: int
    listed: List
    reason: Union[Reason, int]


@dataclass(frozen=True)
class OwnLimits:
    """What the session may do (limits: 0 for none), and what is used of it."""

    token: int
    next_position: int
    quantity_max: int
    value_max: int
    position_max: int
    member: int
    rights: int
    collar: int
    orders_max: int
    rate_max: int
    burst_max: int
    orders: int
    in_flight: int
    in_flight_max: int
    session: int


Update = Union[
    SignedOn, Challenge, Journalled, Answer, Trade, Cancelled, Rejection, Pong, News, Busted, Resumed, OrderStatus,
    InstrumentStatus, TickRow, ListEnd, OwnLimits,
]  # fmt: skip


class _Body:
    """The fields of a body, one after the other; what an earlier gateway did not send is 0 from `needed` bytes on."""

    def __init__(self, body: bytes, needed: int) -> None:
        if len(body) < needed:
            raise ProtocolError(f"a message is cut short: {len(body)} bytes, {needed} at least")
        self.body = body

    def take(self, layout: str) -> tuple[int, ...]:
        taken = struct.unpack_from("<" + layout, self.body)
        self.body = self.body[struct.calcsize("<" + layout) :]
        return taken

    def number(self) -> int:
        return int(self.take("Q")[0]) if len(self.body) >= 8 else 0


def decode(kind: int, body: bytes) -> Union[Update, None]:
    """The message of that body; None if a later version has added its kind. Raises ProtocolError."""
    decoder = _DECODERS.get(kind)
    if decoder is None:
        return None
    try:
        return decoder(body)
    except ValueError as wrong:
        raise ProtocolError(f"message {kind}: {wrong}") from wrong


def _signed_on(body: bytes) -> Update:
    return SignedOn(*_Body(body, 24).take("QHHII"))


def _journalled(body: bytes) -> Update:
    return Journalled(*_Body(body, 16).take("QQ"))


def _answer(body: bytes) -> Update:
    fields = _Body(body, 64)
    name, request, order, position, executed, remaining = fields.take("QQQQQQ")
    instrument, shard, status, reason, flags, events = fields.take("IHBBII")
    return Answer(
        name, request, order, position, executed, remaining, instrument, shard, Status(status), known(reason), flags, events,
        fields.number(),
    )  # fmt: skip


def _trade(body: bytes) -> Update:
    fields = _Body(body, 64)
    name, order, position, at, quantity, remaining = fields.take("QQQqQQ")
    instrument, shard, side, role, index = fields.take("IHBBH6x")
    return Trade(
        name, order, position, at, quantity, remaining, instrument, shard, Side(side), role, index, fields.number()
    )


def _cancelled(body: bytes) -> Update:
    fields = _Body(body, 56)
    name, order, position, quantity, instrument, shard, cause, side, number, at = fields.take("QQQQIHBBQq")
    return Cancelled(name, order, position, quantity, instrument, shard, cause, Side(side), at, number)


def _rejection(body: bytes) -> Update:
    name, reason = _Body(body, 16).take("QB")
    return Rejection(name, known(reason))


def _pong(body: bytes) -> Update:
    return Pong(*_Body(body, 8).take("Q"))


def _news(body: bytes) -> Update:
    fields = _Body(body, 56)
    name, order, position, at, remaining, shown, instrument, shard, side, change = fields.take("QQQqQQIHBB")
    return News(
        name, order, position, at, remaining, shown, instrument, shard, Side(side), change, fields.number()
    )


def _busted(body: bytes) -> Update:
    fields = _Body(body, 56)
    name, order, position, traded_at, at, quantity, instrument, shard, index = fields.take("QQQQqQIHH")
    return Busted(name, order, position, traded_at, at, quantity, instrument, shard, index, fields.number())


def _challenge(body: bytes) -> Update:
    (gateway,) = _Body(body[32:], 2).take("H")
    return Challenge(body[:32], gateway)


def _resumed(body: bytes) -> Update:
    next_number, shard, reason = _Body(body, 24).take("QHB")
    return Resumed(next_number, shard, known(reason))


def _order_status(body: bytes) -> Update:
    fields = _Body(body, 40)
    name, order, next_position, remaining, instrument, shard, state, side = fields.take("QQQQIHBB")
    executed = fields.number()
    return OrderStatus(name, order, next_position, remaining, instrument, shard, OrderState(state), side, executed)


def _list_end(body: bytes) -> Update:
    token, count, instrument, listed, reason = _Body(body, 24).take("QIIBB")
    return ListEnd(token, count, instrument, List(listed), known(reason))


def _instrument_status(body: bytes) -> Update:
    symbol = body[:16].rstrip(b"\0").decode("ascii")
    fields = _Body(body[16:], 96)
    next_position, lot, quantity_max, value_max, price_min, price_max = fields.take("QQQQqq")
    last, reference, call_ns, instrument, orders_max = fields.take("qqQII")
    static_band, dynamic_band, shard, phase, flags, tick_rows = fields.take("IIHBBB")
    return InstrumentStatus(
        symbol, next_position, lot, quantity_max, value_max, price_min, price_max,
        last if flags & 1 else None, reference if flags & 2 else None, call_ns, instrument, orders_max,
        static_band, dynamic_band, shard, phase, bool(flags & 4), tick_rows,
    )  # fmt: skip


def _tick_row(body: bytes) -> Update:
    return TickRow(*_Body(body, 24).take("qqI"))


def _own_limits(body: bytes) -> Update:
    return OwnLimits(*_Body(body, 80).take("QQQQQIIIIIIIIHH"))


_DECODERS = {
    129: _signed_on,
    130: _journalled,
    131: _answer,
    132: _trade,
    133: _cancelled,
    134: _rejection,
    135: _pong,
    136: _news,
    137: _busted,
    138: _challenge,
    139: _resumed,
    146: _order_status,
    147: _list_end,
    149: _instrument_status,
    150: _tick_row,
    151: _own_limits,
}
