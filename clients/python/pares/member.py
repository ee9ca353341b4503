"""A member that goes on when its gateway is lost."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Union

from . import protocol
from .connection import Address, Connection, Lost, Rejected
from .protocol import Answer, Rejection, Request, Update
from .reasons import Reason

PAUSE = 0.05
"""Seconds before all gateways are tried again. It doubles each time."""
PAUSE_MAX = 1.0
"""And is never longer."""
FULL = (Reason.TOO_MANY_CONNECTIONS, Reason.TOO_MANY_SESSIONS)
"""What a gateway says to a sign-on that it has no place for."""


class Member:
    """Connects to whichever gateway is there and repeats what is unanswered, in the order in which it was sent.

    `connect` makes a connection to an address: `lambda address: Connection(address, member=7, tls=context)`. If it raises
    `Lost`, `TimeoutError`, or `Rejected` since the gateway is full, the next address is tried, and then all of them again after a pause, for
    at most `patience` seconds. Then that is raised, and everything else at once: a wrong key does not become right.
    """

    def __init__(
        self, addresses: Sequence[Address], connect: Callable[[Address], Connection], patience: float = 30.0
    ) -> None:
        self._addresses = list(addresses)
        self._connect = connect
        self._patience = patience
        self._at = 0
        self._open: dict[int, Request] = {}
        self.repeated = 0
        """Requests sent again so far."""
        self.connection = self._connected()

    @property
    def unanswered(self) -> list[Request]:
        """What is sent and not answered, in the order in which it was sent."""
        return list(self._open.values())

    def send(self, *requests: Request) -> None:
        """Sends requests; they are repeated until they are answered."""
        for request in requests:
            self._open.setdefault(request.client_order_id, request)
        try:
            self.connection.send(*requests)
        except Lost:
            self._come_back()

    def receive(self, timeout: Union[float, None] = None) -> Union[Update, None]:
        """The next update; None if none comes in time, or the gateway was lost and another one found."""
        try:
            update = self.connection.receive(timeout)
        except Lost:
            self._come_back()
            return None
        if isinstance(update, (Answer, Rejection)):
            request = self._open.get(update.client_order_id)
            if request is not None and protocol.answers(request, update):
                del self._open[update.client_order_id]
        return update

    def submit(self, request: Request, on_update: Callable[[Update], None] = lambda _: None) -> Answer:
        """Sends a request and waits for its answer, through however many gateways. Other updates go to `on_update`.
        Raises `Rejected`, and `TimeoutError` after the patience; the request then stays unanswered."""
        self.send(request)
        deadline = time.monotonic() + self._patience
        while time.monotonic() < deadline:
            update = self.receive(min(1.0, self._patience))
            if update is not None and not protocol.answers(request, update):
                on_update(update)
            elif isinstance(update, Rejection):
                raise Rejected(update.reason)
            elif isinstance(update, Answer):
                return update
        raise TimeoutError("no answer in time: the client repeats the request when it finds a gateway")

    def give_up(self, client_order_id: int) -> None:
        """Repeats that request no more. It may have been taken in all the same: `order_status` says so, and a `Cancel` sent after it ends it."""
        self._open.pop(client_order_id, None)

    def close(self) -> None:
        """Ends the connection."""
        self.connection.close()

    def _come_back(self) -> None:
        self.connection.close()
        deadline = time.monotonic() + self._patience
        while True:
            self.connection = self._connected()
            try:
                self.connection.send(*self._open.values())
                self.repeated += len(self._open)
                return
            except Lost:
                if time.monotonic() > deadline:
                    raise
                self._at += 1
                time.sleep(PAUSE)

    def _connected(self) -> Connection:
        deadline = time.monotonic() + self._patience
        tried = 0
        while True:
            address = self._addresses[self._at % len(self._addresses)]
            try:
                return self._connect(address)
            except (Lost, TimeoutError, Rejected) as error:
                passes = not isinstance(error, Rejected) or error.reason in FULL
                if not passes or time.monotonic() > deadline:
                    raise
            self._at += 1
            tried += 1
            if tried % len(self._addresses) == 0:
                rounds = tried // len(self._addresses)
                time.sleep(min(PAUSE * 2 ** min(rounds - 1, 8), PAUSE_MAX))
