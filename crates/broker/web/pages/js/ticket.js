// The stock in hand, its quote with its age, and the ticket that buys or sells it.

import * as api from './api.js';
import { card, el, setText } from './dom.js';
import { action, field, form } from './forms.js';
import { centsOf, dollars, dollarsOf, grouped, sharesText } from './money.js';
import { mark, noteQuote, refresh, state } from './state.js';

/** How long after the quote server's stamp a quote can be used, ms. */
export const USABLE_MS = 60_000;

/** Takes a stock in hand. What is known of its price is asked for, which costs nothing. */
export function choose(symbol) {
  if (symbol === state.symbol) return;
  state.symbol = symbol;
  mark('symbol');
  api.quote(symbol).then(noteQuote, () => {});
}

/** `8 s old`, or how it can be told. */
export function ageText(quote) {
  const seconds = Math.max(0, Math.round((api.nowMs() - quote.serverMs) / 1000));
  return seconds < 120 ? `${seconds} s old` : `${grouped(Math.floor(seconds / 60))} min old`;
}

/** Shares of a stock that the account has free. */
export function sharesOf(symbol) {
  const row = state.account?.holdings.find((held) => held.symbol === symbol);
  return BigInt(row?.shares ?? 0);
}

/** Free cash, cents. */
export const cash = () => centsOf(state.account?.cash ?? '0.00') ?? 0n;

/** The stock and its quote. */
export function stockBar(hear) {
  const symbol = field({ id: 'stock', name: 'symbol', label: 'Stock', kind: 'symbol', value: state.symbol });
  const price = el('output', { class: 'price', for: 'stock', id: 'price' });
  const age = el('p', { class: 'muted', id: 'age' });
  const pick = form({ id: 'pick', fields: [symbol], button: 'Get a quote', submit: askQuote });
  symbol.input.addEventListener('change', () => {
    if (/^[A-Z]{1,3}$/.test(symbol.input.value)) choose(symbol.input.value);
  });
  const draw = () => {
    const quote = state.quotes.get(state.symbol);
    setText(price, quote ? dollars(quote.cents) : '–');
    setText(age, quote ? usableText(quote) : state.symbol ? 'No price known yet' : 'Choose a stock');
  };
  hear('quotes', draw);
  hear('second', draw);
  hear('symbol', () => { symbol.input.value = state.symbol; draw(); });
  draw();
  return card('Quote', 'stock-card', el('div', { class: 'stock' }, pick.element, el('div', {}, price, age)));
}

function usableText(quote) {
  const left = Math.ceil((quote.serverMs + USABLE_MS - api.nowMs()) / 1000);
  return left > 0 ? `${ageText(quote)}, good for ${left} s more` : `${ageText(quote)}, for information only`;
}

async function askQuote({ symbol }, waiting) {
  choose(symbol);
  const { outcome } = await api.command('quote', { symbol }, waiting);
  noteQuote({ symbol, price: outcome.price, server_ms: outcome.server_ms });
  mark('history');
  return `${symbol} is at ${dollarsOf(outcome.price)}.`;
}

/** Choosing between buying and selling: the element, and which it is. */
export function sides() {
  const side = (value, words) => [
    el('input', { type: 'radio', name: 'side', id: `side-${value}`, value, checked: value === 'buy' }),
    el('label', { for: `side-${value}` }, words)];
  const element = el('fieldset', { class: 'sides' }, el('legend', {}, 'Buy or sell'), side('buy', 'Buy'), side('sell', 'Sell'));
  return { element, way: () => (element.querySelector(':checked')?.value ?? 'buy') };
}

/** Buys or sells the stock in hand: first held for 60 seconds, then confirmed or not. */
export function ticket(hear) {
  const amount = field({ id: 'amount', name: 'amount', label: 'Amount in dollars', kind: 'money' });
  const { element, way } = sides();
  const made = form({
    id: 'ticket', fields: [amount], button: 'Hold for 60 seconds',
    estimate: (values) => estimate(way(), values.amount),
    submit: ({ amount: wanted }, waiting) => trade(way(), wanted, waiting).then((words) => { made.clear(); return words; }),
  });
  made.element.prepend(element);
  for (const topic of ['quotes', 'account', 'symbol', 'second']) hear(topic, made.redo);
  return card('Buy or sell', 'ticket-card', made.element,
    el('p', { class: 'hint' }, 'This does not trade yet: the price is held, and you confirm or cancel under Pending.'));
}

function estimate(way, amount) {
  const { symbol } = state;
  if (!symbol) return 'Choose a stock first.';
  if (way === 'sell' && sharesOf(symbol) === 0n) return `You own no free shares of ${symbol}.`;
  if (!amount) return way === 'buy' ? `You have ${dollars(cash())}.` : `You own ${sharesText(sharesOf(symbol))} of ${symbol}.`;
  const quote = state.quotes.get(symbol);
  if (!quote) return 'Get a quote to see how many shares that is.';
  const shares = centsOf(amount) / quote.cents;
  const worth = shares * quote.cents;
  const at = `At ${dollars(quote.cents)} (${ageText(quote)})`;
  if (shares === 0n) return `${at} that is less than one share.`;
  if (way === 'buy' && centsOf(amount) > cash()) return `You have only ${dollars(cash())}.`;
  if (way === 'sell' && shares > sharesOf(symbol)) return `That is ${sharesText(shares)}; you own only ${grouped(sharesOf(symbol))}.`;
  const left = way === 'buy' ? `, which leaves you ${dollars(cash() - worth)} in cash` : '';
  return `${at}: ${sharesText(shares)} for ${dollars(worth)}${left}.`;
}

async function trade(way, amount, waiting) {
  const { symbol } = state;
  if (!symbol) {
    document.getElementById('stock').focus();
    return 'Choose a stock first.';
  }
  const { outcome } = await api.command(way, { symbol, amount }, waiting, 'ticket');
  await refresh();
  document.getElementById('pending-title')?.focus();
  const words = way === 'buy' ? 'Held' : 'Held to sell';
  return `${words}: ${sharesText(outcome.shares)} of ${symbol} for ${dollarsOf(outcome.cost)}. Confirm within 60 seconds.`;
}

/** Free cash, and adding to it. */
export function cashCard(hear) {
  const amount = field({ id: 'add-amount', name: 'amount', label: 'Amount to add', kind: 'money' });
  const shown = el('p', { class: 'price', id: 'cash' });
  const add = form({
    id: 'add', fields: [amount], button: 'Add cash', isQuiet: true, isRow: true,
    estimate: ({ amount: added }) => (added ? `You will have ${dollars(cash() + centsOf(added))}.` : ''),
    submit: async ({ amount: added }, waiting) => {
      await api.command('add', { amount: added }, waiting);
      add.clear();
      await refresh();
      return `Added ${dollarsOf(added)}.`;
    },
  });
  const draw = () => { setText(shown, dollars(cash())); add.redo(); };
  hear('account', draw);
  draw();
  return card('Cash', 'cash-card', shown, add.element, summaryAction());
}

function summaryAction() {
  return action({
    id: 'summary', label: 'Refresh the summary', isQuiet: true,
    work: async (waiting) => {
      await api.command('display-summary', {}, waiting);
      await refresh();
      return `Current summary: ${dollars(cash())} in cash.`;
    },
  });
}
