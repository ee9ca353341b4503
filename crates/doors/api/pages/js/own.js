// Own orders that are in flight or at work, and own trades.

import * as api from './api.js';
import { card, el, refill, say, table, timeText } from './dom.js';
import { action, errorPlace, field, form } from './forms.js';
import { grouped, shown } from './prices.js';
import { noteEntered, readOrders, state, symbolOf } from './state.js';
import { outcomeText } from './outcome.js';
import { spoken } from './words.js';

/** A session that copies another member shows that one's, and may ask for nothing. */
const isCopy = () => Boolean(api.who()?.copied);
const whose = (what) => (isCopy() ? `${what} (member ${api.who().copied})` : `Own ${what.toLowerCase()}`);

/** Own orders, each with what can be done to it. */
export function ordersCard(hear) {
  const body = el('div', { id: 'own-orders' });
  const error = errorPlace();
  const changing = el('dialog', { 'aria-labelledby': 'change-title' });
  const all = el('div', { class: 'buttons' }, action({
    id: 'cancel-all', label: 'Cancel all', isQuiet: true,
    work: async (waiting) => {
      const { executed } = await api.cancelAll(waiting);
      readOrders();
      return `${grouped(executed)} cancelled.`;
    },
  }));
  const draw = () => {
    all.hidden = isCopy() || state.orders.length === 0;
    const rows = state.orders.map((order) => line(order, error, changing));
    refill(body, table(whose('Open orders'), [['Symbol'], ['Side'], ['Limit', true], ['Traded', true], ['Left', true], ['State'], ['Actions']], rows, 'No open orders.'));
  };
  for (const topic of ['orders', 'instruments']) hear(topic, draw);
  draw();
  return card(whose('Orders'), 'orders', body, error, all, changing);
}

const wordsOf = (order) => `${order.side ?? ''} ${grouped(order.remaining)} ${symbolOf(order.instrument)}`;

function line(order, error, changing) {
  const name = order.client_order_id;
  const cancel = action({
    id: `cancel-${name}`, label: 'Cancel', isQuiet: true, error,
    work: async (waiting) => {
      const outcome = await api.cancel(name, waiting);
      readOrders();
      return outcomeText(outcome);
    },
  });
  cancel.firstChild.setAttribute('aria-label', `Cancel ${wordsOf(order)}`);
  const change = el('button', { class: 'second', id: `change-${name}`, 'aria-label': `Change ${wordsOf(order)}`, onclick: () => openChange(changing, order) }, 'Change');
  return [symbolOf(order.instrument), el('span', { class: order.side }, order.side ?? '–'), shown(state.entered.get(name)),
    grouped(order.executed), grouped(order.remaining), spoken(order.state), isCopy() ? '–' : el('span', { class: 'buttons' }, change, cancel)];
}

function openChange(dialog, order) {
  const name = order.client_order_id;
  const total = (BigInt(order.executed) + BigInt(order.remaining)).toString();
  const price = field({ id: 'new-price', name: 'price', label: 'New limit', kind: 'price', value: shown(state.entered.get(name)).replace(/[–,]/g, '') });
  const quantity = field({ id: 'new-quantity', name: 'quantity', label: 'New total quantity', kind: 'whole', value: total, hint: 'Includes the shares already traded.' });
  const made = form({
    id: 'change', fields: [price, quantity], button: 'Change the order',
    submit: async (values, waiting) => {
      const outcome = await api.change(name, values, waiting);
      noteEntered(name, values.price);
      dialog.close();
      readOrders();
      say(outcomeText(outcome));
      return '';
    },
  });
  refill(dialog, el('h2', { id: 'change-title' }, `Change ${wordsOf(order)}`), made.element,
    el('button', { class: 'quiet', onclick: () => dialog.close() }, 'Keep it unchanged'));
  dialog.showModal();
}

/** Own trades since the page signed on. */
export function fillsCard(hear) {
  const body = el('div', { id: 'own-fills' });
  const row = (fill) => [timeText(fill.ms), symbolOf(fill.instrument), el('span', { class: fill.side }, fill.side), shown(fill.price), grouped(fill.quantity), grouped(fill.remaining)];
  const draw = () => refill(body, table(whose('Trades, newest first'), [['Time'], ['Symbol'], ['Side'], ['Price', true], ['Shares', true], ['Left', true]], state.fills.map(row), 'No trades since you signed on.'));
  hear('fills', draw);
  draw();
  return card(whose('Trades'), 'fills', body);
}
