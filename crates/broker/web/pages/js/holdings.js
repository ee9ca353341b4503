// Shares owned with their value at the latest price, and what all is worth.

import { card, el, refill, setText, table } from './dom.js';
import { centsOf, dollars, grouped } from './money.js';
import { state } from './state.js';
import { ageText, cash, choose } from './ticket.js';
import { amountOf } from './triggers.js';

const COLUMNS = [['Stock'], ['Shares', true], ['Price', true], ['Value', true], ['Age', true]];

/** What the account has. A new price changes the text of its cells only. */
export function holdingsCard(hear) {
  const body = el('div');
  const totals = el('dl', { class: 'totals' });
  let rows = [];
  const draw = () => {
    rows = (state.account?.holdings ?? []).filter((held) => BigInt(held.shares) > 0n).map(row);
    refill(body, table('Shares you own', COLUMNS, rows.map(({ cells }) => cells), 'No shares yet.'));
    value();
  };
  const value = () => {
    for (const { update } of rows) update();
    fillTotals(totals, rows);
  };
  hear('account', draw);
  hear('quotes', value);
  hear('second', value);
  draw();
  return card('What you have', 'holdings', body, totals);
}

function row({ symbol, shares }) {
  const [price, worth, age] = [el('span'), el('span'), el('span', { class: 'muted' })];
  const pick = el('button', { class: 'quiet', id: `hold-${symbol}`, 'aria-label': `Show ${symbol}`, onclick: () => choose(symbol) }, symbol);
  const made = { cells: [pick, grouped(shares), price, worth, age], cents: null, update: null };
  made.update = () => {
    const quote = state.quotes.get(symbol);
    made.cents = quote ? quote.cents * BigInt(shares) : null;
    setText(price, quote ? dollars(quote.cents) : '–');
    setText(worth, quote ? dollars(made.cents) : '–');
    setText(age, quote ? ageText(quote) : 'no price');
  };
  return made;
}

const sum = (amounts) => amounts.reduce((all, one) => all + one, 0n);

function fillTotals(totals, rows) {
  const { buys = [], sells = [], buy_triggers: buyTriggers = [], sell_triggers: sellTriggers = [], orders_held: held = '0.00', orders_held_shares: heldShares = [] } = state.account ?? {};
  const atPrice = ({ symbol, shares, price }) => BigInt(shares ?? 0) * (state.quotes.get(symbol)?.cents ?? centsOf(price ?? '0') ?? 0n);
  const parts = [
    ['Cash', cash()],
    ['Held for pending buys', sum(buys.map((row) => centsOf(row.amount) ?? 0n))],
    ['Held for orders to buy', centsOf(held) ?? 0n],
    ['Reserved for triggers', sum(buyTriggers.map(amountOf))],
    ['Shares held for sells', sum([...sells.map((row) => centsOf(row.amount) ?? 0n), ...sellTriggers.map(atPrice), ...heldShares.map(atPrice)])],
    ['Free shares at these prices', sum(rows.map(({ cents }) => cents ?? 0n))],
  ];
  const lines = [...parts, ['Together', sum(parts.map(([, cents]) => cents))]];
  if (totals.children.length !== lines.length) {
    totals.replaceChildren(...lines.map(([words]) => el('div', {}, el('dt', {}, words), el('dd'))));
  }
  lines.forEach(([, cents], at) => setText(totals.children[at].lastElementChild, dollars(cents)));
}
