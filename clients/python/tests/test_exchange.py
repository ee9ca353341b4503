"""Against a running exchange: PARES_ADDRESSES is `host:port,host:port`, PARES_CA its ca.pem, PARES_PLAIN where TLS is off.

Skipped where there is none: `cargo test -p pares --test system python` starts one and runs this.
"""

from __future__ import annotations

import os
import ssl
import unittest

from pares import (
    Amend,
    Answer,
    Cancel,
    Cancelled,
    Connection,
    Enter,
    Lost,
    MassCancel,
    Member,
    NotTrusted,
    Order,
    Pong,
    Rejected,
    Side,
    Status,
    Trade,
    Update,
    guarded,
    price,
    tls_context,
)
from pares.connection import Address

ADDRESSES = [
    (host, int(port)) for host, port in (one.rsplit(":", 1) for one in os.environ.get("PARES_ADDRESSES", "").split(",") if one)
]
CA = os.environ.get("PARES_CA", "")


def context() -> ssl.SSLContext:
    return tls_context(CA)


def connect(member: int, gateway: int = 0) -> Connection:
    return Connection(ADDRESSES[gateway], member, tls=context(), timeout=60)


def order(side: Side, quantity: int, at: str = "10") -> Order:
    return Order(side, quantity, price(at))


@unittest.skipUnless(ADDRESSES, "no exchange: PARES_ADDRESSES is not set")
class Exchange(unittest.TestCase):
    def test_two_members_trade_and_both_are_told(self) -> None:
        with connect(11) as seller, connect(12, len(ADDRESSES) - 1) as buyer:
            offer = seller.submit(Enter(1, 1, order(Side.SELL, 100)))
            self.assertEqual((offer.status, offer.remaining), (Status.RESTING, 100))
            bid = buyer.submit(Enter(1, 1, order(Side.BUY, 60)))
            self.assertEqual((bid.status, bid.executed), (Status.FILLED, 60))
            for who in (seller, buyer):
                told = who.receive()
                assert isinstance(told, Trade)
                self.assertEqual((told.quantity, told.price), (60, price("10")))
            smaller = seller.submit(Amend(2, 1, price("10"), 80))
            self.assertEqual(smaller.remaining, 20)
            gone = seller.submit(Cancel(3, 1))
            self.assertEqual((gone.status, gone.executed), (Status.CANCELLED, 60))

    def test_a_repeat_gets_the_first_answer(self) -> None:
        with connect(13) as member:
            first = member.submit(Enter(1, 1, order(Side.SELL, 5, "90")))
            again = member.submit(Enter(1, 1, order(Side.SELL, 5, "90")))
            self.assertEqual((again.order_id, again.position, again.is_repeat), (first.order_id, first.position, True))

    def test_a_mass_cancel_tells_of_each_order(self) -> None:
        with connect(14) as member:
            member.send(*(Enter(name, 1, order(Side.SELL, 5, "90")) for name in (1, 2, 3)))
            answered = member.submit(MassCancel(4))
            self.assertEqual((answered.status, answered.executed), (Status.MASS_CANCELLED, 3))
            member.ping(9)
            told: list[Update | None] = []
            while not (told and isinstance(told[-1], Pong)):
                told.append(member.receive())
            self.assertEqual(sum(isinstance(one, Cancelled) for one in told), 3)
            self.assertEqual(sum(isinstance(one, Answer) for one in told), 3)

    def test_what_a_session_guards_ends_with_it_or_its_timer(self) -> None:
        with connect(20, len(ADDRESSES) - 1) as observer:
            member = connect(20)
            member.submit(Enter(guarded(0, 1), 1, order(Side.SELL, 5, "90")))
            member.cancel_after(0.05)
            self.assertEqual(self.cancelled(observer), guarded(0, 1))
            member.submit(Enter(guarded(0, 2), 1, order(Side.SELL, 5, "90")))
            member.close()
            self.assertEqual(self.cancelled(observer), guarded(0, 2))

    def cancelled(self, observer: Connection) -> int:
        """The name of the next order that is cancelled."""
        while True:
            update = observer.receive(60)
            assert update is not None
            if isinstance(update, Cancelled):
                return update.client_order_id

    def test_a_connection_beats_while_it_waits(self) -> None:
        with Connection(ADDRESSES[0], 21, tls=context(), timeout=60, heartbeat=20.0) as member:
            self.assertEqual(member.signed_on.heartbeat_ms, 20_000)
            member._said -= 20.0
            self.assertIsNone(member.receive(0.01), "the answer to a heartbeat is not told")
            self.assertEqual(member.submit(Enter(1, 1, order(Side.SELL, 5, "90"))).status, Status.RESTING)
            member._heard -= 61.0
            with self.assertRaises(Lost):
                member.receive(1)

    def test_a_refusal_says_why(self) -> None:
        with connect(15) as member:
            refused = member.submit(Enter(1, 99, order(Side.BUY, 1)))
            self.assertEqual(refused.status, Status.REFUSED)

    def test_a_member_whose_connection_is_lost_repeats_what_is_unanswered(self) -> None:
        def connected(address: Address) -> Connection:
            return Connection(address, 16, tls=context(), timeout=60)

        member = Member(ADDRESSES, connected)
        member.send(*(Enter(name, 1, order(Side.SELL, 5, "90")) for name in range(1, 11)))
        # As if the gateway had gone.
        member.connection._socket.shutdown(2)
        answer = member.submit(Enter(11, 1, order(Side.SELL, 5, "90")))
        self.assertEqual(answer.status, Status.RESTING)
        while member.unanswered:
            member.receive()
        self.assertGreater(member.repeated, 0)
        cancelled = member.submit(MassCancel(12, 1))
        self.assertEqual(cancelled.executed, 11, "each order once")
        member.close()

    def test_another_authority_is_not_believed(self) -> None:
        nobody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        with self.assertRaises(NotTrusted):
            Connection(ADDRESSES[0], 17, tls=nobody)

    def test_another_name_is_not_believed(self) -> None:
        with self.assertRaises(NotTrusted):
            Connection(ADDRESSES[0], 17, tls=context(), server_name="exchange.example")

    def test_a_session_that_resumes_is_told_nothing_before(self) -> None:
        resuming = Connection(ADDRESSES[0], 22, tls=context(), timeout=60, resuming=True)
        with connect(22) as member, resuming:
            self.assertEqual(member.submit(Enter(1, 1, order(Side.SELL, 5, "90"))).number, 1)
            self.assertEqual(member.submit(MassCancel(2, 1)).executed, 1)
            resuming.ping(5)
            self.assertEqual(resuming.receive(60), Pong(5), "not that an order was cancelled")
            resuming.resume(0, 1)
            told = resuming.receive(60)
            assert isinstance(told, Answer)
            self.assertEqual((told.client_order_id, told.number), (1, 1))

    def test_without_tls_the_gateway_says_what_is_missing(self) -> None:
        with self.assertRaises(Rejected) as refused:
            Connection(ADDRESSES[0], 18)
        self.assertEqual(refused.exception.word, "tls_required")

    def test_where_nobody_listens_it_is_said(self) -> None:
        with self.assertRaises(Lost):
            Connection(("127.0.0.1", 1), 19)


if __name__ == "__main__":
    unittest.main()
