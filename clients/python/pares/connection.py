"""One connection to one gateway."""

from __future__ import annotations

import secrets
import socket
import ssl
import time
from collections import deque
from types import TracebackType
from typing import Union

from . import protocol
from .credentials import GATEWAYS_NAME, Credential, transcript
from .protocol import Answer, Challenge, List, Pong, Rejection, Request, SignedOn, Update
from .reasons import Reason, known, reason_word

Address = tuple[str, int]

HEARTBEAT_TOKEN = 2**64 - 1
"""The token of a heartbeat's ping, whose answer is not told."""


ENDED = (ssl.SSLEOFError, ssl.SSLZeroReturnError)
"""How TLS says that the other end is gone."""


class Lost(ConnectionError):
    """The connection is lost. What is unanswered may have been executed: repeat it, through any gateway."""


class NotTrusted(ConnectionError):
    """There is no TLS with this gateway: one end does not believe the other's certificate, or does not speak TLS. Another try ends alike."""


class Rejected(Exception):
    """The gateway did not take the request in. Its name is still free."""

    def __init__(self, reason: int, hint: str = "") -> None:
        self.word = reason_word(reason)
        super().__init__(f"{self.word}: {hint}" if hint else self.word)
        self.reason: Union[Reason, int] = known(reason)


class Connection:
    """A signed-on connection. `send` may be called again before the last answer is there.

    Raises `Lost` if the gateway is not there or goes, `Rejected` if it does not sign the member on, `ProtocolError` if it is
    no gateway, `TimeoutError` if nothing comes within `timeout` seconds (what was sent may be answered yet), `NotTrusted` if one end
    does not believe the other. A gateway that misses the client's certificate says so only when the sign-on is read.

    With `resuming`, nothing of the member's streams is told before `resume` asks for it.

    With a `heartbeat`, seconds, the gateway ends the connection, and so the session, if it hears nothing for three of them, and
    so does this end. It beats in `submit` and `receive`, which have to be called that often.
    """

    def __init__(
        self,
        address: Address,
        member: int,
        *,
        session: int = 0,
        credential: Union[Credential, None] = None,
        tls: Union[ssl.SSLContext, None] = None,
        server_name: str = GATEWAYS_NAME,
        timeout: float = 5.0,
        journalled: bool = False,
        heartbeat: float = 0.0,
        resuming: bool = False,
    ) -> None:
        self.timeout = timeout
        self._heartbeat = 0.0
        self._said = self._heard = time.monotonic()
        self._input = b""
        self._set_aside: deque[Update] = deque()
        self._socket = _connect(address, tls, server_name, timeout)
        try:
            self._sign_on(member, session, credential, (journalled, round(heartbeat * 1000), resuming))
        except BaseException:
            self.close()
            raise

    def _sign_on(
        self, member: int, session: int, credential: Union[Credential, None], wishes: tuple[bool, int, bool]
    ) -> None:
        token = secrets.randbits(64)
        self._send(protocol.sign_on(member, session, token, *wishes))
        while True:
            update = self._next(time.monotonic() + self.timeout)
            if isinstance(update, Challenge):
                if credential is None:
                    raise Rejected(Reason.NOT_SIGNED_ON, "the gateway requires a key: pass a `credential`")
                asked = transcript(update.nonce, update.gateway, session, member, token)
                self._send(protocol.proof(credential.prove(asked)))
            elif isinstance(update, Rejection):
                raise Rejected(update.reason)
            elif isinstance(update, SignedOn):
                self.signed_on = update
                self._heartbeat = update.heartbeat_ms / 1000
                return

    def send(self, *requests: Request) -> None:
        """Sends requests in one go, and does not wait for answers."""
        self._send(b"".join(request.encode() for request in requests))

    def submit(self, request: Request) -> Answer:
        """Sends a request and waits for its answer. Other updates are kept for `receive`. Raises `Rejected`."""
        self.send(request)
        deadline = time.monotonic() + self.timeout
        while True:
            update = self._next(deadline)
            if not protocol.answers(request, update):
                self._set_aside.append(update)
            elif isinstance(update, Rejection):
                raise Rejected(update.reason)
            elif isinstance(update, Answer):
                return update

    def receive(self, timeout: Union[float, None] = None) -> Union[Update, None]:
        """The next update; None if none comes within `timeout` seconds (at most its own, if not given)."""
        if self._set_aside:
            return self._set_aside.popleft()
        try:
            return self._next(time.monotonic() + (self.timeout if timeout is None else timeout))
        except TimeoutError:
            return None

    def ping(self, token: int = 0) -> None:
        """Asks the gateway whether it is there; `Pong` comes behind all that it sent before."""
        self._send(protocol.ping(token))

    def cancel_after(self, seconds: Union[float, None]) -> None:
        """A dead man's timer: what the session guards is cancelled then, unless this is called again before. None stops it."""
        self._send(protocol.cancel_after(0 if seconds is None else max(round(seconds * 1000), 1)))

    def order_status(self, client_order_id: int = 0, order_id: int = 0) -> None:
        """Asks how an order of the member is, by its name or by its id; `OrderStatus` comes, in the order of questions."""
        self._send(protocol.order_status_request(client_order_id, order_id))

    def request_list(self, listed: List, instrument: int = 0, token: int = 0) -> None:
        """Asks for the member's orders that are in flight or work, or for instruments; of one instrument, or all (0). They come as
        `OrderStatus`, or as `InstrumentStatus` with its `TickRow`s, then `ListEnd`. One list at a time."""
        self._send(protocol.list_request(listed, instrument, token))

    def own_limits(self, token: int = 0) -> None:
        """Asks what this session may do, and how much of that is used; `OwnLimits` comes."""
        self._send(protocol.limits_request(token))

    def resume(self, shard: int, following: int) -> None:
        """Asks for the member's stream of a shard from number `following` on. `Resumed` says that all has been told."""
        self._send(protocol.resume(shard, following))

    def close(self) -> None:
        """Ends the connection."""
        self._socket.close()

    def __enter__(self) -> Connection:
        return self

    def __exit__(
        self,
        kind: Union[type[BaseException], None],
        error: Union[BaseException, None],
        trace: Union[TracebackType, None],
    ) -> None:
        self.close()

    def _send(self, data: bytes) -> None:
        self._socket.settimeout(self.timeout)
        try:
            self._socket.sendall(data)
        except TimeoutError as error:
            # Nobody knows how much of a frame has gone: what follows it would be taken for its end.
            self.close()
            raise Lost("the gateway does not read") from error
        except ENDED as error:
            raise Lost(str(error)) from error
        except ssl.SSLError as error:
            raise NotTrusted(str(error)) from error
        except OSError as error:
            raise Lost(str(error)) from error

    def _next(self, deadline: float) -> Update:
        while True:
            found = protocol.split(self._input)
            if found is None:
                self._input += self._read(deadline)
                continue
            kind, body, self._input = found
            update = protocol.decode(kind, body)
            if update is not None and update != Pong(HEARTBEAT_TOKEN):
                return update

    def _beat(self, now: float) -> None:
        """Says that this end is there, if it is time to."""
        if now - self._heard > 3 * self._heartbeat:
            raise Lost("the gateway is silent")
        if now - self._said >= self._heartbeat:
            self._said = now
            self.ping(HEARTBEAT_TOKEN)

    def _read(self, deadline: float) -> bytes:
        now = time.monotonic()
        wake = deadline
        if self._heartbeat:
            self._beat(now)
            wake = min(deadline, self._said + self._heartbeat)
        # A timeout of 0 would make the socket one that does not wait, and its errors others.
        self._socket.settimeout(max(wake - now, 0.001))
        try:
            data = self._socket.recv(65_536)
        except TimeoutError:
            if wake < deadline:
                return b""
            raise
        except ENDED as error:
            raise Lost(str(error)) from error
        except ssl.SSLError as error:
            raise NotTrusted(str(error)) from error
        except OSError as error:
            raise Lost(str(error)) from error
        if not data:
            raise Lost("the gateway closed the connection")
        self._heard = time.monotonic()
        return data


def _connect(
    address: Address, tls: Union[ssl.SSLContext, None], server_name: str, timeout: float
) -> socket.socket:
    try:
        plain = socket.create_connection(address, timeout)
        plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return plain if tls is None else tls.wrap_socket(plain, server_hostname=server_name)
    except ENDED as error:
        raise Lost(f"{address[0]}:{address[1]}: {error}") from error
    except ssl.SSLError as error:
        raise NotTrusted(f"no TLS with {address[0]}:{address[1]}: {error}") from error
    except TimeoutError:
        raise
    except OSError as error:
        raise Lost(f"cannot reach a gateway at {address[0]}:{address[1]}: {error}") from error
