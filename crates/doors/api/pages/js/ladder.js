// The book in hand as a ladder: offers above, bids below, the best of both in the middle.
//
// A book changes hundreds of times a second, and a table made anew each time loses its place and costs layout. So rows stay, and only what is
// another text is set.

import { card, el, setText } from './dom.js';
import { grouped, priceText, unitsOfPrice } from './prices.js';
import { inHand, state } from './state.js';
import { phaseMark } from './list.js';
import { setPrice } from './ticket.js';

/** The ladder. */
export function ladderCard(hear) {
  const phase = el('p', { id: 'book-phase' });
  const standing = el('p', { class: 'hint', id: 'book-standing' });
  const offers = el('tbody', { class: 'offers' });
  const middle = el('tr', { id: 'spread' }, el('td', { colspan: 3 }));
  const bids = el('tbody', { class: 'bids' });
  const head = ['Bids', 'Price', 'Offers'].map((words) => el('th', { scope: 'col', class: 'number' }, words));
  const scroll = el('div', { class: 'scroll ladder', tabindex: '0', role: 'region', 'aria-label': 'Prices of the book' },
    el('table', {}, el('thead', {}, el('tr', {}, head)), offers, el('tbody', {}, middle), bids));
  const made = card('Book', 'ladder', phase, scroll, standing);
  let centred = '';
  const draw = () => {
    const { book } = state;
    fill(offers, book.offers.toReversed(), 2);
    fill(bids, book.bids, 0);
    setText(middle.firstChild, spreadText(book));
    setText(standing, standingText(book));
    if (centred === state.symbol || book.number === null) return;
    centred = state.symbol;
    scroll.scrollTop = middle.offsetTop - scroll.clientHeight / 2;
  };
  const drawHead = () => {
    setText(made.querySelector('h2'), state.symbol ? `Book of ${state.symbol}` : 'Book');
    const one = inHand();
    phase.replaceChildren(...(one ? [phaseMark(one)] : []));
  };
  hear('book', draw);
  hear('orders', draw);
  for (const topic of ['symbol', 'instruments']) hear(topic, drawHead);
  drawHead();
  draw();
  return made;
}

// Rows: bids stand on the left, offers on the right of their price.
function fill(body, levels, column) {
  while (body.rows.length > levels.length) body.lastChild.remove();
  while (body.rows.length < levels.length) body.append(rowOf(column));
  const most = levels.reduce((top, { shares }) => (shares > top ? shares : top), 1n);
  const own = ownPrices();
  levels.forEach(({ units, shares }, at) => {
    const row = body.rows[at];
    setText(row.cells[1], priceText(units));
    setText(row.cells[column], grouped(shares));
    row.cells[column].style.setProperty('--part', `${Number((shares * 100n) / most)}%`);
    row.classList.toggle('own', own.has(units));
    row.units = units;
  });
}

function rowOf(column) {
  const row = el('tr', {}, [0, 1, 2].map((at) => el('td', { class: `number ${at === 1 ? 'price' : ''} ${at === column ? 'shares' : ''}` })));
  row.addEventListener('click', () => setPrice(row.units));
  return row;
}

function ownPrices() {
  const here = state.orders.filter((one) => one.instrument === inHand()?.instrument);
  const priced = here.map((one) => state.entered.get(one.client_order_id)).filter(Boolean);
  return new Set(priced.map(unitsOfPrice));
}

function spreadText({ bids, offers }) {
  if (bids.length && offers.length) return `Spread ${priceText(offers[0].units - bids[0].units)}`;
  return bids.length || offers.length ? 'One side only' : 'No orders';
}

function standingText(book) {
  if (book.isMissing) return 'This server has no market data for this instrument.';
  if (book.number === null) return state.symbol ? 'Waiting for the book …' : '';
  return book.isCurrent ? `Verified up to number ${grouped(book.number)}` : 'Market data are missing: this book is not current.';
}
