"""A first trade. Start an exchange (`pares up`), then `python3 examples/first_trade.py 127.0.0.1 7100 [ca.pem]`."""

import sys
import time

from pares import Connection, Enter, Order, Side, Trade, price, tls_context

host, port = sys.argv[1], int(sys.argv[2])
tls = tls_context(sys.argv[3]) if len(sys.argv) > 3 else None
# Names are for life: the time makes this run's its own.
name = time.time_ns()

with Connection((host, port), 1, tls=tls) as seller, Connection((host, port), 2, tls=tls) as buyer:
    offer = seller.submit(Enter(name, 1, Order(Side.SELL, 100, price("10"))))
    print(f"member 1 sells 100 at 10: {offer.status.name.lower()} at position {offer.position}")
    bid = buyer.submit(Enter(name, 1, Order(Side.BUY, 60, price("10"))))
    print(f"member 2 buys 60 at 10: {bid.status.name.lower()}, {bid.executed} executed")
    for who, member in (("member 1", seller), ("member 2", buyer)):
        update = member.receive()
        if isinstance(update, Trade):
            print(f"{who}: {update.side.name.lower()} {update.quantity} at {update.price / 10_000:.2f}")
