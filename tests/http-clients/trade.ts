// Trades through the client that openapi-typescript and openapi-fetch make of the published document: `trade.js URL`.

import { strict as assert } from "node:assert";
import createClient from "openapi-fetch";
import type { components, paths } from "./api.js";

type Order = components["schemas"]["OrderForm"];
const baseUrl = process.argv[2];

async function signedOn(member: number) {
  const open = createClient<paths>({ baseUrl });
  const { data } = await open.POST("/v1/sign-on", { body: { member, session: 0 } });
  assert(data && "token" in data);
  return createClient<paths>({ baseUrl, headers: { Authorization: `Bearer ${data.token}` } });
}

const [seller, buyer] = [await signedOn(27), await signedOn(28)];
const listed = (await seller.GET("/v1/instruments")).data!.instruments[0];

const order = (client_order_id: string, side: string, price: string, quantity: string): Order => ({
  client_order_id, symbol: listed.symbol, side, price, quantity, post_only: false,
});
const byName = { path: { name: "1" } };

const entered = await seller.POST("/v1/orders", { body: order("1", "sell", "30", "100") });
assert.equal(entered.response.status, 201);
assert.equal(entered.data?.remaining, "100");
const terms = { client_order_id: "2", price: "29", quantity: "90" };
const amended = await seller.PATCH("/v1/orders/by-name/{name}", { params: byName, body: terms });
assert.equal(amended.data?.remaining, "90");
const filled = await buyer.POST("/v1/orders", { body: order("1", "buy", "29", "40") });
assert.equal(filled.data?.status, "filled");
const read = await seller.GET("/v1/orders/by-name/{name}", { params: byName });
assert.deepEqual([read.data?.state, read.data?.executed, read.data?.remaining], ["working", "40", "50"]);
const cancel = { ...byName, query: { client_order_id: "3" } };
const cancelled = await seller.DELETE("/v1/orders/by-name/{name}", { params: cancel });
assert.equal(cancelled.data?.status, "cancelled");

const page = await seller.GET("/v1/fills", { params: { query: { shard: listed.shard } } });
assert.deepEqual(page.data?.fills.map((fill) => [fill.price, fill.quantity]), [["29", "40"]]);
const refused = await seller.POST("/v1/orders", { body: order("4", "sell", "20", "0") });
assert.equal(refused.error?.reason, "zero_quantity");
console.log("traded");
