"""A FIX client's first minute. Start an exchange (`pares up --fix`, which says where each gateway listens for FIX), let a member in
(`pares admin member add 7 --shared`), then `python3 examples/fix_order.py 127.0.0.1:PORT pares-data/keys/member-7-1.key [SYMBOL [GATEWAY]]`.
The Logon names the gateway at that address by its number: 0 is the first.

It logs on with numbers that begin anew, enters an order, cancels it, and logs out. An engine that members use keeps its numbers."""

import datetime
import socket
import sys
import time

from pares import KeyFile

SOH = "\x01"


def now() -> str:
    return datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%d-%H:%M:%S.%f")[:-3]


class Session:
    """Messages out and in, as docs/protocols/fix.md has them."""

    def __init__(self, address: str, key: KeyFile, gateway: int) -> None:
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=10)
        self.lines = self.socket.makefile("rb")
        self.name, self.number = f"M{key.member}-{key.session}", 0
        body = self.body("A", f"57={gateway}|98=0|108=30|141=Y|")
        # The proof is of all that the Logon says but the lengths, the proof and the sum.
        proof = key.credential.prove(f"8=FIX.4.4{SOH}{body}".encode()).hex()
        self.frame(f"{body}95={len(proof)}{SOH}96={proof}{SOH}")

    def body(self, kind: str, fields: str) -> str:
        self.number += 1
        head = f"35={kind}|34={self.number}|49={self.name}|52={now()}|56=PARES|"
        return (head + fields).replace("|", SOH)

    def send(self, kind: str, fields: str) -> None:
        self.frame(self.body(kind, fields))

    def frame(self, body: str) -> None:
        framed = f"8=FIX.4.4{SOH}9={len(body)}{SOH}{body}"
        self.socket.sendall(f"{framed}10={sum(framed.encode()) % 256:03}{SOH}".encode())

    def receive(self) -> dict[str, str]:
        """The next message but for the exchange's TestRequests, which are answered."""
        while True:
            fields: dict[str, str] = {}
            while "10" not in fields:
                byte, text = b"", b""
                while (byte := self.lines.read(1)) != SOH.encode():
                    if not byte:
                        raise ConnectionError("the gateway has closed the connection (this example does not use TLS)")
                    text += byte
                tag, _, value = text.decode().partition("=")
                fields[tag] = value
            if fields["35"] != "1":
                return fields
            self.send("0", f"112={fields['112']}|")

    def report(self, name: int) -> dict[str, str]:
        """What is said of a request. What else comes is told again from earlier sessions, with 97=Y."""
        fields = self.receive()
        while fields.get("11") != str(name):
            fields = self.receive()
        return fields


def trade(address: str, key: KeyFile, symbol: str = "ALFA", gateway: str = "0") -> None:
    session = Session(address, key, int(gateway))
    answer = session.receive()
    if answer["35"] != "A":
        raise ConnectionError(answer.get("58", "the Logon is refused"))
    print(f"{session.name} is logged on")
    # Names are for life and rise.
    name = time.time_ns() // 1_000_000
    session.send("D", f"11={name}|55={symbol}|54=1|60={now()}|38=100|40=2|44=1.00|59=0|")
    report = session.report(name)
    print(f"order {report['11']}: OrdStatus {report['39']}, OrderID {report.get('37')}, {report.get('58', 'taken')}")
    if report["39"] != "8":
        session.send("F", f"41={name}|11={name + 1}|55={symbol}|54=1|60={now()}|")
        report = session.report(name + 1)
        how = report.get("58") if report["35"] == "9" else f"{report['14']} executed, {report['151']} left"
        print(f"cancel {report['11']}: OrdStatus {report['39']}, {how}")
    session.send("5", "")
    while session.receive()["35"] != "5":
        pass
    print("logged out")


if len(sys.argv) not in (3, 4, 5):
    sys.exit("usage: fix_order.py HOST:PORT KEY [SYMBOL [GATEWAY]]   such as: fix_order.py 127.0.0.1:7110 pares-data/keys/member-7-1.key ALFA 0")
try:
    trade(sys.argv[1], KeyFile.read(sys.argv[2]), *sys.argv[3:])
except (OSError, ValueError) as error:
    sys.exit(f"fix_order.py: {error}")
