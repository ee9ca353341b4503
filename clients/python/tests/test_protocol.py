"""Bytes, held against the protocol's page."""

import pathlib
import re
import struct
import unittest

from pares import Rejected, protocol
from pares.credentials import SharedKey, transcript
from pares.protocol import (
    Amend,
    Answer,
    Cancel,
    Enter,
    MassCancel,
    Order,
    OrderKind,
    Side,
    Status,
    TimeInForce,
    guarded,
    price,
)
from pares.reasons import Reason, reason_word

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "protocols" / "order-entry.md"


def example(which: int) -> bytes:
    """The bytes of an example on the page."""
    blocks = re.findall(r"```text\n((?:[0-9a-f]{4}  [0-9a-f ]+\n)+)```", PAGE.read_text(encoding="utf-8"))
    return bytes.fromhex("".join(line[6:] for line in blocks[which].splitlines()))


def table(heading: str) -> list[tuple[int, str]]:
    """Offsets and types of a message on the page."""
    text = PAGE.read_text(encoding="utf-8").split(f"### {heading} (", 1)[1].split("\n#", 1)[0]
    return [(int(at), of) for at, of in re.findall(r"^\| (\d+) \| `\w+` \| ([^|]+) \|", text, re.MULTILINE)]


class Page(unittest.TestCase):
    def test_the_example_is_what_the_client_sends(self) -> None:
        order = Enter(1, 1, Order(Side.BUY, 100, price("223.82")))
        self.assertEqual(protocol.sign_on(7) + order.encode(), example(0))

    def test_the_examples_answer_is_understood(self) -> None:
        found = protocol.split(example(1))
        assert found is not None
        kind, body, rest = found
        self.assertEqual(rest, b"")
        answer = protocol.decode(kind, body)
        assert isinstance(answer, Answer)
        self.assertEqual((answer.status, answer.remaining, answer.position), (Status.RESTING, 100, 0))
        self.assertEqual((answer.order_id >> 48, answer.is_repeat), (1, False))

    def test_the_reasons_are_those_of_the_page(self) -> None:
        refusals = PAGE.read_text(encoding="utf-8").split("\n### Refusals\n", 1)[1].split("\n#", 1)[0]
        rows = re.findall(r"^\| (\d+) \| ([a-z_]+) \|", refusals, re.MULTILINE)
        self.assertEqual({one.value: one.name.lower() for one in Reason}, {int(code): word for code, word in rows})

    def test_a_reason_of_a_later_version_is_its_code(self) -> None:
        self.assertEqual(reason_word(255), "reason_255")
        refused = protocol.decode(134, struct.pack("<QB7x", 5, 255))
        self.assertEqual(refused, protocol.Rejection(5, 255))
        self.assertEqual(Rejected(255).reason, 255)
        self.assertIs(Rejected(17).reason, Reason.OVERLOADED)

    def test_what_is_no_price_or_no_name_is_refused(self) -> None:
        self.assertRaises(ValueError, price, "1.00001")
        self.assertRaises(TypeError, price, 1.5)
        self.assertRaises(ValueError, guarded, 1 << 15, 1)
        self.assertRaises(ValueError, guarded, 1, 1 << 48)

    def test_what_is_sent_has_the_pages_length(self) -> None:
        stop = Order(Side.BUY, 100, price("1"), trigger=price("2"), time_in_force=TimeInForce.GOOD_TILL_CANCELLED)
        sent = {
            "1 SignOn": protocol.sign_on(7),
            "2 EnterOrder": Enter(1, 1, Order(Side.SELL, 1, kind=OrderKind.MARKET)).encode(),
            "3 AmendOrder": Amend(2, 1, 5, 7).encode(),
            "4 CancelOrder": Cancel(3, 1).encode(),
            "5 MassCancel": MassCancel(4).encode(),
            "6 Ping": protocol.ping(1),
            "27 OrderStatusRequest": protocol.order_status_request(1),
            "28 ListRequest": protocol.list_request(protocol.List.ORDERS),
            "29 LimitsRequest": protocol.limits_request(1),
            "7 EnterOrderExtended": Enter(5, 1, stop).encode(),
            "19 CancelAfter": protocol.cancel_after(500),
        }
        page = PAGE.read_text(encoding="utf-8")
        for name, data in sent.items():
            self.assertIn(f"### {name} ({len(data) - 4} bytes)", page)
            self.assertEqual(data[2], int(name.split()[0]))
            self.assertTrue(table(name))


