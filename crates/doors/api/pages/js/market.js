// The market's page: instruments, the book in hand, own orders and what became of them.
//
// | module | has |
// |---|---|
// | api, key | the HTTP API; key files and what they prove |
// | state, feed, book, prices, words | what is known; the socket; a book that is verified; ten-thousandths; what is said |
// | frame, list, candles, ladder, tape, ticket, own | signing on and the line at the top; the parts of the page |
// | dom, forms, topics, http, line, plot, decimal | shared with other pages (`crates/base/http/pages`) |

import * as api from './api.js';
import { candlesCard } from './candles.js';
import { el } from './dom.js';
import * as feed from './feed.js';
import { run } from './frame.js';
import { ladderCard } from './ladder.js';
import { instrumentsCard } from './list.js';
import { fillsCard, ordersCard } from './own.js';
import { keepFor, readInstruments } from './state.js';
import { tapeCard } from './tape.js';
import { ticketCard } from './ticket.js';

/** How often phases and last prices are asked for, ms. */
const EVERY_MS = 2000;
let turn;

run({
  title: 'Market',
  lead: 'Books, trades and your orders, as they happen.',
  view: (hear) => {
    keepFor(api.who());
    return el('div', { class: 'market' },
      el('h1', { class: 'unseen' }, 'Market'),
      // Who copies another member may ask for nothing.
      el('div', { class: 'column' }, instrumentsCard(hear), api.who().copied ? '' : ticketCard(hear)),
      el('div', { class: 'column' }, candlesCard(hear), ordersCard(hear), fillsCard(hear)),
      el('div', { class: 'column' }, ladderCard(hear), tapeCard(hear)));
  },
  entered: async () => {
    turn = setInterval(readInstruments, EVERY_MS);
    await readInstruments();
    feed.open();
  },
  left: () => {
    clearInterval(turn);
    feed.close();
  },
});
