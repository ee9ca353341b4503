"""A first trade. Start an exchange (`pares up`), let members in (`pares admin member add 3 --shared`, and 4), then
`python3 examples/first_trade.py 127.0.0.1 7100 pares-data/keys [ca.pem]`."""

import sys
import time

from pares import Connection, Enter, KeyFile, Lost, NotTrusted, Order, Rejected, Side, Trade, price, tls_context


def trade(host: str, port: int, keys: str, authority: str = "") -> None:
    tls = tls_context(authority) if authority else None
    # Names are for life and rise. The time in milliseconds is this run's own, and stays in the series that 1, 2, 3 are of.
    name = time.time_ns() // 1_000_000

    def sign_on(member: int) -> Connection:
        key = KeyFile.read(f"{keys}/member-{member}-1.key")
        return Connection((host, port), member, session=key.session, credential=key.credential, tls=tls)

    with sign_on(3) as seller, sign_on(4) as buyer:
        offer = seller.submit(Enter(name, 1, Order(Side.SELL, 100, price("10"))))
        print(f"member 3 sells 100 at 10: {offer.status.name.lower()} at position {offer.position}")
        bid = buyer.submit(Enter(name, 1, Order(Side.BUY, 60, price("10"))))
        print(f"member 4 buys 60 at 10: {bid.status.name.lower()}, {bid.executed} executed")
        for who, member in (("member 3", seller), ("member 4", buyer)):
            update = member.receive()
            if isinstance(update, Trade):
                print(f"{who}: {update.side.name.lower()} {update.quantity} at {update.price / 10_000:.2f}")


if len(sys.argv) not in (4, 5) or not sys.argv[2].isdecimal():
    sys.exit("usage: first_trade.py HOST PORT KEYS [CA_PEM]   such as: first_trade.py 127.0.0.1 7100 pares-data/keys")
try:
    trade(sys.argv[1], int(sys.argv[2]), *sys.argv[3:])
except (Lost, NotTrusted, Rejected, TimeoutError, OSError, ValueError) as error:
    sys.exit(f"first_trade.py: {error}")
