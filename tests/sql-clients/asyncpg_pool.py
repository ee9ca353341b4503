"""A pool of asyncpg's, which sends RESET ALL when a connection goes back: `asyncpg_pool.py HOST PORT`."""

import asyncio
import sys

import asyncpg


async def main():
    pool = await asyncpg.create_pool(
        host=sys.argv[1], port=int(sys.argv[2]), user="postgres", database="postgres", min_size=1, max_size=1, timeout=60
    )
    async with pool.acquire() as connection:
        await connection.execute("CREATE TABLE note (id int PRIMARY KEY, what text)")
    for id in range(3):
        async with pool.acquire() as connection:
            await connection.execute("SET default_transaction_isolation = 'read committed'")
            await connection.execute("INSERT INTO note VALUES ($1, $2)", id, "auto")
        async with pool.acquire() as connection, connection.transaction(isolation="serializable"):
            await connection.execute("UPDATE note SET what = 'in a transaction' WHERE id = $1", id)
        async with pool.acquire() as connection:
            try:
                await connection.execute("INSERT INTO note VALUES ($1, $2)", id, "twice")
            except asyncpg.UniqueViolationError:
                pass
            else:
                raise AssertionError("a key twice")
            assert await connection.fetchval("SELECT what FROM note WHERE id = $1", id) == "in a transaction"
    async with pool.acquire() as connection:
        await connection.copy_records_to_table("note", records=[(3, "copied")])
        assert await connection.fetchval("SELECT count(*) FROM note") == 4
    await pool.close()


asyncio.run(main())
print("done")
