"""A receiver among packets that are lost, doubled, early, late and forged, and replayers that are sockets of this program."""

from __future__ import annotations

import pathlib
import random
import re
import socket
import struct
import threading
import time
import unittest
from collections.abc import Callable

from pares import ProtocolError, Side, market, soup
from pares.feed import HEADER, Begun, Event, Feed, FeedState, Received, Reset, Sequence, read_packet, shard_of
from pares.market import Books

PAGE = pathlib.Path(__file__).parents[3] / "docs" / "protocols" / "market-data-consumers.md"
SESSION, NEXT_DAY = "000100512d", "000100512e"
SIZES = {"c": 1, "I": 4, "Q": 8, "2s": 2, "4s": 4, "8s": 8}


def packet(first: int, *messages: bytes, session: str = SESSION, count: int | None = None) -> bytes:
    blocks = b"".join(struct.pack(">H", len(one)) + one for one in messages)
    return HEADER.pack(session.encode(), first, len(messages) if count is None else count) + blocks


def message(kind: str, *fields: object, locate: int = 1) -> bytes:
    return market.HEAD.pack(ord(kind), locate, 0, (7).to_bytes(6, "big")) + market.LAYOUTS[kind].pack(*fields)


def directory() -> bytes:
    return message("R", b"ALFA    ", *[b" "] * 2, 1, b"N", b"C", b"Z ", b"P", *[b" "] * 4, 0, b"N")


def add(reference: int, side: bytes, shares: int, price: int) -> bytes:
    return message("A", reference, side, shares, b"ALFA    ", price)


DAY = [message("S", b"O"), directory(), message("H", b"ALFA    ", b"T", b" ", b"    ")] + [
    add(reference, b"BS"[reference % 2 : reference % 2 + 1], 10, 100 + reference % 5) for reference in range(1, 60)
]


class Page(unittest.TestCase):
    def test_the_layouts_are_those_of_the_page(self) -> None:
        text = PAGE.read_text(encoding="utf-8")
        sections = re.findall(r"^### (\w), .* \((\d+)\)\n((?:.|\n)*?)(?=^#)", text, re.MULTILINE)
        self.assertEqual({kind for kind, _, _ in sections}, set(market.LAYOUTS))
        for kind, length, table in sections:
            rows = [(int(at), int(size)) for at, size in re.findall(r"^\| (\d+) \| `?\w+`? \| (\d+) \|", table, re.MULTILINE)]
            parts = re.findall(r"\ds|[cIQ]", market.LAYOUTS[kind].format)
            self.assertEqual([size for _, size in rows], [SIZES[part] for part in parts], kind)
            at = market.HEAD.size
            for offset, size in rows:
                self.assertEqual(offset, at, kind)
                at += size
            self.assertEqual((at, market.HEAD.size + market.LAYOUTS[kind].size), (int(length), int(length)), kind)


class Packets(unittest.TestCase):
    def test_what_is_no_packet_is_refused(self) -> None:
        good = packet(1, b"one", b"")
        self.assertEqual(read_packet(good).messages, (b"one", b""))
        for length in range(len(good)):
            self.assertRaises(ProtocolError, read_packet, good[:length])
        self.assertRaises(ProtocolError, read_packet, good + b"x")
        self.assertRaises(ProtocolError, read_packet, packet(2**64 - 1))
        self.assertEqual(read_packet(packet(7, count=65_535)).following, 7, "the end counts no message")
        self.assertEqual([shard_of(name) for name in (SESSION, "00 1000000", "0001      ")], [1, None, None])

    def test_whatever_the_bytes_are_they_are_read_or_refused(self) -> None:
        rng, books = random.Random(5), Books()
        for _ in range(5_000):
            data = bytearray(rng.choice([packet(1, *DAY[:9]), *DAY[:9], soup.packet("A", b" " * 30)]))
            for _ in range(rng.randrange(4)):
                data[rng.randrange(len(data))] = rng.randrange(256)
            cut = bytes(data[: rng.randrange(len(data) + 1)])
            for read in (read_packet, soup.split):
                try:
                    read(cut)
                except ProtocolError:
                    pass
            books.on_message(cut)
        self.assertGreater(books.misfits, 1_000)

    def test_two_lines_that_lose_double_and_delay_give_each_message_once(self) -> None:
        for seed in range(20):
            rng, got = random.Random(seed), []
            lines = [packet(first, *DAY[first - 1 : first + 2]) for _ in "AB" for first in range(1, len(DAY) + 1, 3)]
            lines = [one for one in lines if rng.random() > 0.2] + rng.sample(lines, 5)
            rng.shuffle(lines)
            sequence, now = Sequence(SESSION, 1), 0.0
            sequence.on_packet(read_packet(packet(len(DAY) + 1, count=65_535)), now)
            for data in lines:
                got += sequence.on_packet(read_packet(data), now)
            while request := sequence.missing():
                now += 0.5
                asked = sequence.ask(now)
                if asked and rng.random() > 0.3:
                    _, first, count = HEADER.unpack(asked)
                    self.assertEqual(first, request[0])
                    got += sequence.on_packet(read_packet(packet(first, *DAY[first - 1 : first - 1 + count])), now)
            self.assertEqual([one.number for one in got], list(range(1, len(DAY) + 1)))
            self.assertEqual([one.message for one in got], DAY)
            self.assertTrue(sequence.is_over())

    def test_requests_wait_for_the_other_line_and_then_pause_longer_each_time(self) -> None:
        sequence, now, times = Sequence(SESSION, 1), 0.0, []
        sequence.on_packet(read_packet(packet(3, b"x")), now)
        while now < 4.0:
            if asked := sequence.ask(now):
                self.assertEqual(HEADER.unpack(asked)[1:], (1, 2))
                times.append(round(now, 3))
            if abs(now - 3.0) > 0.01:
                self.assertEqual(sequence.is_vain(now), now > 3.0)
            now += 0.001
        self.assertEqual(times[:5], [0.001, 0.002, 0.004, 0.008, 0.016])
        self.assertTrue(sequence.is_vain(now))


