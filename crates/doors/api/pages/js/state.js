// What the pages know at the moment. Who wants to hear of changes listens to: session, instruments, symbol, book, trades,
// candles, candle, interval, ticker, orders, fills, feed, second.

import * as api from './api.js';
import { empty } from './book.js';
import { mark } from './topics.js';

/** Fills that are kept. */
const FILLS_MAX = 200;

export const state = {
  /** As the API has them; by symbol, in its order. */
  instruments: [],
  /** The one in hand. */
  symbol: '',
  book: empty(),
  /** The market's trades of it, the newest first; its candles, the oldest first, and of which interval; how it trades. */
  trades: [],
  candles: [],
  interval: '1m',
  ticker: {},
  /** Own orders that are in flight or at work, as the API has them. */
  orders: [],
  /** Name -> price of what this page entered: the exchange tells no price of an order. */
  entered: new Map(),
  /** Own trades since this page signed on, the newest first. */
  fills: [],
  /** off, connecting, live. */
  feed: 'off',
};

/** The instrument in hand; undefined if there is none. */
export const inHand = () => state.instruments.find((one) => one.symbol === state.symbol);

/** What an instrument of that number is called. */
export const symbolOf = (number) => state.instruments.find((one) => one.instrument === number)?.symbol ?? `instrument ${number}`;

let keptFor = '';
/** Own orders as they are being read, and whether they are read once more behind that. */
let reading = null;
let isReadAgain = false;

/** Somebody is here: what another one had is forgotten. Who comes back finds the prices and trades that no server tells again. */
export function keepFor({ member, copied }) {
  // What is being read for another one is waited for by nobody.
  [reading, isReadAgain] = [null, false];
  state.orders = [];
  const one = `${member} ${copied}`;
  if (one === keptFor) return;
  keptFor = one;
  state.fills = [];
  state.entered.clear();
}

/** Takes another instrument in hand. */
export function choose(symbol) {
  if (symbol === state.symbol) return;
  Object.assign(state, { symbol, book: empty(), trades: [], candles: [], ticker: {} });
  for (const topic of ['symbol', 'book', 'trades', 'candles', 'ticker']) mark(topic);
}

/** Reads instruments anew; what cannot be read stays as it was. Says whether it could. */
export async function readInstruments() {
  const told = await api.instruments().catch(() => null);
  if (!told) return false;
  state.instruments = told;
  mark('instruments');
  if (!inHand() && told.length) choose(told[0].symbol);
  return true;
}

/** Reads own orders anew. Asked for while they are being read, they are read once more, since what was read may be older. */
export function readOrders() {
  isReadAgain = reading != null;
  if (reading) return reading;
  const read = api.orders().then((told) => { state.orders = told; mark('orders'); }, () => {}).finally(() => {
    if (reading !== read) return;
    reading = null;
    if (isReadAgain) readOrders();
  });
  reading = read;
  return read;
}

/** An order has that price, as this page asked for it or was told. */
export function noteEntered(name, price) {
  state.entered.set(name, price);
  mark('orders');
}

/** Takes in own trades, the newest first; one that was told before is left out. */
export function noteFill(fill) {
  if (state.fills.some((one) => one.shard === fill.shard && one.number === fill.number)) return;
  state.fills.unshift({ ...fill, ms: Date.now() });
  state.fills.length = Math.min(state.fills.length, FILLS_MAX);
  mark('fills');
}
