"""A receiver of market data (docs/protocols/market-data-consumers.md): two lines become one sequence, and that becomes books.

```python
feed = Feed(shard=1, lines=[("127.0.0.1", 17101), ("127.0.0.1", 27101)], replayers=[("127.0.0.1", 7300), ("127.0.0.1", 7301)])
while True:
    for event in feed.poll(1.0):
        ...
    if feed.state == FeedState.CURRENT: ...  # feed.books.find("ALFA")
```

`Sequence` puts packets in order, `Feed` has the sockets. What packets say is a claim, since anybody can send one: a session counts once a
replayer has said that it is on, and a gap that no replayer knows of is dropped.
"""

from __future__ import annotations

import heapq
import re
import selectors
import socket
import struct
import time
from collections.abc import Sequence as Many
from dataclasses import dataclass
from enum import Enum
from typing import Union

from .market import Books
from .protocol import ProtocolError
from .soup import Address, Call, Purpose, Said

HEADER = struct.Struct(">10sQH")
"""Session, number of the first message, how many."""
LENGTH = struct.Struct(">H")
END_OF_SESSION = 0xFFFF

EARLY_MAX = 65_536
"""Messages that wait for earlier ones."""
PATIENCE = 0.001
"""How long the other line may take to bring what is missing, seconds."""
PAUSE_MAX = 1.0
"""The longest pause between two requests for the same, seconds."""
STALE = 3.0
"""Without a packet for so long nobody knows how far the session is, seconds."""
VAIN = 3.0
"""What is asked for by UDP in vain for so long is asked for by TCP, seconds."""
ASKED_MAX = 128
"""Messages asked for at once: about a packet of them."""
SESSION = re.compile(r"[0-9a-f]{10}")


@dataclass(frozen=True)
class Packet:
    """Messages of a session, the first of which has the number `first`; none in a heartbeat, and at the end of the session."""

    session: str
    first: int
    messages: tuple[bytes, ...]
    ends: bool

    @property
    def following(self) -> int:
        """The number after the last one."""
        return self.first + len(self.messages)


def read_packet(data: bytes) -> Packet:
    """The packet that is all of these bytes. Raises `ProtocolError`."""
    if len(data) < HEADER.size:
        raise ProtocolError("a packet is shorter than its header")
    session, first, count = HEADER.unpack_from(data)
    ends = count == END_OF_SESSION
    at, messages = HEADER.size, []
    for _ in range(0 if ends else count):
        if at + LENGTH.size > len(data):
            raise ProtocolError("a packet is shorter than its length field")
        (length,) = LENGTH.unpack_from(data, at)
        at += LENGTH.size + length
        messages.append(data[at - length : at])
    if at != len(data) or first + len(messages) >= 2**64 - 1:
        raise ProtocolError("a packet does not match its length field")
    return Packet(session.decode("latin-1"), first, tuple(messages), ends)


def shard_of(session: str) -> Union[int, None]:
    """The shard that a session's name begins with; None if it is no such name."""
    return int(session[:4], 16) if SESSION.fullmatch(session) else None


class FeedState(Enum):
    """What the books are worth."""

    CURRENT = "current"
    """They hold all that was sent, as far as it was told in the last three seconds."""
    GAP = "gap"
    """Messages are missing, and asked for by UDP."""
    RECOVERING = "recovering"
    """Replayers are asked by TCP: the books are empty, or old."""
    STALE = "stale"
    """Nobody was heard for three seconds: nobody knows what is missing."""
    OVER = "over"
    """They hold all of the session, which has ended."""


@dataclass(frozen=True)
class Begun:
    """A session begins, with empty books."""

    session: str


@dataclass(frozen=True)
class Received:
    """The next message."""

    number: int
    message: bytes


@dataclass(frozen=True)
class Reset:
    """The books were replaced by a snapshot; the next message has this number, and those before it are not told any more."""

    following: int


Event = Union[Begun, Received, Reset]


