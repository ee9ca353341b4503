-- The broker's items as tables that SQL reads: where a PostgreSQL database holds them, a site makes these at each start.
-- They are views of what is there and hold nothing themselves, so they are of one version, as items are. Nothing can be written through them.
-- Layouts: docs/protocols/broker.md, Items. In `pares_items` a value begins with a byte that says that it is bytes; numbers in values are little-endian, in keys big-endian.

CREATE OR REPLACE FUNCTION broker_number(bytes bytea, at int) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    get_byte(bytes, at)::bigint | (get_byte(bytes, at + 1)::bigint << 8) | (get_byte(bytes, at + 2)::bigint << 16)
    | (get_byte(bytes, at + 3)::bigint << 24) | (get_byte(bytes, at + 4)::bigint << 32) | (get_byte(bytes, at + 5)::bigint << 40)
    | (get_byte(bytes, at + 6)::bigint << 48) | (get_byte(bytes, at + 7)::bigint << 56);

-- The number that a key ends with.
CREATE OR REPLACE FUNCTION broker_place(key bytea) RETURNS bigint LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    ('x' || encode(substr(key, length(key) - 7), 'hex'))::bit(64)::bigint;

CREATE OR REPLACE FUNCTION broker_money(cents bigint) RETURNS numeric LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    round(cents::numeric / 100, 2);

CREATE OR REPLACE FUNCTION broker_time(ms bigint) RETURNS timestamptz LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    to_timestamp(ms / 1000.0);

-- The user with whom a key begins; nobody's is empty.
CREATE OR REPLACE FUNCTION broker_user(key bytea) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    convert_from(substr(key, 4, get_byte(key, 2)), 'UTF8');

-- How long a text or a list is: shorter than 65,536.
CREATE OR REPLACE FUNCTION broker_length(bytes bytea, at int) RETURNS int LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    get_byte(bytes, at) | (get_byte(bytes, at + 1) << 8);

-- Three bytes, the last of which may be 0.
CREATE OR REPLACE FUNCTION broker_symbol(bytes bytea, at int) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    convert_from(rtrim(substr(bytes, at + 1, 3), '\x00'::bytea), 'UTF8');

-- As it is in keys.
CREATE OR REPLACE FUNCTION broker_way(way int) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    CASE way WHEN 0 THEN 'buy' WHEN 1 THEN 'sell' END;

CREATE OR REPLACE FUNCTION broker_verb(verb int) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE RETURN
    ('{ADD,QUOTE,BUY,COMMIT_BUY,CANCEL_BUY,SELL,COMMIT_SELL,CANCEL_SELL,SET_BUY_AMOUNT,CANCEL_SET_BUY,SET_BUY_TRIGGER,SET_SELL_AMOUNT,SET_SELL_TRIGGER,CANCEL_SET_SELL,DUMPLOG,DISPLAY_SUMMARY}'::text[])[verb];

-- An entry of the log without its notes, and where they begin; null behind a kind that is not known here.
CREATE OR REPLACE FUNCTION broker_entry(value bytea, OUT number bigint, OUT time_ms bigint, OUT command text, OUT symbol text, OUT cents bigint,
    OUT file text, OUT reply int, OUT refusal int, OUT notes_at int) LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path FROM CURRENT AS $$
DECLARE at int := 18;
BEGIN
    number := broker_number(value, 1);
    time_ms := broker_number(value, 9);
    IF get_byte(value, 17) = 1 THEN
        command := broker_verb(get_byte(value, 18));
        at := 20;
        IF get_byte(value, 19) = 1 THEN
            at := at + 4 + broker_length(value, at);
        END IF;
        IF get_byte(value, at) = 1 THEN
            symbol := broker_symbol(value, at + 1);
            at := at + 3;
        END IF;
        at := at + 1;
        IF get_byte(value, at) = 1 THEN
            cents := broker_number(value, at + 1);
            at := at + 8;
        END IF;
        at := at + 1;
        IF get_byte(value, at) = 1 THEN
            file := convert_from(substr(value, at + 6, broker_length(value, at + 1)), 'UTF8');
            at := at + 4 + broker_length(value, at + 1);
        END IF;
        at := at + 1;
    END IF;
    reply := get_byte(value, at);
    IF reply = 1 THEN
        refusal := get_byte(value, at + 1);
    END IF;
    notes_at := at + 1 + ('{1,0,8,16,24,19,8,8,0,0,8,0,0,0}'::int[])[reply];
END $$;

