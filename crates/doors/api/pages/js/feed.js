// The socket: own orders, and the market of the instrument in hand. It is made again when it breaks, and goes on from the numbers where it stood.

import * as api from './api.js';
import { after, empty } from './book.js';
import { readCandles, takeCandle } from './candles.js';
import { line } from './line.js';
import { noteEntered, noteFill, readOrders, state } from './state.js';
import { readTape, takeTrade } from './tape.js';
import { listen, mark } from './topics.js';

/** Shard -> the number of its stream that comes next; what is told once is not told again. */
const next = new Map();

const wire = line({
  dial: () => (api.who() ? api.socket() : null),
  opened,
  heard: (text) => receive(text),
  // If it is the session that has ended, asking for anything signs on again.
  broken: () => { if (api.who()) api.standing().catch(() => {}); },
  standing: (feed) => { state.feed = feed; mark('feed'); },
});

const say = (wish) => wire.send(JSON.stringify({ op: 'subscribe', ...wish }));

/** Opens it, and keeps it open while somebody is signed on. */
export const open = () => wire.open();

/** Closes it for good. */
export function close() {
  next.clear();
  wire.close();
}

function opened() {
  say({ channel: 'orders', from: next.size ? Object.fromEntries(next) : undefined });
  look();
  readOrders();
}

// Has all that is in hand told.
function look() {
  if (!state.symbol) return;
  ask('book');
  ask('ticker');
  lookAtTape();
  lookAtCandles();
}

// A book that is asked for again is told from the beginning, a ticker as it is.
const ask = (channel) => say({ channel, symbol: state.symbol });

async function lookAtTape() {
  const { symbol } = state;
  const newest = await readTape();
  if (symbol === state.symbol) say({ channel: 'trades', symbol, after: newest });
}

async function lookAtCandles() {
  const { symbol, interval } = state;
  await readCandles();
  if (symbol === state.symbol && interval === state.interval) say({ channel: 'candles', symbol, interval });
}

const HEARD = {
  book: takeBook,
  ticker: (message) => { if (message.symbol === state.symbol) { state.ticker = message; mark('ticker'); } },
  trades: (message) => { if (message.symbol === state.symbol && !takeTrade(message)) lookAtTape(); },
  // What traded between the reading and the asking.
  trades_live: ({ symbol, last }) => { if (symbol === state.symbol && last && last !== state.trades[0]?.number) lookAtTape(); },
  trades_not: ({ symbol, reason }) => { if (symbol === state.symbol && reason === 'not_kept') lookAtTape(); },
  candles: takeCandle,
  book_not: ({ symbol }) => { if (symbol === state.symbol) noBook(); },
  orders: takeOrders,
  orders_live: ({ shard, next: number }) => { next.set(String(shard), number); },
  orders_not: ({ shard, reason, oldest }) => {
    // From there on there is something to tell: what is not kept any more is gone, and what is not used yet was never told.
    if (reason === 'unknown_shard' || oldest === '0') next.delete(String(shard));
    else next.set(String(shard), oldest);
    readOrders();
  },
};

/** A message of the exchange, as it came. */
export function receive(text) {
  const message = JSON.parse(text);
  HEARD[message.channel]?.(message);
}

function takeBook(message) {
  if (message.symbol !== state.symbol) return;
  // Until it is told anew, what builds on something else is not looked at.
  if (message.type === 'delta' && state.book.number === null) return;
  const book = after(state.book, message);
  state.book = book ?? empty();
  mark('book');
  if (!book) ask('book');
}

function noBook() {
  state.book = { ...empty(), isMissing: true };
  mark('book');
}

function takeOrders(message) {
  next.set(String(message.shard), (BigInt(message.number) + 1n).toString());
  if (message.type === 'trade') noteFill(message);
  if (message.type === 'news' && message.change === 'repriced') noteEntered(message.client_order_id, message.price);
  readOrders();
}

listen('symbol', look);
listen('interval', lookAtCandles);
// A server that has just started has received nothing yet.
listen('instruments', () => { if (state.book.isMissing) look(); });
