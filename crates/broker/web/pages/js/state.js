// What the pages know at the moment. Who wants to hear of changes listens to: account, quotes, symbol, feed, second, history.

import * as api from './api.js';
import { centsOf } from './money.js';
import { listen, mark } from './topics.js';

export { listen, mark };

export const state = {
  /** { name, rights } or null. */
  session: null,
  /** The answer of GET /account; null before the first ADD. */
  account: null,
  /** symbol -> { cents, serverMs }, the latest of each. */
  quotes: new Map(),
  /** symbol -> [{ ms, cents }] that came since the chart of it was filled. */
  ticks: new Map(),
  /** The stock that the trading page is about. */
  symbol: '',
  /** off, connecting, live. */
  feed: 'off',
};

/** A quote came. An older one than we have is left alone. */
export function noteQuote({ symbol, price, server_ms: serverMs }) {
  const cents = centsOf(price);
  const before = state.quotes.get(symbol);
  if (cents == null || (before && before.serverMs > serverMs)) return;
  state.quotes.set(symbol, { cents, serverMs });
  const ticks = state.ticks.get(symbol) ?? [];
  ticks.push({ ms: serverMs, cents });
  if (ticks.length > 1000) ticks.splice(0, 500);
  state.ticks.set(symbol, ticks);
  mark('quotes');
}

let reading = null;
let readAgain = false;

/** Reads the account anew. Asked for while it is being read, it is read once more, since what was read may be older. */
export function refresh() {
  readAgain = reading != null;
  reading ??= readAccount().finally(() => {
    reading = null;
    if (readAgain) refresh();
  });
  return reading;
}

async function readAccount() {
  try {
    state.account = await api.account();
  } catch (problem) {
    if (problem.status === 404) state.account = null;
    else if (problem.status === 401) return signedOut();
    else return;
  }
  mark('account');
  mark('history');
}

/** Forgets everything of a person. */
export function signedOut() {
  Object.assign(state, { session: null, account: null, symbol: '' });
  state.quotes.clear();
  state.ticks.clear();
  mark('session');
}

/** Stocks whose quotes the pages show. */
export function watched() {
  const { holdings = [], buy_triggers: buys = [], sell_triggers: sells = [], orders_held_shares: held = [] } = state.account ?? {};
  const symbols = [...holdings, ...buys, ...sells, ...held].map((row) => row.symbol);
  return [...new Set([state.symbol, ...symbols])].filter(Boolean).sort();
}
