"""Client of the Pares order entry protocol (docs/protocols/order-entry.md).

`Connection` is one connection to one gateway. `Member` goes on when a gateway is lost: it connects to another one and
repeats, under the same names, what is unanswered; a repeat gets the first answer and is never executed twice.
"""

from .connection import Connection, Lost, Rejected
from .credentials import Credential, SharedKey, tls_context
from .member import Member
from .protocol import (
    Amend,
    Answer,
    Busted,
    Cancel,
    Cancelled,
    Enter,
    Journalled,
    MassCancel,
    News,
    Order,
    OrderKind,
    Pong,
    ProtocolError,
    Refusal,
    Request,
    Resumed,
    SelfTrade,
    Side,
    SignedOn,
    Status,
    TimeInForce,
    Trade,
    Update,
    guarded,
    price,
    reason_word,
)

__all__ = [
    "Amend",
    "Answer",
    "Busted",
    "Cancel",
    "Cancelled",
    "Connection",
    "Credential",
    "Enter",
    "Journalled",
    "Lost",
    "MassCancel",
    "Member",
    "News",
    "Order",
    "OrderKind",
    "Pong",
    "ProtocolError",
    "Refusal",
    "Rejected",
    "Request",
    "Resumed",
    "SelfTrade",
    "SharedKey",
    "Side",
    "SignedOn",
    "Status",
    "TimeInForce",
    "Trade",
    "Update",
    "guarded",
    "price",
    "reason_word",
    "tls_context",
]
