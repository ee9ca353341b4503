// Pending buys and sells, their 60 seconds counting down, and confirming or cancelling the newest of each. What is sent says which one is meant:
// if another window has placed a newer one meanwhile, it is refused, and the account is read again.

import * as api from './api.js';
import { card, el, refill, say, setText } from './dom.js';
import { action, errorPlace } from './forms.js';
import { centsOf, dollars, dollarsOf, sharesText } from './money.js';
import { refresh, state } from './state.js';

const WAYS = [
  { key: 'buys', way: 'buy', title: 'Buys', done: 'Bought' },
  { key: 'sells', way: 'sell', title: 'Sells', done: 'Sold' },
];
/** Seconds left at which it is said aloud. */
const WARNED_AT_S = 15;
const HELD_S = 60;
const warned = new Set();

/** All that is pending. */
export function pendingCard(hear) {
  const body = el('div', { class: 'pending' });
  const error = errorPlace();
  let clocks = [];
  const tick = () => clocks.forEach((clock) => clock());
  const draw = () => {
    clocks = [];
    const lists = WAYS.map((of) => list(of, clocks, error)).filter(Boolean);
    refill(body, lists.length ? lists : el('p', { class: 'muted' }, 'Nothing is pending.'));
    tick();
  };
  hear('account', draw);
  hear('second', tick);
  draw();
  return card('Pending', 'pending', body, error);
}

function list(of, clocks, error) {
  // The newest is the one that can be confirmed; the API lists the oldest first or tells when each was placed.
  const rows = [...(state.account?.[of.key] ?? [])].sort((one, other) => one.placed_ms - other.placed_ms).reverse();
  if (rows.length === 0) return null;
  return [el('h3', {}, of.title), el('ul', { class: 'plain' }, rows.map((row, at) => item(of, row, at === 0, clocks, error)))];
}

function item(of, row, isNewest, clocks, error) {
  const each = centsOf(row.amount) / BigInt(row.shares);
  const id = `${of.way}-${row.number ?? row.placed_ms}`;
  const left = el('span', { class: 'left' });
  const bar = el('progress', { max: HELD_S, 'aria-label': `Seconds left for ${row.symbol}` });
  clocks.push(clock(id, row, left, bar));
  const words = el('p', { id: `${id}-words` }, `${sharesText(row.shares)} of `, el('strong', {}, row.symbol),
    ` at ${dollars(each)}: `, el('strong', {}, dollarsOf(row.amount)));
  const buttons = isNewest
    ? el('div', { class: 'buttons' }, settle(of, 'commit', id, row, error), settle(of, 'cancel', id, row, error))
    : el('p', { class: 'hint' }, 'You can confirm it when the newer ones are done.');
  return el('li', {}, words, el('div', { class: 'clock' }, bar, left), buttons);
}

function settle(of, what, id, row, error) {
  return action({
    id: `${what}-${id}`, label: `${what === 'commit' ? 'Confirm' : 'Cancel'} ${of.way}`, isQuiet: what === 'cancel', describedBy: `${id}-words`, error,
    work: async (waiting) => {
      try {
        const { outcome } = await api.command(`${what}-${of.way}`, { number: row.number }, waiting, id);
        return settledWords(of, what, { ...row, ...outcome });
      } finally {
        await refresh();
      }
    },
  });
}

function settledWords(of, what, { shares, symbol, amount }) {
  const words = `${sharesText(shares)} of ${symbol} for ${dollarsOf(amount)}.`;
  return what === 'commit' ? `${of.done} ${words}` : `Cancelled: ${words}`;
}

function clock(id, row, left, bar) {
  let isOver = false;
  return () => {
    const seconds = Math.ceil((row.until_ms - api.nowMs()) / 1000);
    bar.value = Math.min(HELD_S, Math.max(0, seconds));
    setText(left, seconds > 0 ? `${seconds} s left` : 'expired; being released');
    if (!warned.has(id) && seconds > 0 && seconds <= WARNED_AT_S) {
      warned.add(id);
      say(`${seconds} seconds left to confirm ${row.symbol}.`);
    }
    if (!isOver && seconds < -1) {
      isOver = true;
      refresh();
    }
  };
}
