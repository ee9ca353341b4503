// Notices: a trigger has fired, a pending order has lapsed, an order was filled. Shown until they are put away, and read out.

import { el, say, timeText } from './dom.js';
import { dollarsOf, sharesText } from './money.js';
import { spoken } from './words.js';

/** Most that are shown at a time; the oldest goes. */
const SHOWN_MAX = 4;

const TITLES = { fired: 'Trigger fired', lapsed: 'Lapsed', settled: 'Done', order: 'Order', doubt: 'Not known' };
const SIDES = { buy: ['bought', 'buy'], sell: ['sold', 'sell'] };

const ENDS = {
  traded: 'The rest stays open.', filled: 'The order is filled.', void: 'It is reversed.', reduced: 'will not trade',
  cancelled: 'was cancelled', expired: 'has expired', refused: 'was refused by the exchange',
};

function orderWords({ what, side, symbol, shares, amount, reason }) {
  const [done] = SIDES[side];
  const of = `${sharesText(shares)} of ${symbol}`;
  if (what === 'repaid') return `The debt from a void trade in ${symbol} was paid: ${shares ? sharesText(shares) : dollarsOf(amount)}.`;
  if (what === 'void') return `The exchange has declared void a trade of ${of} for ${dollarsOf(amount)}. ${ENDS.void}`;
  if (what === 'traded' || what === 'filled') return `You ${done} ${of} for ${dollarsOf(amount)}. ${ENDS[what]}`;
  return `An order to ${side} ${of} at ${dollarsOf(amount)} ${ENDS[what]}${reason ? `: ${spoken(reason)}` : ''}.`;
}

/** A notice in words. */
export function wordsOf(notice) {
  const [done, side] = SIDES[notice.way] ?? ['traded', 'order'];
  const of = notice.symbol ? ` of ${notice.symbol}` : '';
  const what = notice.shares == null ? '' : ` ${sharesText(notice.shares)}${of}`;
  const amount = notice.amount == null ? '' : ` for ${dollarsOf(notice.amount)}`;
  if (notice.kind === 'fired') return `A ${side} trigger fired: ${done}${what || of}${amount}.`;
  if (notice.kind === 'lapsed') return `A pending ${side}${of} was not confirmed within 60 seconds. It was released, and nothing traded.`;
  if (notice.kind === 'order') return orderWords(notice);
  return notice.text ?? `${what}${amount}`.trim();
}

let covering = null;

/** Tells the page how much of it the notices cover. */
function cover(list) {
  covering ??= new ResizeObserver(() => document.body.style.setProperty('--covered', `${list.offsetHeight}px`));
  covering.observe(list);
}

/** Shows a notice. A settled one was said already by the form that asked for it, and an order that was placed or accepted is in the list. */
export function show(notice) {
  if (!(notice.kind in TITLES) || notice.kind === 'settled' || ['placed', 'accepted'].includes(notice.what)) return;
  const words = wordsOf(notice);
  const list = document.getElementById('notices');
  const close = el('button', { class: 'quiet', 'aria-label': `Close: ${words}`, onclick: () => box.remove() }, 'Close');
  const box = el('div', { class: `notice ${notice.kind}` },
    el('p', {}, el('strong', {}, TITLES[notice.kind]), ` ${timeText(notice.time_ms ?? Date.now())}`), el('p', {}, words), close);
  list.append(box);
  cover(list);
  while (list.children.length > SHOWN_MAX) list.firstElementChild.remove();
  say(words);
}
