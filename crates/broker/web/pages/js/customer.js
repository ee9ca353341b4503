// A customer's limits on the exchange and the kill switch, for supervisors.

import * as api from './api.js';
import { card, el, refill, say } from './dom.js';
import { action, errorPlace, field, form } from './forms.js';
import { dollarsOf, grouped } from './money.js';

const LIMITS = [
  { name: 'shares', label: 'Shares of an order', kind: 'whole' },
  { name: 'amount', label: 'Dollars of an order', kind: 'money' },
  { name: 'open_orders', label: 'Open orders, 100 at most', kind: 'whole' },
  { name: 'position', label: 'Shares of a stock', kind: 'whole' },
  { name: 'loss', label: 'Dollars lost on a day', kind: 'money' },
];

/** Choosing a customer, and what is said of one. */
export function customerCard() {
  const name = field({ id: 'customer-name', name: 'name', label: 'Customer' });
  const body = el('div', { id: 'customer-now' });
  const look = form({
    id: 'look', fields: [name], button: 'Look', isQuiet: true, isRow: true,
    submit: async (values) => { await read(body, values.name); return ''; },
  });
  return card('Limits and kill switch', 'customer', look.element, body);
}

async function read(body, name) {
  const now = await api.limits(name);
  refill(body, totals(now), killSwitch(body, now), limitsForm(body, now));
}

function totals(now) {
  const line = (words, value) => el('div', {}, el('dt', {}, words), el('dd', {}, value));
  const result = now.result.startsWith('-') ? `−${dollarsOf(now.result.slice(1))}` : dollarsOf(now.result);
  return el('dl', { class: 'totals' }, line('Open orders', grouped(now.open_orders)), line('Day’s profit or loss on the exchange', result),
    line('Owed for void trades', dollarsOf(now.owed)), line(now.name, now.is_blocked ? 'Blocked: no orders' : 'May place orders'));
}

function killSwitch(body, { name, is_blocked: isBlocked }) {
  const error = errorPlace();
  const label = isBlocked ? `Unblock ${name}` : `Block ${name} and cancel all orders`;
  return el('div', { class: 'buttons' }, action({
    id: 'kill', label, error,
    work: async () => {
      await api.kill(name, !isBlocked);
      await read(body, name);
      return isBlocked ? `${name} may place orders again.` : `${name} is blocked; all open orders are being cancelled.`;
    },
  }), error);
}

function limitsForm(body, { name, set, in_force: inForce }) {
  const shown = (limit, kind) => (limit == null ? 'none' : kind === 'money' ? dollarsOf(limit) : grouped(limit));
  const fields = LIMITS.map(({ name: of, label, kind }) => field({
    id: `limit-${of}`, name: of, label, kind, isOptional: true, value: set[of] ?? '', hint: set[of] == null ? `Standard: ${shown(inForce[of], kind)}` : '',
  }));
  const made = form({
    id: 'limits', fields, button: 'Set the limits', isQuiet: true,
    submit: async (values) => {
      const whole = (of) => (values[of] == null ? undefined : Number(values[of]));
      await api.setLimits(name, { ...values, shares: whole('shares'), open_orders: whole('open_orders'), position: whole('position') });
      await read(body, name);
      say(`The limits of ${name} are set.`);
      return '';
    },
  });
  return made.element;
}