class Sequence:
    """Packets of one session, of any line, become messages, each once and in order. `following` is the number of the next one; None while
    nobody knows where to begin."""

    def __init__(self, session: str, following: Union[int, None]) -> None:
        self.session = session
        self.following = following
        self.known = following or 0
        """The highest number known of, plus 1."""
        self.duplicates = 0
        self.heard = float("-inf")
        self._end: Union[int, None] = None
        self._early: dict[int, bytes] = {}
        self._numbers: list[int] = []
        self._asking: Union[tuple[int, float, float], None] = None
        """From where, when, and the pause after that."""
        self._since = float("inf")

    def on_packet(self, packet: Packet, now: float) -> list[Received]:
        """A packet of the session. What can be handed out now."""
        self.heard = now
        self.known = max(self.known, packet.following)
        if packet.ends:
            self._end = packet.first
        elif self._end is not None and packet.following > self._end:
            # It goes on: that was not its end.
            self._end = None
        for number, message in enumerate(packet.messages, packet.first):
            if (self.following is not None and number < self.following) or number in self._early:
                self.duplicates += 1
            elif len(self._early) < EARLY_MAX:
                self._early[number] = message
                heapq.heappush(self._numbers, number)
        return self._take()

    def place(self, following: int) -> list[Received]:
        """A snapshot says where to go on."""
        self.following = following
        self.known = max(self.known, following)
        return self._take()

    def _take(self) -> list[Received]:
        taken = []
        while self.following is not None and self._numbers and self._numbers[0] <= self.following:
            number = heapq.heappop(self._numbers)
            message = self._early.pop(number)
            if number == self.following:
                taken.append(Received(number, message))
                self.following += 1
        return taken

    def missing(self) -> Union[tuple[int, int], None]:
        """The first numbers that are missing: from, and to without it."""
        if self.following is None:
            return None
        to = self._numbers[0] if self._numbers else self.known
        return (self.following, to) if self.following < to else None

    def ask(self, now: float) -> Union[bytes, None]:
        """The request that is due, if one is."""
        missing = self.missing()
        if missing is None:
            self._asking, self._since = None, float("inf")
            return None
        start, to = missing
        if self._asking is None:
            self._asking = (start, now + PATIENCE, PATIENCE)
            self._since = now
        elif self._asking[0] != start:
            # What was asked for came, and more is missing.
            self._asking = (start, now, PATIENCE)
            self._since = now
        _, due, pause = self._asking
        if now < due:
            return None
        self._asking = (start, now + pause, min(2 * pause, PAUSE_MAX))
        return HEADER.pack(self.session.encode("latin-1"), start, min(to - start, ASKED_MAX))

    def due(self) -> Union[float, None]:
        """When `ask` has something to ask."""
        if self.missing() is None:
            return None
        return self._asking[1] if self._asking else 0.0

    def is_vain(self, now: float) -> bool:
        """Whether asking by UDP has brought nothing for long, or is hopeless."""
        missing = self.missing()
        return missing is not None and (now - self._since > VAIN or self.known - missing[0] > EARLY_MAX)

    def refute(self) -> None:
        """Nobody knows of what packets claimed: it is forgotten."""
        self._early, self._numbers = {}, []
        self.known = self.following or 0
        if self._end is not None and self._end > self.known:
            self._end = None
        self._asking, self._since = None, float("inf")

    def end(self) -> None:
        """A replayer says that nothing follows."""
        self._end = self.following

    def is_over(self) -> bool:
        """Whether all of the session was handed out, which has ended."""
        return self.following is not None and self._end is not None and self._end <= self.following and self.missing() is None


@dataclass
class Counts:
    """What came to nothing, and what was done about it."""

    malformed: int = 0
    """Packets that are none."""
    strange: int = 0
    """Packets of another session."""
    requests: int = 0
    """Requests by UDP."""
    snapshots: int = 0
    """Snapshots that replaced the books."""
    refuted: int = 0
    """Claims of packets that no replayer knew of."""
    failed_calls: int = 0
    """Replayers that were not there, refused, or broke off."""


