#!/bin/sh
# Package:  pgserver 0.1.4 from PyPI, which brings PostgreSQL 16.2.
# Expected: the server sends ParameterStatus whenever the active value of a reported setting changes, in general as part of
#           the answer to SET (https://www.postgresql.org/docs/16/protocol-flow.html#PROTOCOL-ASYNC). So a client, or a
#           pooler that follows the settings of a session, sees each value, before the statement that ran under it.
# Instead:  the server compares values once, ahead of ReadyForQuery. In a query of several statements, or a pipeline with
#           one Sync, only the last value is sent, behind the rows that earlier values had a part in; a value that is
#           set and set back is never sent.
# Seen:     SET a; SELECT; SET b; SELECT: C(SET) C(SELECT 1) C(SET) C(SELECT 1) S(application_name b) Z
#           SET a; SELECT; SET back:      C(SET) C(SELECT 1) C(SET) Z
set -eu
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
{ python3 -m venv "$dir/python" && "$dir/python/bin/pip" install --quiet pgserver==0.1.4; } >&2 || exit 77
cat > "$dir/settings.py" <<'PYTHON'
import socket, struct, sys
import pgserver

SHOWN = b"CSZ"

def framed(body):
    return struct.pack(">i", len(body) + 4) + body

def until_ready(stream):
    seen = []
    while not seen or seen[-1] != "Z":
        letter = stream.read(1)
        body = stream.read(struct.unpack(">i", stream.read(4))[0] - 4)
        words = "" if letter == b"Z" else "(" + body[:-1].replace(b"\0", b" ").decode(errors="replace") + ")"
        if letter in SHOWN:
            seen.append(letter.decode() + words)
    return " ".join(seen)

folder = sys.argv[1]
server = pgserver.get_server(folder)
client = socket.socket(socket.AF_UNIX)
client.connect(folder + "/.s.PGSQL.5432")
stream = client.makefile("rb")
client.sendall(framed(struct.pack(">i", 3 << 16) + b"user\0postgres\0application_name\0before\0\0"))
until_ready(stream)

def ask(query):
    client.sendall(b"Q" + framed(query + b"\0"))
    return until_ready(stream)

back = ask(b"SET application_name = a; SELECT 1; SET application_name = before")
twice = ask(b"SET application_name = a; SELECT 1; SET application_name = b; SELECT 1")
print("SET a; SELECT; SET b; SELECT:", twice)
print("SET a; SELECT; SET back:     ", back)
server.cleanup()
sys.exit(
    twice != "C(SET) C(SELECT 1) C(SET) C(SELECT 1) S(application_name b) Z"
    or back != "C(SET) C(SELECT 1) C(SET) Z"
)
PYTHON
mkdir "$dir/data"
chmod 755 "$dir"
"$dir/python/bin/python" "$dir/settings.py" "$dir/data" 2> "$dir/log" || { cat "$dir/log" >&2; exit 1; }
