// The frame of all pages: who is signed in, which page is shown, and the line at the top.
//
// | module | has |
// |---|---|
// | api | the HTTP API; commands that are sent again under their name |
// | state | what is known, and who hears of changes, once a frame |
// | feed, notices | the WebSocket, and what it tells |
// | kinds, money, words | fields of its own; cents; refusals in plain words |
// | forms, dom, topics, http, line, plot, decimal | shared with other pages (`crates/base/http/pages`) |
// | sign, trade, orders, history, person, supervisor | the pages |
// | ticket, pending, triggers, chart, holdings; customer | the parts of the trading page; of the supervisor's |

import * as api from './api.js';
import { el, refill, setText } from './dom.js';
import * as feed from './feed.js';
import { history } from './history.js';
import { teachForms } from './kinds.js';
import { dollars } from './money.js';
import { show as tell } from './notices.js';
import { orders } from './orders.js';
import { person } from './person.js';
import { sign } from './sign.js';
import { listen, refresh, signedOut, state } from './state.js';
import { cash } from './ticket.js';
import { trade } from './trade.js';

const PAGES = {
  trade: { title: 'Trade', view: trade },
  orders: { title: 'Orders', view: orders },
  history: { title: 'History', view: history },
  you: { title: 'You', view: person },
  supervisor: { title: 'Supervisor', view: null, right: 'supervisor' },
};
const FEED = { live: 'Live', connecting: 'Connecting …', off: 'Offline' };

let ends = [];
const main = document.getElementById('main');

const mayOpen = (page) => !page.right || state.session.rights.includes(page.right);

function pageNow() {
  const name = location.hash.replace(/^#\/?/, '');
  return PAGES[name] && mayOpen(PAGES[name]) ? name : 'trade';
}

// Shows a page, and ends what the one before listened to.
function show(isFirst) {
  ends.forEach((end) => end());
  ends = [];
  const hear = (topic, heard) => { ends.push(topic === 'leave' ? heard : listen(topic, heard)); };
  const name = state.session && pageNow();
  document.title = name ? `${PAGES[name].title} – Pares brokerage` : 'Pares brokerage';
  main.replaceChildren(name ? PAGES[name].view(hear) : sign(entered));
  for (const link of document.querySelectorAll('nav a')) {
    if (link.hash === `#/${name}`) link.setAttribute('aria-current', 'page');
    else link.removeAttribute('aria-current');
  }
  if (!isFirst) main.querySelector('h1').focus();
  window.scrollTo(0, 0);
}

function top() {
  const bar = document.getElementById('top');
  if (!state.session) return refill(bar, el('span', { class: 'brand' }, 'Pares brokerage'));
  const links = Object.entries(PAGES).filter(([, page]) => mayOpen(page))
    .map(([name, page]) => el('li', {}, el('a', { href: `#/${name}` }, page.title)));
  const out = el('button', { class: 'quiet', id: 'sign-out', onclick: leave }, 'Sign out');
  return refill(bar, el('span', { class: 'brand' }, 'Pares'), el('nav', { 'aria-label': 'Pages' }, el('ul', {}, links)),
    el('span', { class: 'right' }, el('span', { id: 'feed', class: 'feed' }), el('span', { id: 'top-cash', class: 'number' }), out));
}

function drawTop() {
  const [dot, money] = [document.getElementById('feed'), document.getElementById('top-cash')];
  if (!dot) return;
  dot.dataset.feed = state.feed;
  setText(dot, FEED[state.feed]);
  setText(money, dollars(cash()));
}

async function leave() {
  await api.signOut().catch(() => {});
  signedOut();
}

async function entered(session) {
  state.session = session;
  await ready();
  start(false);
}

// What is shown first is read first; the supervisor's page is loaded for supervisors alone.
async function ready() {
  await refresh();
  if (mayOpen(PAGES.supervisor)) PAGES.supervisor.view = (await import('./supervisor.js')).supervisor;
}

function start(isFirst) {
  top();
  show(isFirst);
  drawTop();
  if (state.session) feed.open();
  else feed.close();
}

teachForms();
api.hearDoubts(([name, fields]) => {
  const of = [name.replaceAll('-', ' '), fields.symbol, fields.amount ?? fields.price ?? fields.limit].filter(Boolean).join(' ');
  tell({ kind: 'doubt', text: `There was no answer to “${of}”, so its outcome is unknown: see the history. Sending it now makes a new command.` });
});
listen('session', () => start(false));
for (const topic of ['account', 'feed']) listen(topic, drawTop);
window.addEventListener('hashchange', () => show(false));

try {
  state.session = await api.session();
  await ready();
} catch {
  // Nobody is signed in, or nothing answers: signing in says which.
}
start(true);
