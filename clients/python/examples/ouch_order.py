"""An OUCH client's first minute. Start an exchange (docs/protocols/ouch.md, "Try it"), then
`python3 examples/ouch_order.py 127.0.0.1:PORT MEMBER [SYMBOL [PASSWORD]]`.

It reads what its member was told before, enters an order, cancels it, and logs out. A program that trades remembers the number it has
read up to, and logs in with the next one, at whichever gateway."""

import socket
import struct
import sys
import time

OWN_TAGS = {210: "name", 211: "position", 212: "instrument", 213: "code", 214: "shares", 215: "left", 216: "order"}
# Bytes of a message's fields, behind which its appendage begins.
FIELDS = {"A": 62, "U": 66, "M": 18, "E": 34, "C": 18, "D": 32, "B": 36, "J": 29, "I": 13, "T": 30, "R": 14, "X": 25}


class Session:
    """Packets out and in, as docs/protocols/ouch.md has them."""

    def __init__(self, address: str, who: tuple[str, str], session: str, first: int) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.lines = self.socket.makefile("rb")
        self.send(b"L", f"{who[0]:<6}{who[1]:<10}{session:>10}{first:>20}".encode())
        kind, payload = self.packet()
        if kind != "A":
            why = {"A": "wrong session or password", "S": "no such session number"}.get(payload.decode(), payload.decode())
            raise ConnectionError(f"the login is rejected: {why}")
        self.name, self.next = payload[:10].decode().strip(), int(payload[10:])

    def send(self, kind: bytes, payload: bytes) -> None:
        self.socket.sendall(struct.pack(">H", len(payload) + 1) + kind + payload)

    def packet(self) -> tuple[str, bytes]:
        """The next packet but for heartbeats, which are answered."""
        while True:
            head = self.lines.read(3)
            if len(head) < 3:
                raise ConnectionError("the gateway has closed the connection (this example does not use TLS)")
            length, kind = struct.unpack(">Hc", head)
            payload = self.lines.read(length - 1)
            if kind != b"H":
                return kind.decode(), payload
            self.send(b"R", b"")

    def receive(self) -> dict[str, object]:
        """The next message, by its number, or what is said beside the stream."""
        kind, payload = self.packet()
        if kind == "+":
            letter, number, *words = payload.decode().split()
            return {"type": letter, "user_ref_num": int(number), "said": " ".join(words)}
        if kind != "S":
            raise ConnectionError("the session has ended")
        message: dict[str, object] = {"type": chr(payload[0]), "number": self.next}
        self.next += 1
        if message["type"] not in "SU":
            message["user_ref_num"] = struct.unpack(">I", payload[9:13])[0]
        elif message["type"] == "U":
            message["user_ref_num"] = struct.unpack(">I", payload[13:17])[0]
        rest = payload[FIELDS.get(str(message["type"]), len(payload)) + 2 :]
        while rest:
            message[OWN_TAGS.get(rest[1], str(rest[1]))] = int.from_bytes(rest[2 : rest[0] + 1], "big")
            rest = rest[rest[0] + 1 :]
        return message

    def answer(self, kinds: str, user_ref_num: int) -> dict[str, object]:
        message = self.receive()
        while message["type"] not in kinds or message.get("user_ref_num") != user_ref_num:
            message = self.receive()
        if "said" in message or message["type"] in "JI":
            raise ValueError(f"refused: {message}")
        return message


def trade(address: str, member: str, symbol: str = "ALFA", password: str = "") -> None:
    session = Session(address, (member, password), "1-0", 1)
    print(f"member {member} is logged in to {session.name}, from {session.next} on")
    # UserRefNums are for life and rise: seconds will do for a client that sends one order a second.
    number = int(time.time())
    enter = struct.pack(">cIcI8sQccccc14sH", b"O", number, b"B", 100, f"{symbol:<8}".encode(), 10_000, b"0", b"Y", b"P", b"N", b"N", b" " * 14, 0)
    session.send(b"U", enter)
    taken = session.answer("AJ", number)
    print(f"order {number} is taken: number {taken['number']}, order {taken['order']}, {taken['left']} left")
    session.send(b"U", struct.pack(">cIIH", b"X", number, 0, 0))
    gone = session.answer("CI", number)
    print(f"order {number} is cancelled: number {gone['number']}, {gone['shares']} shares")
    session.send(b"O", b"")


if len(sys.argv) not in (3, 4, 5):
    sys.exit("usage: ouch_order.py HOST:PORT MEMBER [SYMBOL [PASSWORD]]   such as: ouch_order.py 127.0.0.1:7120 8 ALFA PASSWORD")
try:
    trade(*sys.argv[1:])
except (OSError, ValueError) as error:
    sys.exit(f"ouch_order.py: {error}")
