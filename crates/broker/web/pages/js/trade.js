// The trading page: everything that is done with one account, around the stock in hand.

import { el } from './dom.js';
import { chartCard } from './chart.js';
import { holdingsCard } from './holdings.js';
import { pendingCard } from './pending.js';
import { state } from './state.js';
import { cashCard, choose, stockBar, ticket } from './ticket.js';
import { triggerForms, triggerTable } from './triggers.js';

/** The page's parts. */
export function trade(hear) {
  // Who comes back sees the first stock that they own.
  const first = () => {
    const symbol = state.account?.holdings[0]?.symbol;
    if (!state.symbol && symbol) choose(symbol);
  };
  hear('account', first);
  first();
  return el('div', { class: 'trade' },
    el('h1', { tabindex: '-1' }, 'Trade'),
    el('div', { class: 'column' }, stockBar(hear), ticket(hear), pendingCard(hear), cashCard(hear)),
    el('div', { class: 'column wide' }, chartCard(hear), triggerForms(hear), holdingsCard(hear), triggerTable(hear)));
}
