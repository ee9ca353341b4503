"""Watch a book. Start an exchange that publishes (`pares up --feed`), then
`PYTHONPATH=clients/python python3 clients/python/examples/watch.py ALFA [SHARD [LINE_A LINE_B REPLAYER...]]`, addresses as HOST:PORT.

Without them it is shard 0, which ALFA is in, of a new system on this host. Lines are given as those of shard 0."""

import errno
import sys

from pares import Side
from pares.feed import Feed, FeedState
from pares.market import Book, Books
from pares.soup import Address

LINES = [("127.0.0.1", 17100), ("127.0.0.1", 27100)]
REPLAYERS = [("127.0.0.1", 7300), ("127.0.0.1", 7301)]


def address(text: str) -> Address:
    host, port = text.rsplit(":", 1)
    return host, int(port)


def side(book: Book, of: Side) -> str:
    return " ".join(f"{shares:,}@{price / 10_000:.4f}" for price, shares in book.levels(of)[:3]) or "-"


def show(symbol: str, state: FeedState, book: Book) -> str:
    last = f"{book.last[1]:,}@{book.last[0] / 10_000:.4f}" if book.last else "-"
    phase = f"{book.state}{' ' + book.reason if book.reason else ''}"
    return f"{state.value:<10} {symbol} [{phase}]  buy {side(book, Side.BUY)}  sell {side(book, Side.SELL)}  last {last}"


def missing(symbol: str, shard: int, state: FeedState, books: Books, failed_calls: int = 0) -> str:
    """What is said of an instrument that has no book."""
    if state not in (FeedState.CURRENT, FeedState.OVER):
        why = ": no replayer answers. Is the system up? This client speaks no TLS" if failed_calls > 4 else ""
        return f"{state.value:<10} {symbol} is not here yet{why}"
    there = ", ".join(sorted(book.symbol for book in books.by_locate.values())) or "none"
    return f"{symbol} is not in shard {shard}, which has: {there}. Another shard may have it: watch.py {symbol} SHARD"


def shard_of(text: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"SHARD is a number, such as 0, and not {text!r}")
    return int(text)


def join(shard: int, lines: list[Address], replayers: list[Address]) -> Feed:
    try:
        return Feed(shard, [(host, port + shard) for host, port in lines], replayers)
    except OSError as error:
        if error.errno != errno.EADDRINUSE:
            raise
        print("another receiver of this host has the lines: all comes by TCP", file=sys.stderr)
        return Feed(shard, [], replayers)


def watch(symbol: str, shard: int, lines: list[Address], replayers: list[Address]) -> None:
    feed = join(shard, lines, replayers)
    shown = ""
    while True:
        feed.poll(1.0)
        book = feed.books.find(symbol)
        line = show(symbol, feed.state, book) if book else missing(symbol, shard, feed.state, feed.books, feed.counts.failed_calls)
        if line != shown:
            print(line, flush=True)
            shown = line


def main() -> None:
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    try:
        shard = shard_of(sys.argv[2]) if len(sys.argv) > 2 else 0
        given = [address(text) for text in sys.argv[3:]]
        watch(sys.argv[1], shard, given[:2] or LINES, given[2:] or REPLAYERS)
    except (OSError, ValueError) as error:
        sys.exit(f"watch.py: {error}")
    except KeyboardInterrupt:
        pass


if __name__ == "__main__":
    main()
