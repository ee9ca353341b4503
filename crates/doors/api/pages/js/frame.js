// What both pages have around them: the line at the top, and signing on.

import * as api from './api.js';
import { card, el, refill, say, setText } from './dom.js';
import { field, form } from './forms.js';
import { state } from './state.js';
import { listen } from './topics.js';
import { teachForms } from './words.js';

const PAGES = [['/', 'Market'], ['/operator', 'Operators']];
const FEED = { live: 'Live', connecting: 'Connecting …', off: 'Offline' };

/**
 * Runs a page: `view(hear)` gives its parts once somebody is signed on, and `hear(topic, heard)` tells them of changes as long as they are shown; `entered()` and `left()` are called when that is so and when it ends: one person at a time.
 * `lead` says what the page is for, `operatorsOnly` that a member has nothing to do here.
 */
export function run({ title, lead, view, entered, left, operatorsOnly = false }) {
  teachForms();
  const main = document.getElementById('main');
  let shown;
  let ends = [];
  const hear = (topic, heard) => { ends.push(topic === 'leave' ? heard : listen(topic, heard)); };
  const show = () => {
    const own = api.who();
    top(own);
    if (shown === own) return;
    if (shown) left();
    shown = own;
    // What was said last is not for the next.
    say('');
    ends.forEach((end) => end());
    ends = [];
    main.classList.toggle('wide', Boolean(own));
    main.replaceChildren(own ? view(hear) : signOnCard(title, lead, operatorsOnly));
    if (own) entered();
  };
  listen('session', show);
  listen('feed', drawFeed);
  show();
}

function top(own) {
  const bar = document.getElementById('top');
  const link = ([path, words]) => el('li', {}, el('a', { href: path, 'aria-current': path === location.pathname && 'page' }, words));
  const who = own && (own.member === 0 ? `Operator ${own.session}` : `Member ${own.member}${own.session ? `, session ${own.session}` : ''}${own.copied ? `, drop copy of member ${own.copied}` : ''}`);
  refill(bar, el('span', { class: 'brand' }, 'Pares exchange'), el('nav', { 'aria-label': 'Pages' }, el('ul', {}, PAGES.map(link))),
    own && el('span', { class: 'right' }, el('span', { id: 'feed', class: 'feed' }), el('span', { id: 'who' }, who),
      el('button', { class: 'quiet', id: 'sign-out', onclick: api.signOut }, 'Sign out')));
  drawFeed();
}

function drawFeed() {
  const dot = document.getElementById('feed');
  if (!dot) return;
  dot.dataset.feed = state.feed;
  setText(dot, FEED[state.feed]);
}

function signOnCard(title, lead, operatorsOnly) {
  const key = el('input', { id: 'key', type: 'file', 'aria-describedby': 'key-hint' });
  const keyBox = el('div', { class: 'field' }, el('label', { for: 'key' }, 'Key file'), key,
    el('p', { class: 'hint', id: 'key-hint' }, 'The key file stays on this computer; the page sends only a proof computed from it.'));
  const member = field({ id: 'member', name: 'member', label: 'Member', kind: 'member', isOptional: true, value: operatorsOnly ? '0' : '',
    hint: 'Only for an exchange with open sign-on, which needs no key file.' });
  const session = field({ id: 'session', name: 'session', label: 'Session', kind: 'member', isOptional: true });
  const made = form({
    id: 'sign-on', fields: [{ ...member, box: el('div', {}, keyBox, el('div', { class: 'pair' }, member.box, session.box)) }, { ...session, box: '' }],
    button: 'Sign on',
    submit: async (values) => {
      const [file] = key.files;
      if (!file && values.member === undefined) throw new Error('Choose a key file, or enter a member number.');
      await api.signOn({ keyText: file && await file.text(), member: values.member, session: values.session ?? 0 });
      return '';
    },
  });
  const why = api.left() && el('p', { class: 'error', id: 'why-left', role: 'alert' }, api.left());
  return el('div', { class: 'narrow' }, el('h1', {}, title), el('p', { class: 'lead muted' }, lead), why, card('Sign on', 'sign-on-card', made.element));
}
