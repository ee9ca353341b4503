"""What the example that watches a book says of instruments that are not there."""

from __future__ import annotations

import pathlib
import runpy
import subprocess
import sys
import unittest

from pares.feed import FeedState
from pares.market import Book, Books

EXAMPLE = pathlib.Path(__file__).parents[1] / "examples" / "watch.py"


class Watch(unittest.TestCase):
    def test_an_instrument_that_is_not_in_the_shard_is_said_to_be_elsewhere_once_the_books_are_current(self) -> None:
        missing, books = runpy.run_path(str(EXAMPLE))["missing"], Books()
        books.by_locate[1] = Book(symbol="ALFA")
        self.assertIn("not here yet", missing("BRAVO", 0, FeedState.STALE, books))
        self.assertIn("no TLS", missing("BRAVO", 0, FeedState.RECOVERING, books, 9))
        told = missing("BRAVO", 0, FeedState.CURRENT, books)
        self.assertEqual(
            told, "BRAVO is not in shard 0, which has: ALFA. Another shard may have it: watch.py BRAVO SHARD"
        )

    def test_a_shard_that_is_no_number_is_named(self) -> None:
        run = subprocess.run(
            [sys.executable, EXAMPLE, "ALFA", "x"],
            capture_output=True,
            check=False,
            text=True,
            env={"PYTHONPATH": str(EXAMPLE.parents[1])},
        )
        self.assertEqual((run.returncode, run.stderr), (1, "watch.py: SHARD is a number, such as 0, and not 'x'\n"))


if __name__ == "__main__":
    unittest.main()
