"""The receiver against a running exchange, whose publishers and a replayer are killed meanwhile.

PARES_FEED_DIR is the exchange's directory, PARES_LINES the lines of shard 0 as `host:port,host:port`, PARES_PROGRAM the `pares` that runs
it, PARES_ADDRESSES its gateways, without TLS and open. Skipped where there is none: `cargo test -p pares --test system python` starts one.
"""

from __future__ import annotations

import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import time
import unittest
from collections.abc import Callable
from typing import Any

from pares import Cancel, Connection, Enter, Member, Order, Side, price
from pares.feed import Feed, FeedState
from pares.market import Book, Books
from pares.soup import Address

DIR = os.environ.get("PARES_FEED_DIR", "")
ROUNDS, ORDERS = 40, 40
KILLED = [("publisher-0",), ("publisher-1",), ("replayer-0", "publisher-0"), ("publisher-0", "publisher-1")]
"""By turns."""


def addresses(text: str) -> list[Address]:
    return [(host, int(port)) for host, port in (one.rsplit(":", 1) for one in text.split(",") if one)]


def replayers() -> list[Address]:
    written = sorted((pathlib.Path(DIR) / "run").glob("replayer-*.addr"))
    return addresses(",".join(one.read_text(encoding="ascii").strip() for one in written))


def kill(*nodes: str) -> None:
    """kill -9, if they run just now."""
    for node in nodes:
        try:
            os.kill(int((pathlib.Path(DIR) / "run" / f"{node}.pid").read_text(encoding="ascii")), signal.SIGKILL)
        except ProcessLookupError:
            pass


def pares(*arguments: str) -> Any:
    """What a command tells of the exchange."""
    told = subprocess.run(
        [os.environ["PARES_PROGRAM"], *arguments, "--dir", DIR], capture_output=True, check=True, text=True
    )
    return json.loads(told.stdout)


def shown(books: Books) -> dict[str, tuple[object, ...]]:
    """What books show, but for last trades, which no snapshot has."""

    def of(book: Book) -> tuple[object, ...]:
        return book.state, book.reason, book.indicative, tuple(book.orders(Side.BUY)), tuple(book.orders(Side.SELL))

    return {book.symbol: of(book) for book in books.by_locate.values()}


class Lossy(Feed):
    """Loses a twentieth of all packets, and notes what it showed as current."""

    rng = random.Random(1)

    def on_datagram(self, data: bytes) -> None:
        if self.rng.random() >= 0.05:
            super().on_datagram(data)

    def look(self, seen: dict[int, int]) -> None:
        self.poll(0.002)
        if self.state in (FeedState.CURRENT, FeedState.OVER) and self.place:
            seen[self.place[1]] = hash(str(shown(self.books)))


class Trader:
    """Enters and cancels at random, near one price, on the two instruments of the shard."""

    def __init__(self) -> None:
        self.member = Member(addresses(os.environ["PARES_ADDRESSES"]), lambda address: Connection(address, 31))
        self.rng = random.Random(2)
        self.name = 0
        self.living: list[int] = []

    def trade(self, look: Callable[[], object]) -> None:
        for _ in range(ORDERS):
            self.name += 1
            if self.living and self.rng.random() < 0.3:
                self.member.send(Cancel(self.name, self.living.pop(self.rng.randrange(len(self.living)))))
                continue
            self.living.append(self.name)
            side, at = self.rng.choice([Side.BUY, Side.SELL]), price("100") + 100 * self.rng.randrange(8)
            order = Order(side, self.rng.randrange(1, 50), at)
            self.member.send(Enter(self.name, self.rng.randrange(1, 3), order))
            if self.name % 8 == 0:
                look()
        while self.member.unanswered:
            self.member.receive(1.0)
            look()


@unittest.skipUnless(DIR, "no exchange: PARES_FEED_DIR is not set")
class Exchange(unittest.TestCase):
    def test_books_are_right_whenever_they_are_called_current_though_publishers_and_a_replayer_are_killed(self) -> None:
        feed, trader = Lossy(0, addresses(os.environ["PARES_LINES"]), replayers()), Trader()
        self.addCleanup(feed.close)
        self.addCleanup(trader.member.close)
        seen: dict[int, int] = {}
        for turn in range(ROUNDS):
            trader.trade(lambda: feed.look(seen))
            if turn % 4 == 1:
                kill(*KILLED[turn // 4 % len(KILLED)])
        tape, books, whole = self.tape(), Books(), [0]
        for message in [b"", *tape]:
            if message:
                books.on_message(message)
            whole.append(hash(str(shown(books))))
        head = len(tape) + 1
        # A heartbeat of either publisher tells what was lost in the end.
        self.until(feed, lambda: feed.look(seen), lambda: feed.place is not None and feed.place[1] == head and feed.state == FeedState.CURRENT)
        wrong = [number for number, digest in seen.items() if whole[number] != digest]
        print(f"{head - 1} messages, looked at {len(seen)} numbers, wrong while current {len(wrong)}; {feed.counts}")
        self.assertEqual((wrong, feed.books.misfits), ([], 0))
        self.assertIn(head, seen)
        self.assertEqual(shown(feed.books), shown(self.snapshot(head)), "a fresh snapshot")
        self.assert_best(feed.books)

    def until(self, feed: Feed, look: Callable[[], object], holds: Callable[[], bool]) -> None:
        deadline = time.monotonic() + 60
        while not holds():
            self.assertLess(time.monotonic(), deadline, f"{feed.state}, {feed.place}, {feed.counts}")
            look()

    def snapshot(self, head: int) -> Books:
        """The books of a snapshot that has all messages before `head`."""
        feed = Feed(0, [], replayers())
        self.addCleanup(feed.close)
        self.until(feed, lambda: feed.poll(0.05), lambda: feed.place is not None and feed.place[1] == head)
        return feed.books

    def tape(self) -> list[bytes]:
        """The messages of the session that is on, out of the record, which no publisher has touched."""
        with tempfile.TemporaryDirectory() as scratch:
            told = pares("feed", "tape", "--json", "--to", scratch)
            files = [one["file"] for one in told["files"] if pathlib.Path(one["file"]).name.startswith("0-")]
            rest, messages = pathlib.Path(files[-1]).read_bytes(), []
        while rest:
            end = 2 + int.from_bytes(rest[:2], "big")
            messages.append(rest[2:end])
            rest = rest[end:]
        return messages

    def assert_best(self, books: Books) -> None:
        """The best prices are those of the record."""
        of_record = {one["symbol"]: one for one in pares("instruments", "--json")["instruments"]}
        for book in books.by_locate.values():
            for side, key in ((Side.BUY, "bid"), (Side.SELL, "offer")):
                best, level = of_record[book.symbol][key], book.levels(side)[0]
                self.assertEqual((price(best["price"]), best["quantity"]), level)


if __name__ == "__main__":
    unittest.main()
