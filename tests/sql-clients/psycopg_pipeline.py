"""Pipelines of psycopg's, on a connection that was reset as pools do: `psycopg_pipeline.py HOST PORT`."""

import sys

import psycopg

connection = psycopg.connect(host=sys.argv[1], port=sys.argv[2], user="postgres", dbname="postgres", autocommit=True, prepare_threshold=None)
connection.execute("CREATE TABLE note (id int PRIMARY KEY, what text)")
for id, reset in enumerate(
    (
        "RESET ALL",
        "DISCARD ALL",
        "SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL READ COMMITTED",
        "SET default_transaction_isolation = 'read committed'",
        "RESET default_transaction_isolation",
    )
):
    connection.execute(reset)
    with connection.pipeline() as pipeline:
        connection.execute("INSERT INTO note VALUES (%s, %s)", (id, "first"))
        connection.execute("SET application_name = 'piped'")
        found = connection.execute("SELECT what FROM note WHERE id = %s", (id,))
        pipeline.sync()
        assert found.fetchone() == ("first",)
    assert connection.execute("SHOW application_name").fetchone() == ("piped",), reset
    assert connection.info.parameter_status("application_name") == "piped", reset
    with connection.pipeline(), connection.transaction():
        connection.execute("UPDATE note SET what = %s WHERE id = %s", ("second", id))
    # An error arrives before the pipeline's end, and what is behind it is not done.
    try:
        with connection.pipeline():
            failed = connection.execute("INSERT INTO note VALUES (%s, %s)", (id, "twice"))
            connection.execute("INSERT INTO note VALUES (%s, %s)", (id + 100, "behind"))
            failed.fetchone()
    except psycopg.errors.UniqueViolation:
        pass
    else:
        raise AssertionError("a key twice")
    assert connection.execute("SELECT count(*), max(what) FROM note").fetchone() == (id + 1, "second"), reset
try:
    with connection.cursor().copy("COPY note FROM STDIN") as copy:
        copy.write("no number\tx\n")
except psycopg.errors.InvalidTextRepresentation:
    pass
else:
    raise AssertionError("a row that is none")
with connection.cursor().copy("COPY note FROM STDIN") as copy:
    copy.write_row((200, "copied"))
assert connection.execute("SELECT what FROM note WHERE id = 200").fetchone() == ("copied",)
print("done")
