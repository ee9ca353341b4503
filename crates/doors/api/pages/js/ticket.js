// The ticket: a new order for the instrument in hand.

import * as api from './api.js';
import { card, el, setText } from './dom.js';
import { field, form } from './forms.js';
import { grouped, priceText, shown, unitsOfPrice } from './prices.js';
import { inHand, noteEntered, readOrders, state } from './state.js';
import { outcomeText } from './outcome.js';

const TIMES = [['day', 'Day'], ['ioc', 'Immediate or cancel (IOC)'], ['fok', 'Fill or kill (FOK)'], ['gtc', 'Until cancelled'], ['at_open', 'At the open'], ['at_close', 'At the close']];

/** Puts a price into the ticket. */
export function setPrice(units) {
  const input = document.getElementById('price');
  if (!input) return;
  input.value = priceText(units).replaceAll(',', '');
  input.dispatchEvent(new Event('input', { bubbles: true }));
}

/** The step of prices at a price. */
function tickAt(units) {
  const rows = inHand()?.ticks.filter(({ from }) => from.startsWith('-') || unitsOfPrice(from) <= units) ?? [];
  return unitsOfPrice(rows.at(-1)?.tick ?? '0.01');
}

// An arrow moves the limit by a step; the first one begins at the last trade.
function step(event) {
  const way = { ArrowUp: 1n, ArrowDown: -1n }[event.key];
  if (!way) return;
  event.preventDefault();
  const units = unitsOfPrice(event.target.value);
  const next = units == null ? unitsOfPrice(inHand()?.last ?? '') : units + way * tickAt(units);
  if (next > 0n) setPrice(next);
}

/** The ticket. */
export function ticketCard(hear) {
  const sides = [side('buy', 'Buy', true), side('sell', 'Sell', false)];
  const quantity = field({ id: 'quantity', name: 'quantity', label: 'Shares', kind: 'whole' });
  const price = field({ id: 'price', name: 'price', label: 'Limit', kind: 'price', isOptional: true, hint: 'Leave it empty for a market order. Arrow keys move it by one tick.' });
  price.input.addEventListener('keydown', step);
  const time = el('select', { id: 'time' }, TIMES.map(([value, words]) => el('option', { value }, words)));
  const guarded = el('input', { type: 'checkbox', id: 'guarded' });
  const chosen = () => (sides[1].input.checked ? 'sell' : 'buy');
  const all = el('div', {},
    el('fieldset', { class: 'sides' }, el('legend', { class: 'unseen' }, 'Side'), sides.map(({ input, label }) => [input, label])),
    el('div', { class: 'pair' }, quantity.box, price.box),
    el('div', { class: 'field' }, el('label', { for: 'time' }, 'Time in force'), time),
    el('p', { class: 'check' }, guarded, el('label', { for: 'guarded' }, 'Cancel when this session ends')));
  const made = form({
    id: 'ticket', fields: [{ ...quantity, box: all }, { ...price, box: '' }], button: 'Send the order',
    estimate: (values) => estimate(chosen(), values),
    submit: async (values, waiting) => {
      const order = { symbol: state.symbol, side: chosen(), ...terms(values, time.value) };
      const note = (name) => noteEntered(name, values.price);
      const outcome = await api.enter(order, guarded.checked, note, waiting);
      readOrders();
      return outcomeText(outcome);
    },
  });
  const card_ = card('Order', 'ticket-card', made.element);
  const title = () => { setText(card_.querySelector('h2'), state.symbol ? `Order for ${state.symbol}` : 'Order'); made.redo(); };
  hear('symbol', title);
  title();
  return card_;
}

function side(value, words, isChecked) {
  const input = el('input', { type: 'radio', name: 'side', id: `side-${value}`, value, checked: isChecked });
  return { input, label: el('label', { for: `side-${value}`, class: value }, words) };
}

// What does not match at once of an order at market cannot rest.
function terms({ quantity, price }, time) {
  if (price) return { quantity, price, time_in_force: time };
  return { quantity, kind: 'market', time_in_force: time === 'day' ? 'ioc' : time };
}

function estimate(way, { quantity, price }) {
  const one = inHand();
  if (!one || !quantity) return one ? `Last ${shown(one.last)}, lots of ${grouped(one.lot)}.` : 'Choose an instrument first.';
  const words = `${way === 'buy' ? 'Buy' : 'Sell'} ${grouped(quantity)} ${one.symbol}`;
  return price ? `${words} for ${priceText(unitsOfPrice(price) * BigInt(quantity))} at ${shown(price)}.` : `${words} at market.`;
}