-- The notes of an entry, in their order: a hit is a question to the quote server, moved is free cash that came or went, done is a trigger that fired or something that
-- lapsed, a deal is shares at a price. Origin is the number of the command that it belongs to.
CREATE OR REPLACE FUNCTION broker_notes(value bytea, notes_at int) RETURNS TABLE (nth int, note text, origin bigint, command text, symbol text, cents bigint, shares bigint, quoted_for text, key text)
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE ROWS 3 SET search_path FROM CURRENT AS $$
DECLARE at int := notes_at + 4;
BEGIN
    FOR counted IN 1 .. broker_length(value, notes_at) LOOP
        nth := counted; origin := null; command := null; symbol := null; cents := null; shares := null; quoted_for := null; key := null;
        CASE get_byte(value, at)
        WHEN 1 THEN
            note := 'hit'; cents := broker_number(value, at + 1); symbol := broker_symbol(value, at + 9);
            at := at + 12;
            quoted_for := convert_from(substr(value, at + 5, broker_length(value, at)), 'UTF8');
            at := at + 4 + broker_length(value, at) + 8;
            key := convert_from(substr(value, at + 5, broker_length(value, at)), 'UTF8');
            at := at + 4 + broker_length(value, at);
        WHEN 2 THEN
            note := 'moved'; origin := broker_number(value, at + 1); cents := broker_number(value, at + 10);
            cents := CASE get_byte(value, at + 9) WHEN 1 THEN cents ELSE -cents END;
            at := at + 18;
        WHEN 3 THEN
            note := 'done'; origin := broker_number(value, at + 1); command := broker_verb(get_byte(value, at + 9));
            symbol := broker_symbol(value, at + 10); cents := broker_number(value, at + 13);
            at := at + 21;
        WHEN 4 THEN
            note := 'deal'; origin := broker_number(value, at + 1); command := broker_verb(get_byte(value, at + 9));
            symbol := broker_symbol(value, at + 10); shares := broker_number(value, at + 13); cents := broker_number(value, at + 21);
            at := at + 29;
        ELSE
            RETURN; -- of a kind that is not known here
        END CASE;
        RETURN NEXT;
    END LOOP;
END $$;

CREATE OR REPLACE VIEW broker_accounts AS
    SELECT broker_user(i.key) AS user_name, broker_money(broker_number(i.value, 2)) AS cash, broker_time(broker_number(i.value, 10)) AS latest,
        broker_number(i.value, 26) - broker_number(i.value, 18) AS pending_buys, broker_number(i.value, 42) - broker_number(i.value, 34) AS pending_sells,
        broker_number(i.value, 50) AS log_entries
    FROM pares_items i, (VALUES (1)) read_only WHERE i.key >= 'ba'::bytea AND i.key < 'bb'::bytea AND get_byte(i.value, 1) = 1;

CREATE OR REPLACE VIEW broker_holdings AS
    SELECT broker_user(i.key) AS user_name, broker_symbol(i.key, length(i.key) - 3) AS symbol, broker_number(i.value, 1) AS shares
    FROM pares_items i, (VALUES (1)) read_only WHERE i.key >= 'bh'::bytea AND i.key < 'bi'::bytea;

CREATE OR REPLACE VIEW broker_pending AS
    SELECT broker_user(i.key) AS user_name, broker_way(get_byte(i.key, length(i.key) - 9)) AS way, broker_place(i.key) AS place,
        broker_symbol(i.value, 9) AS symbol, broker_number(i.value, 12) AS shares, broker_money(broker_number(i.value, 20)) AS amount,
        broker_time(broker_number(i.value, 28)) AS placed, broker_number(i.value, 1) AS number
    FROM pares_items i, (VALUES (1)) read_only WHERE i.key >= 'bp'::bytea AND i.key < 'bq'::bytea;

-- Of a buy the amount is reserved; of a sell so much is to be sold, and its shares are reserved. Without a price it is not armed.
CREATE OR REPLACE VIEW broker_triggers AS
    SELECT broker_user(i.key) AS user_name, CASE get_byte(i.key, 1) WHEN 98 THEN 'buy' ELSE 'sell' END AS way,
        broker_symbol(i.key, length(i.key) - 3) AS symbol, broker_money(broker_number(i.value, 1)) AS amount,
        CASE get_byte(i.value, 9) WHEN 1 THEN broker_money(broker_number(i.value, 10)) END AS price,
        CASE get_byte(i.value, 9) WHEN 1 THEN broker_number(i.value, 18) END AS shares,
        CASE get_byte(i.value, 9) WHEN 1 THEN broker_number(i.value, 26) END AS number
    FROM pares_items i, (VALUES (1)) read_only
    WHERE (i.key >= 'bb'::bytea AND i.key < 'bc'::bytea) OR (i.key >= 'bs'::bytea AND i.key < 'bt'::bytea);

-- A user's entries by place: the order of execution. Nobody's have no user. What was refused has a refusal, by its number on the protocol page.
CREATE OR REPLACE VIEW broker_log AS
    SELECT nullif(broker_user(i.key), '') AS user_name, broker_place(i.key) AS place, e.number, broker_time(e.time_ms) AS at, e.command, e.symbol,
        broker_money(e.cents) AS amount, e.file, e.refusal
    FROM pares_items i, broker_entry(i.value) e WHERE i.key >= 'bl'::bytea AND i.key < 'bm'::bytea;

-- What entries did. The amount is a price of a hit and of a deal.
CREATE OR REPLACE VIEW broker_log_notes AS
    SELECT nullif(broker_user(i.key), '') AS user_name, broker_place(i.key) AS place, e.number, broker_time(e.time_ms) AS at, n.nth, n.note, n.origin,
        n.command, n.symbol, broker_money(n.cents) AS amount, n.shares, n.quoted_for, n.key
    FROM pares_items i, broker_entry(i.value) e, broker_notes(i.value, e.notes_at) n WHERE i.key >= 'bl'::bytea AND i.key < 'bm'::bytea;
