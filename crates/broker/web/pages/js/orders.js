// Orders on the exchange: the ticket with what an order will hold, those that are open, and all of them, newest first.

import * as api from './api.js';
import { card, el, refill, setText, table, timeText } from './dom.js';
import { action, errorPlace, field, form } from './forms.js';
import { centsOf, dollars, dollarsOf, grouped, sharesText } from './money.js';
import { refresh, state } from './state.js';
import { cash, choose, sharesOf, sides } from './ticket.js';
import { inWords, spoken } from './words.js';

const COLUMNS = [['Placed'], ['Order'], ['State'], ['Traded', true], ['For', true]];
const STATES = {
  waiting: 'Waiting to be sent', routed: 'Sent', open: 'Open',
  filled: 'Filled', cancelled: 'Cancelled', expired: 'Expired', refused: 'Refused by the exchange',
};
/** So many more at a time. */
const LIMIT = 20;
/** Orders of an answer, at most. */
const ANSWER_MAX = 100;

/** The page. */
export function orders(hear) {
  const shown = { orders: [], before: undefined, wanted: LIMIT };
  const [open, all, error] = [el('div'), el('div', { id: 'all-orders' }), errorPlace()];
  const apart = el('p', { id: 'no-exchange' });
  let isReading = false;
  let isOld = false;
  const read = async () => {
    isOld = isReading;
    if (isReading) return;
    isReading = true;
    try {
      await readAll(shown, open, all, error, apart);
    } catch (problem) {
      [, error.textContent] = inWords(problem);
    }
    isReading = false;
    if (isOld) read();
  };
  // The account is read anew after all that happens to an order.
  hear('account', read);
  read();
  return el('div', { class: 'trade' },
    el('h1', { tabindex: '-1' }, 'Orders'),
    el('div', { class: 'column' }, orderTicket(hear)),
    el('div', { class: 'column wide' }, card('Open on the exchange', 'open-orders', apart, open, error), card('All orders', 'all-orders-card', all)));
}

async function readAll(shown, open, all, error, apart) {
  const [working] = await Promise.all([api.orders({ open: true }), readWanted(shown)]);
  setText(apart, working.has_router === false ? 'This broker is not connected to an exchange. Orders wait until it is.' : '');
  refill(open, working.orders.length ? el('ul', { class: 'plain' }, working.orders.map((order) => item(order, error)))
    : el('p', { class: 'muted' }, 'No order is open.'));
  drawAll(shown, all);
}

/** Reads all that is to be shown, down to the oldest: something may have happened to any of them. */
async function readWanted(shown) {
  const { wanted } = shown;
  const found = { orders: [], before: undefined };
  do {
    const { orders: more, before } = await api.orders({ limit: Math.min(wanted - found.orders.length, ANSWER_MAX), before: found.before });
    Object.assign(found, { orders: [...found.orders, ...more], before });
  } while (found.before != null && found.orders.length < wanted);
  // If more is wanted meanwhile, that is being read.
  if (wanted === shown.wanted) Object.assign(shown, found);
}

function drawAll(shown, all) {
  const more = shown.before != null && action({
    id: 'older-orders', label: 'Show older', isQuiet: true,
    work: async () => {
      shown.wanted += LIMIT;
      await readWanted(shown);
      drawAll(shown, all);
      return `${shown.orders.length} orders.`;
    },
  });
  refill(all, table('Orders, newest first', COLUMNS, shown.orders.map(cells), 'No orders yet.'), more);
}

const nameOf = ({ side, shares, symbol, limit }) => `${side === 'buy' ? 'Buy' : 'Sell'} ${grouped(shares)} ${symbol} at ${dollarsOf(limit)}`;
const stateOf = (order) => (order.is_cancelling ? 'Being cancelled; may still trade' : STATES[order.state]);

function item(order, error) {
  const { number, filled, left, held, symbol } = order;
  const traded = filled > 0 ? `${grouped(filled)} traded for ${dollarsOf(order.amount)}, ` : '';
  const holds = order.side === 'buy' ? dollarsOf(held) : `${sharesText(left)} of ${symbol}`;
  const words = el('p', { id: `order-${number}` }, el('strong', {}, nameOf(order)), el('br'), `${stateOf(order)}: ${traded}${grouped(left)} left, ${holds} held.`);
  const cancel = !order.is_cancelling && action({
    id: `cancel-order-${number}`, label: 'Cancel', isQuiet: true, describedBy: `order-${number}`, error,
    work: async (waiting) => {
      try {
        const now = await api.cancelOrder(number, waiting);
        return now.is_cancelling ? 'The cancel was sent.' : 'The order is cancelled.';
      } finally {
        await refresh();
      }
    },
  });
  return el('li', {}, words, cancel && el('div', { class: 'buttons' }, cancel));
}

function cells(order) {
  const why = order.reason ? `: ${spoken(order.reason)}` : '';
  const isBad = order.state === 'refused';
  return [
    el('time', { datetime: new Date(order.placed_ms).toISOString() }, timeText(order.placed_ms)), nameOf(order),
    el('span', { class: isBad && 'bad' }, `${stateOf(order)}${why}`), `${grouped(order.filled)} of ${grouped(order.shares)}`, dollarsOf(order.amount),
  ];
}

function orderTicket(hear) {
  const stock = field({ id: 'order-stock', name: 'symbol', label: 'Stock', kind: 'symbol', value: state.symbol });
  const shares = field({ id: 'order-shares', name: 'shares', label: 'Shares', kind: 'whole' });
  const limit = field({ id: 'order-limit', name: 'limit', label: 'Limit price, dollars per share', kind: 'money' });
  const { element, way } = sides();
  const once = el('input', { type: 'checkbox', id: 'order-once' });
  const made = form({
    id: 'order', fields: [stock, shares, limit], button: 'Place the order',
    estimate: (values) => estimate(way(), values),
    submit: async (values, waiting) => {
      choose(values.symbol);
      await api.placeOrder({ ...values, shares: Number(values.shares), side: way(), life: once.checked ? 'immediate' : 'day' }, waiting);
      shares.input.value = '';
      await refresh();
      return `Placed: ${way()} ${sharesText(values.shares)} of ${values.symbol} at ${dollarsOf(values.limit)}.`;
    },
  });
  made.element.prepend(element);
  made.element.querySelector('.estimate').before(el('div', { class: 'check' }, once, el('label', { for: 'order-once' }, 'Cancel what does not trade at once (IOC)')));
  hear('account', made.redo);
  return card('Place an order', 'order-card', made.element,
    el('p', { class: 'hint' }, 'The order trades on the exchange, at your limit price or better. Quotes are prices of another server.'));
}

function estimate(way, { symbol, shares, limit }) {
  const owned = symbol ? sharesOf(symbol) : 0n;
  const has = way === 'buy' ? `You have ${dollars(cash())} free.` : symbol ? `You own ${sharesText(owned)} of ${symbol} free.` : '';
  if (!symbol || !shares || !limit) return has;
  const worth = BigInt(shares) * centsOf(limit);
  if (way === 'buy') {
    if (worth > cash()) return `That would hold ${dollars(worth)}; you have only ${dollars(cash())}.`;
    return `Holds ${dollars(worth)} until it trades or ends, which leaves you ${dollars(cash() - worth)} free.`;
  }
  if (BigInt(shares) > owned) return `You own only ${sharesText(owned)} of ${symbol} free.`;
  return `Holds ${sharesText(shares)} of ${symbol} until it trades or ends: at least ${dollars(worth)} if all of it trades.`;
}
