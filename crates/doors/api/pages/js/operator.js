// The operators' page: phases of instruments, blocks of members, and what needs two operators.
//
// Nothing is done by one click: a dialog says what is asked for. Whether it needs a second operator, and whether another has proposed it, only
// the gateway knows: it says so when it refuses. No gateway tells which proposals wait, so a proposal is handed on as the words by which the
// second operator asks for the same, or as a link with them.

import { who } from './api.js';
import { ASKED, deedOf } from './deeds.js';
import { card, el, refill } from './dom.js';
import { field, form } from './forms.js';
import { run } from './frame.js';
import { phaseMark } from './list.js';
import { shown } from './prices.js';
import { confirmDeed, doneCard, keepDeedsFor, proposalsCard, secondCard } from './proposals.js';
import { readInstruments, state } from './state.js';
import { mark } from './topics.js';
import { phaseText } from './words.js';

/** How often phases and last prices are asked for, ms. */
const EVERY_MS = 1000;
const USUAL = [['continuous', 'Open'], ['halted', 'Halt'], ['closed', 'Close']];
let turn;

run({
  title: 'Operators',
  lead: 'Phases, blocks, and what needs two operators. Operators are sessions of member 0.',
  operatorsOnly: true,
  view: (hear) => {
    keepDeedsFor(who());
    return el('div', { class: 'operators' },
      el('h1', { class: 'unseen' }, 'Operators'),
      el('div', { class: 'column' }, phasesCard(hear), doneCard(hear)),
      el('div', { class: 'column' }, membersCard(hear), secondCard(hear), proposalsCard(hear), fourEyesCard(hear)));
  },
  entered: () => {
    turn = setInterval(look, EVERY_MS);
    look();
  },
  left: () => {
    clearInterval(turn);
    // What one was to second is not for the next.
    history.replaceState(null, '', location.pathname);
  },
});

// This page has no socket: it is live if it is answered.
async function look() {
  state.feed = await readInstruments() ? 'live' : 'connecting';
  mark('feed');
}

function phasesCard(hear) {
  const body = el('tbody');
  const head = ['Symbol', 'Phase', 'Last', 'Change phase'].map((words, at) => el('th', { scope: 'col', class: at === 2 && 'number' }, words));
  const made = card('Instruments', 'instruments', el('div', { class: 'scroll' }, el('table', { class: 'phases' }, el('thead', {}, el('tr', {}, head)), body)));
  // What a hand is on stays: only what an instrument shows is drawn anew.
  const rows = new Map();
  const draw = () => {
    const symbols = new Set(state.instruments.map((one) => one.symbol));
    for (const [symbol, row] of rows) if (!symbols.has(symbol)) { row.remove(); rows.delete(symbol); }
    for (const one of state.instruments) {
      if (!rows.has(one.symbol)) rows.set(one.symbol, body.appendChild(rowOf(one.symbol)));
      const [, phase, last] = rows.get(one.symbol).cells;
      refill(phase, phaseMark(one));
      refill(last, shown(one.last));
    }
  };
  hear('instruments', draw);
  draw();
  return made;
}

function rowOf(symbol) {
  const ask = (phase) => confirmDeed(deedOf(`phase ${symbol} ${phase}`));
  const buttons = USUAL.map(([phase, words]) =>
    el('button', { class: `second ${phase}`, id: `${phase}-${symbol}`, 'aria-label': `${words} ${symbol}`, onclick: () => ask(phase) }, words));
  const others = ASKED.filter((phase) => !USUAL.some(([usual]) => usual === phase));
  const other = el('select', { 'aria-label': `Other phases of ${symbol}`, onchange: () => { ask(other.value); other.value = ''; } },
    el('option', { value: '' }, 'Other …'), others.map((phase) => el('option', { value: phase }, phaseText(phase))));
  return el('tr', {}, el('th', { scope: 'row' }, symbol), el('td'), el('td', { class: 'number' }), el('td', {}, el('div', { class: 'buttons' }, buttons, other)));
}

function membersCard(hear) {
  const member = field({ id: 'blocked', name: 'member', label: 'Member', kind: 'whole' });
  const unblock = el('button', { type: 'button', class: 'second', id: 'unblock' }, 'Unblock …');
  const made = form({
    id: 'block', fields: [member], button: 'Block …', isRow: true,
    submit: async (values) => { await confirmDeed(deedOf(`block ${values.member}`)); return ''; },
  });
  unblock.addEventListener('click', () => {
    try { confirmDeed(deedOf(`unblock ${member.read()}`)); member.fail(''); } catch (words) { member.fail(String(words)); member.input.focus(); }
  });
  return card('Members', 'members', made.element, el('div', { class: 'buttons' }, unblock),
    el('p', { class: 'hint' }, 'Blocking a member is the kill switch: it cancels the member’s orders and refuses new ones.'));
}

function fourEyesCard(hear) {
  const button = (state_) => el('button', { class: 'second', id: `four-eyes-${state_}`, onclick: () => confirmDeed(deedOf(`four-eyes ${state_}`)) }, `Switch ${state_} …`);
  return card('Four eyes', 'four-eyes', el('p', { class: 'hint' }, 'With four eyes on, closing, halting and blocking need two operators. This page cannot show the setting: see pares admin member list.'),
    el('div', { class: 'buttons' }, button('on'), button('off')));
}
