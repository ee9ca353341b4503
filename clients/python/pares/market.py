"""Market data as messages and books (docs/protocols/market-data-consumers.md): what comes in packets, whichever way it came.

Books are built as the page says: an order's place in its queue is its reference, and what fits nothing is counted and changes nothing.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from typing import Union

from .protocol import ProtocolError, Side


@dataclass(frozen=True)
class Head:
    """What every message begins with: the instrument, and nanoseconds since midnight UTC."""

    locate: int
    time_ns: int


@dataclass(frozen=True)
class SystemEvent:
    """The session begins (O) or ends (C)."""

    head: Head
    event: str


@dataclass(frozen=True)
class Directory:
    """An instrument."""

    head: Head
    symbol: str
    round_lot: int


@dataclass(frozen=True)
class TradingAction:
    """An instrument enters a phase: H halted or closed, Q a call, T trading; `reason` says which."""

    head: Head
    symbol: str
    state: str
    reason: str


@dataclass(frozen=True)
class AddOrder:
    """An order is displayed."""

    head: Head
    reference: int
    side: Side
    shares: int
    symbol: str
    price: int


@dataclass(frozen=True)
class Executed:
    """A displayed order traded, at its price."""

    head: Head
    reference: int
    shares: int
    match_number: int


@dataclass(frozen=True)
class ExecutedAt:
    """A displayed order traded at another price, or in an auction, whose message prints the trade."""

    head: Head
    reference: int
    shares: int
    match_number: int
    is_printable: bool
    price: int


@dataclass(frozen=True)
class Reduced:
    """A displayed order displays less."""

    head: Head
    reference: int
    shares: int


@dataclass(frozen=True)
class Deleted:
    """An order is displayed no more."""

    head: Head
    reference: int


@dataclass(frozen=True)
class Replaced:
    """A displayed order changed and joined its queue anew."""

    head: Head
    original: int
    reference: int
    shares: int
    price: int


@dataclass(frozen=True)
class HiddenTrade:
    """A trade with shares that were not displayed."""

    head: Head
    side: Side
    shares: int
    symbol: str
    price: int
    match_number: int


@dataclass(frozen=True)
class Cross:
    """An auction."""

    head: Head
    shares: int
    symbol: str
    price: int
    match_number: int
    cross: str


@dataclass(frozen=True)
class Broken:
    """A trade was declared void."""

    head: Head
    match_number: int


@dataclass(frozen=True)
class Imbalance:
    """What an auction would do. `direction` O: nothing."""

    head: Head
    paired: int
    imbalance: int
    direction: str
    symbol: str
    price: int
    cross: str


Message = Union[
    SystemEvent, Directory, TradingAction, AddOrder, Executed, ExecutedAt, Reduced, Deleted, Replaced, HiddenTrade, Cross,
    Broken, Imbalance,
]  # fmt: skip

HEAD = struct.Struct(">BHH6s")
"""Kind, stock locate, tracking number, time."""
LAYOUTS = {
    "S": struct.Struct(">c"),
    "R": struct.Struct(">8sccIcc2scccccIc"),
    "H": struct.Struct(">8scc4s"),
    "A": struct.Struct(">QcI8sI"),
    "E": struct.Struct(">QIQ"),
    "C": struct.Struct(">QIQcI"),
    "X": struct.Struct(">QI"),
    "D": struct.Struct(">Q"),
    "U": struct.Struct(">QQII"),
    "P": struct.Struct(">QcI8sIQ"),
    "Q": struct.Struct(">Q8sIQc"),
    "B": struct.Struct(">Q"),
    "I": struct.Struct(">QQc8sIIIcc"),
}
"""What follows the head, by kind."""


def _text(raw: bytes) -> str:
    return raw.decode("latin-1").rstrip(" ")


def _side(raw: bytes) -> Side:
    if raw not in (b"B", b"S"):
        raise ProtocolError(f"a side must be B or S, not {raw!r}")
    return Side.BUY if raw == b"B" else Side.SELL


def decode(message: bytes) -> Message:
    """The message that is all of these bytes. Raises `ProtocolError`."""
    if len(message) < HEAD.size:
        raise ProtocolError(f"a message is cut short: {len(message)} bytes")
    kind, locate, _, time = HEAD.unpack_from(message)
    layout = LAYOUTS.get(chr(kind))
    if layout is None or len(message) != HEAD.size + layout.size:
        raise ProtocolError(f"not a message: kind {chr(kind)!r}, {len(message)} bytes")
    head = Head(locate, int.from_bytes(time, "big"))
    return _body(chr(kind), head, layout.unpack_from(message, HEAD.size))


def _body(kind: str, head: Head, of: tuple) -> Message:  # type: ignore[type-arg]
    if kind == "S":
        return SystemEvent(head, _text(of[0]))
    if kind == "R":
        return Directory(head, _text(of[0]), of[3])
    if kind == "H":
        return TradingAction(head, _text(of[0]), _text(of[1]), _text(of[3]))
    if kind == "A":
        return AddOrder(head, of[0], _side(of[1]), of[2], _text(of[3]), of[4])
    if kind == "E":
        return Executed(head, *of)
    if kind == "C":
        return ExecutedAt(head, of[0], of[1], of[2], of[3] == b"Y", of[4])
    if kind == "X":
        return Reduced(head, *of)
    if kind == "D":
        return Deleted(head, *of)
    if kind == "U":
        return Replaced(head, *of)
    if kind == "P":
        return HiddenTrade(head, _side(of[1]), of[2], _text(of[3]), of[4], of[5])
    if kind == "Q":
        return Cross(head, of[0], _text(of[1]), of[2], of[3], _text(of[4]))
    if kind == "B":
        return Broken(head, *of)
    return Imbalance(head, of[0], of[1], _text(of[2]), _text(of[3]), of[5], _text(of[7]))


@dataclass
class _Displayed:
    """An order on a book."""

    locate: int
    side: Side
    price: int
    shares: int


@dataclass
class Book:
    """One instrument."""

    symbol: str = ""
    state: str = ""
    reason: str = ""
    last: Union[tuple[int, int], None] = None
    """The last trade: price, shares."""
    indicative: Union[tuple[int, int], None] = None
    """In a call, what its auction would do: price, shares."""
    _orders: dict[int, _Displayed] = field(default_factory=dict)

    def orders(self, side: Side) -> list[tuple[int, int, int]]:
        """The displayed orders of a side, as they would trade: price, shares, reference."""
        sign = -1 if side == Side.BUY else 1
        found = [(one.price, one.shares, reference) for reference, one in self._orders.items() if one.side == side]
        return sorted(found, key=lambda one: (sign * one[0], one[2]))

    def levels(self, side: Side) -> list[tuple[int, int]]:
        """The prices of a side, best first, each with its shares."""
        levels: dict[int, int] = {}
        for price, shares, _ in self.orders(side):
            levels[price] = levels.get(price, 0) + shares
        return list(levels.items())


class Books:
    """The books of a shard, as far as its messages have come."""

    def __init__(self) -> None:
        self.by_locate: dict[int, Book] = {}
        self.misfits = 0
        """Messages that fitted nothing. Any at all means that something was missed, or is wrong."""
        self._orders: dict[int, _Displayed] = {}

    def find(self, symbol: str) -> Union[Book, None]:
        """The book of an instrument."""
        return next((book for book in self.by_locate.values() if book.symbol == symbol), None)

    def on_message(self, message: bytes) -> None:
        """The next message of the session."""
        try:
            fits = self._apply(decode(message))
        except ProtocolError:
            fits = False
        self.misfits += not fits

    def _apply(self, message: Message) -> bool:
        """Whether it fits."""
        if isinstance(message, (SystemEvent, Broken)):
            return True
        locate = message.head.locate
        if isinstance(message, Directory):
            self.by_locate.setdefault(locate, Book()).symbol = message.symbol
            return True
        book = self.by_locate.get(locate)
        return book is not None and self._apply_to(book, locate, message)

    def _apply_to(self, book: Book, locate: int, message: Message) -> bool:
        if isinstance(message, AddOrder):
            return self._add(message.reference, _Displayed(locate, message.side, message.price, message.shares))
        if isinstance(message, Executed):
            order = self._orders.get(message.reference)
            fits = self._take_off(message.reference, message.shares)
            if fits and order:
                book.last = (order.price, message.shares)
            return fits
        if isinstance(message, ExecutedAt):
            fits = self._take_off(message.reference, message.shares)
            if fits and message.is_printable:
                book.last = (message.price, message.shares)
            return fits
        if isinstance(message, Reduced):
            return self._take_off(message.reference, message.shares)
        if isinstance(message, Deleted):
            return self._remove(message.reference) is not None
        if isinstance(message, Replaced):
            order = self._remove(message.original)
            return order is not None and self._add(
                message.reference, _Displayed(order.locate, order.side, message.price, message.shares)
            )
        if isinstance(message, TradingAction):
            book.state, book.reason, book.indicative = message.state, message.reason, None
        elif isinstance(message, (HiddenTrade, Cross)):
            book.last = (message.price, message.shares)
        elif isinstance(message, Imbalance):
            book.indicative = None if message.direction == "O" else (message.price, message.paired)
        return True

    def _add(self, reference: int, order: _Displayed) -> bool:
        if order.shares == 0 or reference in self._orders:
            return False
        self._orders[reference] = self.by_locate[order.locate]._orders[reference] = order
        return True

    def _remove(self, reference: int) -> Union[_Displayed, None]:
        order = self._orders.pop(reference, None)
        if order is not None:
            del self.by_locate[order.locate]._orders[reference]
        return order

    def _take_off(self, reference: int, shares: int) -> bool:
        order = self._orders.get(reference)
        if order is None or shares > order.shares:
            return False
        order.shares -= shares
        if order.shares == 0:
            self._remove(reference)
        return True