class Feed:
    """The feed of one shard. `poll` does everything; nothing happens between two calls, so call it at least each second."""

    def __init__(
        self, shard: int, lines: Many[Address], replayers: Many[Address], interface: str = "0.0.0.0"
    ) -> None:
        self.shard = shard
        self.books = Books()
        self.counts = Counts()
        self._replayers = list(replayers)
        self._sequence: Union[Sequence, None] = None
        self._is_confirmed = False
        self._claim: Union[str, None] = None
        """A later session that packets were of."""
        self._call: Union[Call, None] = None
        self._turn = 0
        self._asked = 0
        """Replayers that were asked in vain, one after the other."""
        self._call_at = 0.0
        self._events: list[Event] = []
        self._selector = selectors.DefaultSelector()
        self._asker = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._asker.setblocking(False)
        self._sockets = [self._asker] + [_join(line, interface) for line in lines]
        for one in self._sockets:
            self._selector.register(one, selectors.EVENT_READ)
        self._has_lines = bool(lines)

    @property
    def state(self) -> FeedState:
        """What the books are worth now."""
        sequence = self._sequence
        if sequence is None or sequence.following is None or not self._is_confirmed or self._claim:
            return FeedState.RECOVERING
        if sequence.missing():
            return FeedState.GAP if self._call is None and self._has_lines else FeedState.RECOVERING
        if sequence.is_over():
            return FeedState.OVER
        return FeedState.STALE if time.monotonic() - sequence.heard > STALE else FeedState.CURRENT

    @property
    def place(self) -> Union[tuple[str, int], None]:
        """The session, and the number of its next message; None while nobody knows."""
        sequence = self._sequence
        return None if sequence is None or sequence.following is None else (sequence.session, sequence.following)

    def poll(self, timeout: float) -> list[Event]:
        """Waits at most so long, often less, and gives what happened, in order; that may be nothing."""
        self._act()
        due = self._sequence.due() if self._sequence else None
        wait = timeout if due is None else min(timeout, max(due - time.monotonic(), 0.0))
        for key, mask in self._selector.select(0.0 if self._events else min(wait, 0.1)):
            if key.data is not None:
                self._on_call(key.data, mask)
            else:
                self._drain(key.fileobj)  # type: ignore[arg-type]
        self._act()
        events, self._events = self._events, []
        return events

    def close(self) -> None:
        """Closes all sockets."""
        self._hang_up()
        for one in self._sockets:
            one.close()
        self._selector.close()

    def _drain(self, source: socket.socket) -> None:
        for _ in range(256):
            try:
                data = source.recv(65_535)
            except OSError:
                return
            self.on_datagram(data)

    def on_datagram(self, data: bytes) -> None:
        """A packet, of either line or one that was asked for."""
        try:
            packet = read_packet(data)
        except ProtocolError:
            self.counts.malformed += 1
            return
        sequence = self._sequence
        if shard_of(packet.session) != self.shard or (sequence and packet.session < sequence.session):
            self.counts.strange += 1
        elif sequence is None or packet.session == sequence.session:
            self._listen(sequence or self._begin(packet.session, None), packet)
        elif sequence.is_over() and self._claim is None:
            # The next day: from its first message on, once a replayer says that it is.
            self._is_confirmed = False
            self._listen(self._begin(packet.session, 1), packet)
        else:
            self.counts.strange += 1
            self._claim = max(self._claim or "", packet.session)

    def _begin(self, session: str, following: Union[int, None]) -> Sequence:
        self._sequence = Sequence(session, following)
        self.books = Books()
        self._events.append(Begun(session))
        return self._sequence

    def _listen(self, sequence: Sequence, packet: Packet) -> None:
        self._hand_out(sequence.on_packet(packet, time.monotonic()))

    def _hand_out(self, received: list[Received]) -> None:
        for one in received:
            self.books.on_message(one.message)
        self._events.extend(received)

    def _act(self) -> None:
        """Asks and calls what is to be asked and called."""
        now, sequence = time.monotonic(), self._sequence
        request = sequence.ask(now) if sequence and self._has_lines else None
        if request:
            self.counts.requests += 1
            try:
                self._asker.sendto(request, self._replayers[self.counts.requests % len(self._replayers)])
            except OSError:
                pass
        if self._call is not None:
            if self._call.keep(now):
                return self._failed(now)
            # Over TCP all has come that was missing, and lines bring the rest.
            if self._call.purpose == Purpose.REPLAY and self._has_lines and sequence and not sequence.missing():
                self._asked = 0
                self._hang_up()
        elif now >= self._call_at and (purpose := self._purpose(now)):
            self._connect(purpose, now)

    def _purpose(self, now: float) -> Union[Purpose, None]:
        """What a replayer has to be called for."""
        sequence = self._sequence
        if sequence is None or sequence.following is None or self._claim:
            return Purpose.SNAPSHOT
        if not self._is_confirmed:
            return Purpose.HEAD
        if self._has_lines and not sequence.is_vain(now):
            return None
        if not self._has_lines and sequence.is_over():
            return Purpose.HEAD
        is_far = sequence.known - sequence.following > EARLY_MAX
        return Purpose.SNAPSHOT if is_far or self._asked >= len(self._replayers) else Purpose.REPLAY

    def _connect(self, purpose: Purpose, now: float) -> None:
        address = self._replayers[self._turn % len(self._replayers)]
        session, number = f"{self.shard:04x}", 1
        if purpose == Purpose.HEAD:
            number = 0
        if purpose == Purpose.REPLAY and self._sequence and self._sequence.following is not None:
            session, number = self._sequence.session, self._sequence.following
        try:
            self._call = Call(address, purpose, session, number, now)
        except OSError:
            return self._failed(now)
        self._selector.register(self._call.socket, selectors.EVENT_READ | selectors.EVENT_WRITE, self._call)

    def _hang_up(self) -> None:
        if self._call is not None:
            self._selector.unregister(self._call.socket)
            self._call.close()
            self._call = None

    def _failed(self, now: float) -> None:
        self.counts.failed_calls += 1
        self._next_replayer(now)

    def _next_replayer(self, now: float) -> None:
        """This replayer knows no more than is known here, or is not there: another one's turn."""
        self._hang_up()
        self._turn += 1
        self._asked += 1
        self._call_at = now + (0.05 if self._asked < len(self._replayers) else 0.25)

    def _on_call(self, call: Call, mask: int) -> None:
        now = time.monotonic()
        if call is not self._call:
            return
        try:
            said = call.ready(mask, now)
        except (OSError, ProtocolError):
            return self._failed(now)
        if call.has_sent:
            self._selector.modify(call.socket, selectors.EVENT_READ, call)
        for one in said:
            if call is not self._call:
                return
            self._on_said(call, one, now)

    def _on_said(self, call: Call, said: Said, now: float) -> None:
        if said.kind == "J":
            self._next_replayer(now)
        elif call.purpose == Purpose.SNAPSHOT:
            if said.kind == "G":
                self._on_snapshot(call, said.number, now)
        elif call.purpose == Purpose.HEAD:
            if said.kind == "A":
                self._on_head(said.session, said.number, now)
        else:
            self._on_replay(said, now)

    def _on_snapshot(self, call: Call, following: int, now: float) -> None:
        """All of a snapshot has come."""
        sequence, claim, session = self._sequence, self._claim, call.session
        self._hang_up()
        if sequence is None or session > sequence.session or sequence.following is None:
            sequence = Sequence(session, None) if sequence is None or session != sequence.session else sequence
            if self._sequence is not sequence:
                self._events.append(Begun(session))
            self._sequence = sequence
        elif session < sequence.session or following <= (sequence.following or 0):
            return self._is_no_further(now)
        self._claim = claim if claim and claim > session else None
        self._is_confirmed, self._asked = True, 0
        self.counts.snapshots += 1
        self.books = call.books
        self._events.append(Reset(following))
        if not self._has_lines:
            sequence.heard = now
        self._hand_out(sequence.place(following))

    def _is_no_further(self, now: float) -> None:
        """The replayer knows no more. When all of them do not, packets claimed what is not."""
        self._next_replayer(now)
        if self._asked < 2 * len(self._replayers) or self._sequence is None:
            return
        self._asked = 0
        if self._claim or self._sequence.missing():
            self.counts.refuted += 1
        self._claim = None
        self._sequence.refute()

    def _on_head(self, session: str, head: int, now: float) -> None:
        """A replayer says which session is on, and how far it is."""
        sequence = self._sequence
        if sequence is None or session == sequence.session:
            self._hang_up()
            self._is_confirmed, self._asked = True, 0
            if sequence is not None:
                sequence.known = max(sequence.known, head)
            self._call_at = now if self._has_lines else now + 0.25
        elif session > sequence.session:
            self._hang_up()
            self._claim = session
        else:
            self._next_replayer(now)
            if self._asked >= 2 * len(self._replayers) and not self._is_confirmed:
                # No replayer knows of this session: it is found again as at the start.
                self._sequence, self._asked = None, 0
                self.counts.refuted += 1

    def _on_replay(self, said: Said, now: float) -> None:
        sequence = self._sequence
        if sequence is None:
            return self._failed(now)
        if said.kind == "S":
            self._asked = 0
            self._listen(sequence, Packet(sequence.session, said.number, (said.message,), False))
        elif said.kind == "Z":
            sequence.end()
            self._next_replayer(now)
        elif said.kind == "H" and sequence.missing():
            # It has nothing more: what is missing it does not know of.
            self._next_replayer(now)
        elif said.kind in "AH" and not self._has_lines:
            sequence.heard = now


def _join(line: Address, interface: str) -> socket.socket:
    """A socket that a line's packets come to: a multicast group's, or one address's."""
    joined = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    joined.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8 << 20)
    group = socket.inet_aton(line[0])
    is_group = 224 <= group[0] < 240
    if is_group:
        joined.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    joined.bind(line)
    if is_group:
        joined.setsockopt(socket.IPPROTO_IP, socket.IP_ADD_MEMBERSHIP, group + socket.inet_aton(interface))
    joined.setblocking(False)
    return joined
