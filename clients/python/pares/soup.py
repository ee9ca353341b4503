"""A replayer over TCP: SoupBinTCP (docs/protocols/market-data-consumers.md, *Over TCP*). Nothing here waits."""

from __future__ import annotations

import selectors
import socket
import struct
from dataclasses import dataclass
from enum import Enum

from .market import Books
from .protocol import ProtocolError

Address = tuple[str, int]

LENGTH = struct.Struct(">H")
BEAT = 1.0
"""A replayer hears from this end this often, seconds."""
SILENCE = 5.0
"""A replayer that says nothing for so long is given up, seconds."""


class Purpose(Enum):
    """What a replayer is called for."""

    HEAD = 1
    """Which session is on, and how far it is."""
    SNAPSHOT = 2
    REPLAY = 3


@dataclass(frozen=True)
class Said:
    """What a replayer says: A accepted, J rejected, S the next message, G end of the snapshot, H nothing, Z end of the session."""

    kind: str
    session: str = ""
    number: int = 0
    message: bytes = b""


def packet(kind: str, payload: bytes = b"") -> bytes:
    """A packet of SoupBinTCP."""
    return LENGTH.pack(len(payload) + 1) + kind.encode("ascii") + payload


def login(purpose: Purpose, session: str, number: int) -> bytes:
    """Asks for messages from `number` on (0: from the next one), or for a snapshot."""
    name = "SNAP" if purpose == Purpose.SNAPSHOT else "REPLAY"
    return packet("L", f"{name:<6}{'':<10}{session:<10}{number:>20}".encode("ascii"))


def split(data: bytes) -> tuple[list[tuple[str, bytes]], bytes]:
    """The whole packets of a stream: kind, payload; and what is left. Raises `ProtocolError`."""
    packets, at = [], 0
    while len(data) - at >= LENGTH.size:
        (length,) = LENGTH.unpack_from(data, at)
        if length == 0:
            raise ProtocolError("a packet has no kind")
        end = at + LENGTH.size + length
        if end > len(data):
            break
        packets.append((chr(data[at + 2]), data[at + 3 : end]))
        at = end
    return packets, data[at:]


def _number(text: bytes) -> int:
    digits = text.strip(b" ")
    if not digits.isdigit() or len(digits) > 20:
        raise ProtocolError(f"not a number: {text!r}")
    return int(digits)


class Call:
    """A connection to a replayer, for one purpose."""

    def __init__(self, address: Address, purpose: Purpose, session: str, number: int, now: float) -> None:
        self.purpose = purpose
        self.session = ""
        """The session, once it is accepted."""
        self.books = Books()
        """Those of a snapshot."""
        self.has_sent = False
        self._next = 0
        self._said = self._heard = now
        self._output = login(purpose, session, number)
        self._input = b""
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        self.socket.setblocking(False)
        self.socket.connect_ex(address)

    def close(self) -> None:
        """Ends the call."""
        if self.has_sent:
            try:
                self.socket.send(packet("O"))
            except OSError:
                pass
        self.socket.close()

    def keep(self, now: float) -> bool:
        """Says that this end is there, if it is time to. Whether the other end is silent for too long."""
        if self.has_sent and now - self._said >= BEAT:
            self._said = now
            try:
                self.socket.send(packet("R"))
            except OSError:
                return True
        return now - self._heard > SILENCE

    def ready(self, mask: int, now: float) -> list[Said]:
        """The socket can be read or written. Raises `OSError` if the replayer is not there any more, `ProtocolError` if it is none."""
        if mask & selectors.EVENT_WRITE and self._output:
            sent = self.socket.send(self._output)
            self._output = self._output[sent:]
            self.has_sent = not self._output
        if not mask & selectors.EVENT_READ:
            return []
        try:
            data = self.socket.recv(1 << 16)
        except BlockingIOError:
            return []
        if not data:
            raise ConnectionError("the replayer closed the connection")
        self._heard = now
        packets, self._input = split(self._input + data)
        return [said for kind, payload in packets for said in self._read(kind, payload)]

    def _read(self, kind: str, payload: bytes) -> list[Said]:
        if kind == "A" and len(payload) == 30:
            self.session, self._next = payload[:10].decode("latin-1"), _number(payload[10:])
            return [Said("A", self.session, self._next)]
        if kind == "S" and self.purpose == Purpose.SNAPSHOT and payload[:1] == b"G":
            return [Said("G", self.session, _number(payload[1:]))]
        if kind == "S" and self.purpose == Purpose.SNAPSHOT:
            self.books.on_message(payload)
            return []
        if kind == "S":
            self._next += 1
            return [Said("S", self.session, self._next - 1, payload)]
        if kind in ("J", "H", "Z"):
            return [Said(kind)]
        if kind == "+":
            return []
        raise ProtocolError(f"a packet of kind {kind!r}, {len(payload)} bytes")