class TheBooks(unittest.TestCase):
    def test_a_queue_is_in_the_order_of_references(self) -> None:
        books = Books()
        for one in (*DAY[:3], add(9, b"B", 5, 100), add(3, b"B", 7, 100), add(4, b"B", 1, 101), add(5, b"S", 1, 103)):
            books.on_message(one)
        book = books.find("ALFA")
        assert book is not None
        self.assertEqual(book.orders(Side.BUY), [(101, 1, 4), (100, 7, 3), (100, 5, 9)])
        for one in (message("U", 3, 12, 7, 100), message("E", 9, 2, 1), message("C", 4, 1, 2, b"N", 102), message("X", 12, 3)):
            books.on_message(one)
        self.assertEqual(book.orders(Side.BUY), [(100, 3, 9), (100, 4, 12)])
        self.assertEqual((book.last, book.levels(Side.BUY), books.misfits), ((100, 2), [(100, 7)], 0))

    def test_misfits_are_counted_and_change_nothing(self) -> None:
        books = Books()
        for one in (*DAY[:3], add(1, b"B", 5, 100)):
            books.on_message(one)
        wrong = [
            b"", b"Z" * 12, DAY[0] + b"x", add(1, b"B", 5, 100), add(2, b"B", 0, 100), add(2, b"X", 1, 100),
            message("E", 1, 6, 1), message("X", 2, 1), message("D", 2), message("U", 2, 3, 1, 1),
            message("H", b"BETA    ", b"T", b" ", b"    ", locate=9),
        ]  # fmt: skip
        for one in wrong:
            books.on_message(one)
        book = books.find("ALFA")
        assert book is not None
        self.assertEqual((books.misfits, book.orders(Side.BUY)), (len(wrong), [(100, 5, 1)]))


class Replayer:
    """Knows the messages of a session, and of no other."""

    def __init__(self, session: str = SESSION, messages: list[bytes] = DAY) -> None:
        self.session, self.messages = session, list(messages)
        self.calls: list[tuple[str, str, int]] = []
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address: soup.Address = self._socket.getsockname()
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with connection:
                asked = connection.recv(49)
                name, session, number = asked[3:9].decode().strip(), asked[19:29].decode().strip(), int(asked[29:])
                self.calls.append((name, session, number))
                connection.sendall(self._answer(name, session, number))
                connection.settimeout(0.3)
                try:
                    connection.recv(4)
                except OSError:
                    pass

    def _answer(self, name: str, session: str, number: int) -> bytes:
        following = len(self.messages) + 1
        accepted = soup.packet("A", f"{self.session}{number or following:>20}".encode())
        if session not in (self.session, self.session[:4]) or number > following:
            return soup.packet("J", b"S")
        if name == "REPLAY":
            told = self.messages[number - 1 :] if number else []
            return accepted + b"".join(soup.packet("S", one) for one in told) + soup.packet("H")
        # As its orders are.
        end = soup.packet("S", f"G{following:>20}".encode())
        return accepted + b"".join(soup.packet("S", one) for one in self.messages) + end

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()


