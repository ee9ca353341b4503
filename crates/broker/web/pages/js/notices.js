// Notices: a trigger has fired, a pending order has lapsed, an order was filled. Shown until they are put away, and read out.

import { el, say, timeText } from './dom.js';
import { dollarsOf, sharesText } from './money.js';

/** Most that are shown at a time; the oldest goes. */
const SHOWN_MAX = 4;

const TITLES = { fired: 'Trigger fired', lapsed: 'Lapsed', settled: 'Done', order: 'Order', doubt: 'Not known' };
const SIDES = { buy: ['bought', 'buy'], sell: ['sold', 'sell'] };

/** A notice in words. */
export function wordsOf(notice) {
  const [done, side] = SIDES[notice.way ?? notice.side] ?? ['traded', 'order'];
  const of = notice.symbol ? ` of ${notice.symbol}` : '';
  const what = notice.shares == null ? '' : ` ${sharesText(notice.shares)}${of}`;
  const amount = notice.amount == null ? '' : ` for ${dollarsOf(notice.amount)}`;
  if (notice.kind === 'fired') return `A ${side} trigger fired: ${done}${what || of}${amount}.`;
  if (notice.kind === 'lapsed') return `A pending ${side}${of} was not confirmed within 60 seconds. It was given back, nothing was traded.`;
  return notice.text ?? `${what}${amount}`.trim();
}

/** Shows a notice. A settled one was said already by the form that asked for it. */
export function show(notice) {
  if (!(notice.kind in TITLES) || notice.kind === 'settled') return;
  const words = wordsOf(notice);
  const list = document.getElementById('notices');
  const close = el('button', { class: 'quiet', 'aria-label': `Close: ${words}`, onclick: () => box.remove() }, 'Close');
  const box = el('div', { class: `notice ${notice.kind}` },
    el('p', {}, el('strong', {}, TITLES[notice.kind]), ` ${timeText(notice.time_ms ?? Date.now())}`), el('p', {}, words), close);
  list.append(box);
  while (list.children.length > SHOWN_MAX) list.firstElementChild.remove();
  say(words);
}
