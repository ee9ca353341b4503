// postgres.js on a connection that was reset as pools do: `postgres_js.mjs HOST PORT`.
import assert from 'node:assert'
import postgres from 'postgres'

const [host, port] = process.argv.slice(2)
const resets = ['RESET ALL', "SET default_transaction_isolation = 'read committed'", 'DISCARD ALL']
let id = 0

async function use(sql, reset) {
  id += 1
  await sql.unsafe(reset)
  // Sent one behind the other, before any of them is answered.
  const [, found] = await Promise.all([
    sql`INSERT INTO note VALUES (${id}, 'first')`,
    sql`SELECT what FROM note WHERE id = ${id}`,
    sql`UPDATE note SET what = 'second' WHERE id = ${id}`,
  ])
  assert.equal(found[0].what, 'first')
  await assert.rejects(sql`INSERT INTO note VALUES (${id}, 'twice')`, { code: '23505' })
  await sql.begin('isolation level serializable', async (transaction) => {
    const [note] = await transaction`SELECT what FROM note WHERE id = ${id}`
    assert.equal(note.what, 'second')
    await transaction`UPDATE note SET what = 'third' WHERE id = ${id}`
  })
  const [{ notes }] = await sql`SELECT count(*)::int AS notes FROM note WHERE what = 'third'`
  assert.equal(notes, id)
}

for (const prepare of [true, false]) {
  const sql = postgres({ host, port, username: 'postgres', database: 'postgres', max: 1, prepare, onnotice() {} })
  if (id === 0) await sql`CREATE TABLE note (id int PRIMARY KEY, what text)`
  // It does not notice that DISCARD ALL drops what it has prepared.
  for (const reset of resets.filter((reset) => !prepare || reset !== 'DISCARD ALL')) await use(sql, reset)
  await sql.end()
}
console.log('done')
