// The market's trades of the instrument in hand, as the exchange numbers them: each names the one before, so one that is missing is noticed.

import * as api from './api.js';
import { card, el, refill, table, timeText } from './dom.js';
import { msOf } from './candles.js';
import { grouped, shown } from './prices.js';
import { state } from './state.js';
import { mark } from './topics.js';

/** Trades that are kept and shown. */
const TRADES_MAX = 100;

/** Reads them anew; gives the number of the newest, after which the socket goes on. */
export async function readTape() {
  const { symbol } = state;
  const told = await api.trades(symbol, TRADES_MAX).catch(() => []);
  if (symbol !== state.symbol) return undefined;
  state.trades = told;
  mark('trades');
  return told[0]?.number;
}

/** Takes in what happened next. Says whether it fits what is here; else they are to be read anew. */
export function takeTrade(message) {
  const { type, number, previous } = message;
  // What comes behind it names no trade before, and is read with all that is there.
  if (type === 'gap') return true;
  if (type === 'busted') {
    for (const one of state.trades) if (one.number === number) one.is_busted = true;
  } else {
    if (state.trades.some((one) => one.number === number)) return true;
    if (state.trades.length && previous !== state.trades[0].number) return false;
    state.trades.unshift(message);
    state.trades.length = Math.min(state.trades.length, TRADES_MAX);
  }
  mark('trades');
  return true;
}

/** The trades, the newest first. */
export function tapeCard(hear) {
  const body = el('div', { id: 'tape' });
  const row = (one) => [timeText(msOf(one.time_ns)), el('span', { class: one.taker }, shown(one.price)), grouped(one.quantity), one.is_busted ? 'void' : one.taker ?? 'auction'];
  const draw = () => refill(body, table('Trades of the market', [['Time'], ['Price', true], ['Shares', true], ['Taker']], state.trades.map(row), 'No trades yet.'));
  hear('trades', draw);
  draw();
  return card('Trades', 'trades', body);
}
