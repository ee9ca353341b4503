// Triggers: what is set and armed for all stocks, and the forms that set, arm and cancel those of the stock in hand.

import * as api from './api.js';
import { card, el, refill, setText } from './dom.js';
import { action, errorPlace, field, form } from './forms.js';
import { centsOf, dollars, dollarsOf, sharesText } from './money.js';
import { refresh, state } from './state.js';
import { cash, choose, sharesOf } from './ticket.js';

const WAYS = {
  buy: { key: 'buy_triggers', title: 'Buy when the price falls', price: 'Buy at or below', set: 'Reserve cash', arm: 'Arm buy', cancel: 'Cancel the buy trigger' },
  sell: { key: 'sell_triggers', title: 'Sell when the price rises', price: 'Sell at or above', set: 'Set amount', arm: 'Arm sell', cancel: 'Cancel the sell trigger' },
};

/** The trigger of a stock; undefined if there is none. */
export const triggerOf = (way, symbol) => state.account?.[WAYS[way].key].find((row) => row.symbol === symbol);

/** How much money a trigger is for, cents: a buy's reserve, a sell's amount. */
export const amountOf = (trigger) => centsOf(trigger?.reserve ?? trigger?.amount ?? '0.00') ?? 0n;

const inHand = () => {
  if (!state.symbol) throw Object.assign(new Error('Choose a stock first.'), { reason: null, status: 400 });
  return state.symbol;
};

/** The forms for the stock in hand. */
export function triggerForms(hear) {
  const made = card('Triggers', 'trigger-forms', ways('buy', hear), ways('sell', hear));
  const draw = () => setText(made.querySelector('h2'), state.symbol ? `Triggers for ${state.symbol}` : 'Triggers');
  hear('symbol', draw);
  draw();
  return made;
}

function ways(way, hear) {
  const of = WAYS[way];
  const now = el('p', { class: 'muted', id: `${way}-trigger-now` });
  const amount = amountForm(way);
  const price = priceForm(way);
  const cancel = el('div', { class: 'buttons' }, action({
    id: `cancel-set-${way}`, label: of.cancel, isQuiet: true, describedBy: `${way}-trigger-now`,
    work: async (waiting) => {
      const symbol = inHand();
      await api.command(`cancel-set-${way}`, { symbol }, waiting);
      await refresh();
      return `The ${way} trigger of ${symbol} is cancelled.`;
    },
  }));
  const draw = () => {
    setText(now, nowText(way));
    cancel.hidden = !triggerOf(way, state.symbol);
    amount.redo();
    price.redo();
  };
  for (const topic of ['account', 'symbol']) hear(topic, draw);
  draw();
  return el('fieldset', { class: 'way' }, el('legend', {}, of.title), now, amount.element, price.element, cancel);
}

function nowText(way) {
  const trigger = triggerOf(way, state.symbol);
  if (!trigger) return 'None is set.';
  const amount = dollars(amountOf(trigger));
  const held = way === 'buy' ? `${amount} reserved` : `For ${amount}`;
  const shares = trigger.shares ? `, ${sharesText(trigger.shares)} held` : '';
  return trigger.price ? `${held}${shares}, armed at ${dollarsOf(trigger.price)}.` : `${held}, not armed: no price yet.`;
}

function amountForm(way) {
  const amount = field({ id: `${way}-amount`, name: 'amount', label: 'Amount in dollars', kind: 'money' });
  const made = form({
    id: `set-${way}-amount`, fields: [amount], button: WAYS[way].set, isQuiet: true, isRow: true,
    estimate: ({ amount: wanted }) => (wanted ? amountText(way, centsOf(wanted)) : ''),
    submit: async ({ amount: wanted }, waiting) => {
      const symbol = inHand();
      await api.command(`set-${way}-amount`, { symbol, amount: wanted }, waiting);
      made.clear();
      await refresh();
      return way === 'buy' ? `${dollarsOf(wanted)} reserved to buy ${symbol}.` : `The amount to sell of ${symbol} is ${dollarsOf(wanted)}.`;
    },
  });
  return made;
}

function amountText(way, wanted) {
  const before = triggerOf(way, state.symbol);
  const cleared = before?.price ? ' The old price is cleared.' : '';
  if (way === 'sell') return `Nothing is held until you set a price.${cleared}`;
  const left = cash() + amountOf(before) - wanted;
  return left < 0n ? `That exceeds your cash by ${dollars(-left)}.` : `Taken from your cash until it fires or you cancel; ${dollars(left)} is left.${cleared}`;
}

function priceForm(way) {
  const price = field({ id: `${way}-price`, name: 'price', label: WAYS[way].price, kind: 'money' });
  const made = form({
    id: `set-${way}-trigger`, fields: [price], button: WAYS[way].arm, isQuiet: true, isRow: true,
    estimate: ({ price: wanted }) => (wanted ? priceText(way, centsOf(wanted)) : ''),
    submit: async ({ price: wanted }, waiting) => {
      const symbol = inHand();
      await api.command(`set-${way}-trigger`, { symbol, price: wanted }, waiting);
      made.clear();
      await refresh();
      return `The ${way} trigger of ${symbol} is armed at ${dollarsOf(wanted)}.`;
    },
  });
  return made;
}

function priceText(way, price) {
  const trigger = triggerOf(way, state.symbol);
  if (!trigger) return 'Set the amount first.';
  const shares = amountOf(trigger) / price;
  if (shares === 0n) return 'The amount is less than one share at this price.';
  const worth = dollars(shares * price);
  if (way === 'buy') return `Buys ${sharesText(shares)} for ${worth} at this price; the rest of the reserve is released.`;
  const owned = sharesOf(state.symbol) + BigInt(trigger.shares ?? 0);
  const held = shares > owned ? `; you own only ${sharesText(owned)}` : '';
  return `Holds ${sharesText(shares)} and sells them for ${worth} or more${held}.`;
}

/** All triggers, of all stocks. */
export function triggerTable(hear) {
  const body = el('div');
  const error = errorPlace();
  const draw = () => {
    const rows = ['buy', 'sell'].flatMap((way) => (state.account?.[WAYS[way].key] ?? []).map((row) => line(way, row, error)));
    refill(body, rows.length ? el('ul', { class: 'plain rows' }, rows) : el('p', { class: 'muted' }, 'No trigger is set.'));
  };
  hear('account', draw);
  draw();
  return card('All triggers', 'all-triggers', body, error);
}

function line(way, row, error) {
  const at = row.price ? `${way === 'buy' ? 'at or below' : 'at or above'} ${dollarsOf(row.price)}` : 'not armed: no price';
  const words = `${way === 'buy' ? 'Buy' : 'Sell'} ${row.symbol} for ${dollars(amountOf(row))}`;
  const id = `row-${way}-${row.symbol}`;
  return el('li', {}, el('p', { id }, el('strong', {}, words), `, ${at}`), el('div', { class: 'buttons' },
    el('button', { class: 'quiet', id: `${id}-show`, 'aria-describedby': id, onclick: () => choose(row.symbol) }, 'Show'),
    action({
      id: `${id}-cancel`, label: 'Cancel', isQuiet: true, describedBy: id, error,
      work: async (waiting) => {
        await api.command(`cancel-set-${way}`, { symbol: row.symbol }, waiting);
        await refresh();
        return `The ${way} trigger of ${row.symbol} is cancelled.`;
      },
    })));
}