class Statuses(unittest.TestCase):
    def test_an_order_s_status_is_read_as_the_exchange_writes_it(self) -> None:
        body = bytes.fromhex(
            "1817161514131211 5857565554535251 4847464544434241 6400000000000000 24232221 3231 02 02 9291000000000000"
        )
        status = protocol.decode(146, body)
        assert isinstance(status, protocol.OrderStatus)
        self.assertEqual((status.client_order_id, status.remaining), (0x1112131415161718, 100))
        self.assertEqual((status.shard, status.state), (0x3132, protocol.OrderState.WORKING))
        self.assertEqual((status.side, status.executed), (2, 0x9192))
        short = protocol.decode(146, body[:40])
        assert isinstance(short, protocol.OrderStatus)
        self.assertEqual(short.executed, 0, "of an earlier gateway")
        with self.assertRaises(protocol.ProtocolError):
            protocol.decode(146, body[:38] + b"\x09\x00")
        with self.assertRaises(ValueError):
            protocol.order_status_request(1, 1)

    def test_lists_and_limits_are_read_as_the_exchange_writes_them(self) -> None:
        body = bytes.fromhex(
            "4b4e4f5400000000000000000000000048474645444342410100000000000000"
            "64000000000000006867666564636261fefffffffffffffff826220000000000"
            "f8262200000000000000000000000000a8a7a6a5a4a3a2a12423222174737271"
            "f40100002c0100003231020502000000"
        )
        status = protocol.decode(149, body)
        assert isinstance(status, protocol.InstrumentStatus)
        self.assertEqual((status.symbol, status.instrument, status.shard), ("KNOT", 0x21222324, 0x3132))
        self.assertEqual((status.last, status.reference, status.price_min), (2_238_200, None, -2))
        self.assertEqual((status.phase, status.is_quarantined, status.tick_rows), (2, True, 2))
        own = protocol.decode(
            151,
            bytes.fromhex(
                "a8a7a6a5a4a3a2a1484746454443424101000000000000000200000000000000"
                "0b000000000000007473727107000000030000000400000005000000060000000700000008000000"
                "0900525100000000"
            ),
        )
        assert isinstance(own, protocol.OwnLimits)
        self.assertEqual((own.rights, own.quantity_max, own.position_max, own.collar), (7, 1, 11, 3))
        self.assertEqual((own.orders, own.in_flight, own.in_flight_max, own.session), (7, 8, 9, 0x5152))
        row = protocol.decode(150, struct.pack("<qqII", -2, 100, 5, 0))
        self.assertEqual(row, protocol.TickRow(-2, 100, 5))
        end = protocol.decode(147, struct.pack("<QIIBB6x", 9, 3, 0, 1, 56))
        self.assertEqual(end, protocol.ListEnd(9, 3, 0, protocol.List.ORDERS, 56))
        with self.assertRaises(protocol.ProtocolError):
            protocol.decode(149, body[:111])


class Frames(unittest.TestCase):
    def test_half_a_frame_is_waited_for_and_rubbish_is_refused(self) -> None:
        whole = example(1)
        for cut in range(len(whole)):
            self.assertIsNone(protocol.split(whole[:cut]))
        for rubbish in (b"\xff\xff\x83\x01", b"\x03\x00\x83\x01", b"\x44\x00\x83\x02"):
            with self.assertRaises(protocol.ProtocolError):
                protocol.split(rubbish)

    def test_fields_appended_later_are_ignored_and_missing_ones_are_refused(self) -> None:
        found = protocol.split(example(1))
        assert found is not None
        kind, body, _ = found
        longer = protocol.decode(kind, body[:64] + struct.pack("<QQ", 9, 8))
        assert isinstance(longer, Answer)
        self.assertEqual(longer.number, 9)
        with self.assertRaises(protocol.ProtocolError):
            protocol.decode(kind, body[:63])
        self.assertIsNone(protocol.decode(250, b""))

    def test_a_guarded_name_has_the_session_and_the_upper_bit(self) -> None:
        self.assertEqual(protocol.guarded(3, 7), 0x8003_0000_0000_0007)

    def test_prices_are_exact(self) -> None:
        self.assertEqual(price("223.82"), 2_238_200)
        self.assertEqual(price("-0.0001"), -1)
        with self.assertRaises(ValueError):
            price("0.00001")


class Proofs(unittest.TestCase):
    def test_the_register_can_check_a_proof_and_cannot_make_one(self) -> None:
        import hashlib
        import hmac

        key = SharedKey(b"a secret of thirty-two bytes....")
        asked = transcript(bytes(range(32)), 1, 2, 7, 99)
        self.assertEqual(len(asked), 64)
        proven = key.prove(asked)
        signature = hmac.digest(key.stored_key, asked, "sha256")
        client_key = bytes(a ^ b for a, b in zip(proven, signature))
        self.assertEqual(hashlib.sha256(client_key).digest(), key.stored_key)
        self.assertEqual((len(proven), proven[32:]), (64, bytes(32)))
        self.assertNotEqual(key.prove(transcript(bytes(32), 1, 2, 7, 99)), proven)


if __name__ == "__main__":
    unittest.main()
