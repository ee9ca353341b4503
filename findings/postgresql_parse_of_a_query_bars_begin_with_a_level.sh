#!/bin/sh
# Package:  pgserver 0.1.4 from PyPI, which brings PostgreSQL 16.2.
# Expected: in the extended protocol, parsing a statement executes nothing. So a client that pipelines Parse of its query,
#           then BEGIN ISOLATION LEVEL SERIALIZABLE, then Bind and Execute of the query has a serializable transaction:
#           SET TRANSACTION asks that no query or data-modification statement has been executed
#           (https://www.postgresql.org/docs/16/sql-set-transaction.html), and none has.
# Instead:  Parse of a SELECT takes a snapshot. The BEGIN fails with 25001, and all up to Sync is skipped. The same
#           messages with a Sync between Parse and BEGIN succeed.
# Seen:     parse, begin, execute, sync:       1 1 2 E(25001) Z
#           parse, sync, begin, execute, sync: 1 Z 1 2 C(BEGIN) 2 C(SELECT 1) Z
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{ python3 -m venv "$dir/python" && "$dir/python/bin/pip" install --quiet pgserver==0.1.4; } >&2 || exit 77
cat > "$dir/pipeline.py" <<'PYTHON'
import socket, struct, sys
import pgserver

PORT_FILE = ".s.PGSQL.5432"
LETTERS_WITH_TEXT = {b"C", b"E"}

def message(letter, body=b""):
    return letter + struct.pack(">i", len(body) + 4) + body

def text(string):
    return string.encode() + b"\0"

def parse(name, query):
    return message(b"P", text(name) + text(query) + struct.pack(">h", 0))

def run(name):
    bind = message(b"B", text("") + text(name) + struct.pack(">hhh", 0, 0, 0))
    return bind + message(b"E", text("") + struct.pack(">i", 0))

SYNC = message(b"S")

class Session:
    def __init__(self, folder):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(f"{folder}/{PORT_FILE}")
        self.input = self.socket.makefile("rb")
        start = struct.pack(">i", 3 << 16) + text("user") + text("postgres") + b"\0"
        self.socket.sendall(struct.pack(">i", len(start) + 4) + start)
        self.answers(1)

    def answers(self, syncs):
        """What arrives until so many ReadyForQuery have; data rows are left out."""
        seen = []
        while syncs:
            letter = self.input.read(1)
            body = self.input.read(struct.unpack(">i", self.input.read(4))[0] - 4)
            if letter == b"E":
                fields = dict((part[:1], part[1:]) for part in body.split(b"\0") if part)
                seen.append(f"E({fields[b'C'].decode()})")
            elif letter == b"C":
                seen.append(f"C({body[:-1].decode()})")
            elif letter != b"D":
                seen.append(letter.decode())
            syncs -= letter == b"Z"
        return " ".join(seen)

    def send(self, *messages):
        self.socket.sendall(b"".join(messages))
        return self.answers(sum(part == SYNC for part in messages))

folder = sys.argv[1]
server = pgserver.get_server(folder)
query = parse("query", "SELECT 1")
begin = parse("begin", "BEGIN ISOLATION LEVEL SERIALIZABLE") + run("begin")
together = Session(folder).send(query, begin, run("query"), SYNC)
apart = Session(folder).send(query, SYNC, begin, run("query"), SYNC)
print("parse, begin, execute, sync:      ", together)
print("parse, sync, begin, execute, sync:", apart)
server.cleanup()
sys.exit(together != "1 1 2 E(25001) Z" or apart != "1 Z 1 2 C(BEGIN) 2 C(SELECT 1) Z")
PYTHON
mkdir "$dir/data"
chmod 755 "$dir"
"$dir/python/bin/python" "$dir/pipeline.py" "$dir/data" 2> "$dir/log" || { cat "$dir/log" >&2; exit 1; }