class Feeds(unittest.TestCase):
    def replayer(self, *given: object) -> Replayer:
        replayer = Replayer(*given)  # type: ignore[arg-type]
        self.addCleanup(replayer.close)
        return replayer

    def feed(self, *replayers: Replayer) -> Feed:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
            free.bind(("127.0.0.1", 0))
            line = free.getsockname()
        feed = Feed(1, [line], [one.address for one in replayers])
        self.addCleanup(feed.close)
        return feed

    def until(self, feed: Feed, holds: Callable[[], bool]) -> list[Event]:
        events, deadline = [], time.monotonic() + 30
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{feed.state}, {feed.place}, {feed.counts}")
            events += feed.poll(0.02)
        return events

    def test_one_that_comes_late_takes_a_snapshot_and_what_came_meanwhile(self) -> None:
        feed = self.feed(self.replayer(SESSION, DAY[:20]))
        self.assertEqual(feed.state, FeedState.RECOVERING)
        feed.on_datagram(packet(21, *DAY[20:25]))
        events = self.until(feed, lambda: feed.state == FeedState.CURRENT)
        self.assertEqual(events[:3], [Begun(SESSION), Reset(21), Received(21, DAY[20])])
        self.assertEqual((feed.place, feed.books.misfits), ((SESSION, 26), 0))

    def test_a_gap_that_udp_does_not_fill_is_filled_by_tcp(self) -> None:
        replayer = self.replayer(SESSION, DAY[:20])
        feed = self.feed(replayer)
        self.until(feed, lambda: feed.place == (SESSION, 21))
        replayer.messages = list(DAY)
        feed.on_datagram(packet(31, *DAY[30:]))
        self.assertEqual(feed.state, FeedState.GAP)
        events = self.until(feed, lambda: feed.state == FeedState.CURRENT)
        self.assertEqual([one.number for one in events if isinstance(one, Received)], list(range(21, len(DAY) + 1)))
        self.assertIn(("REPLAY", SESSION, 21), replayer.calls)

    def test_a_claim_that_no_replayer_knows_of_is_dropped(self) -> None:
        replayers = [self.replayer(), self.replayer()]
        feed = self.feed(*replayers)
        self.until(feed, lambda: feed.place is not None)
        for forged in (packet(2**60, b"x"), packet(1, b"x", session=NEXT_DAY)):
            feed.on_datagram(packet(len(DAY) + 1))
            self.assertEqual(feed.state, FeedState.CURRENT)
            feed.on_datagram(forged)
            self.assertIn(feed.state, (FeedState.GAP, FeedState.RECOVERING))
            refuted = feed.counts.refuted
            self.until(feed, lambda: feed.counts.refuted > refuted)
            feed.on_datagram(packet(len(DAY) + 1))
            self.assertEqual((feed.state, feed.place), (FeedState.CURRENT, (SESSION, len(DAY) + 1)))

    def test_the_next_day_begins_with_its_first_message(self) -> None:
        replayer = self.replayer()
        feed = self.feed(replayer)
        self.until(feed, lambda: feed.place is not None)
        feed.on_datagram(packet(len(DAY) + 1, count=65_535))
        self.assertEqual(feed.state, FeedState.OVER)
        replayer.session, replayer.messages = NEXT_DAY, DAY[:3]
        feed.on_datagram(packet(1, *DAY[:3], session=NEXT_DAY))
        self.assertEqual(feed.state, FeedState.RECOVERING, "nobody has confirmed it")
        events = self.until(feed, lambda: feed.state == FeedState.CURRENT)
        self.assertEqual((events[0], len(events), feed.place), (Begun(NEXT_DAY), 4, (NEXT_DAY, 4)))

    def test_a_day_that_began_unheard_is_taken_by_a_snapshot(self) -> None:
        replayer = self.replayer()
        feed = self.feed(replayer)
        self.until(feed, lambda: feed.place is not None)
        replayer.session, replayer.messages = NEXT_DAY, DAY[:9]
        feed.on_datagram(packet(9, DAY[8], session=NEXT_DAY))
        self.assertEqual(feed.state, FeedState.RECOVERING)
        events = self.until(feed, lambda: feed.place == (NEXT_DAY, 10))
        self.assertEqual(events, [Begun(NEXT_DAY), Reset(10)])

    def test_nothing_is_current_that_nobody_spoke_of_for_long(self) -> None:
        feed = self.feed(self.replayer())
        self.until(feed, lambda: feed.place is not None)
        feed.on_datagram(packet(len(DAY) + 1))
        self.assertEqual(feed.state, FeedState.CURRENT)
        assert feed._sequence is not None
        feed._sequence.heard -= 3.1
        self.assertEqual(feed.state, FeedState.STALE)

    def test_a_replayer_that_is_not_there_is_passed_by(self) -> None:
        gone = Replayer()
        gone.close()
        feed = self.feed(gone, self.replayer())
        self.until(feed, lambda: feed.place is not None)
        self.assertGreaterEqual(feed.counts.failed_calls, 1)


if __name__ == "__main__":
    unittest.main()
