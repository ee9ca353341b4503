"""A first trade. Start an exchange (`pares up`), let members in (`pares admin member add 3 --shared`, and 4), then
`python3 examples/first_trade.py 127.0.0.1 7100 pares-data/keys [ca.pem]`."""

import sys
import time

from pares import Connection, Enter, KeyFile, Order, Side, Trade, price, tls_context

host, port, keys = sys.argv[1], int(sys.argv[2]), sys.argv[3]
tls = tls_context(sys.argv[4]) if len(sys.argv) > 4 else None
# Names are for life: the time makes this run's its own.
name = time.time_ns()


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
