"""Applies a day to itch-book's books each time a line comes, and tells what it took."""

import json
import sys
import time

from itch_book._core import Session

CHUNK = 8 << 20


def chunks(path):
    with open(path, "rb") as file:
        return list(iter(lambda: file.read(CHUNK), b""))


opening, trading = chunks(sys.argv[1]), chunks(sys.argv[2])
for _ in sys.stdin:
    session = Session(tables=[], depth=0, symbols=[])
    for chunk in opening:
        session.feed(chunk)
    begun = time.perf_counter_ns()
    for chunk in trading:
        session.feed(chunk)
    elapsed = time.perf_counter_ns() - begun
    stats = session.stats()
    print(json.dumps({"elapsed_ns": elapsed, "living": stats["live_orders"], "lost": stats["missing_ref"]}), flush=True)
