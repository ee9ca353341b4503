// What an operator does is confirmed, asked for or proposed, and seconded; and what that one did on this page is listed.

import { who } from './api.js';
import { deedOf } from './deeds.js';
import { card, el, refill, say, setText, table, timeText } from './dom.js';
import { busy, field, form } from './forms.js';
import { outcomeText } from './outcome.js';
import { mark } from './topics.js';
import { refusal } from './words.js';

/** A proposal holds so long, ms. */
const HOLDS_MS = 10 * 60 * 1000;
/** Deeds that are listed. */
const DONE_MAX = 50;

/** What was asked for on this page, the newest first: { ms, words, told, isBad }. */
const done = [];
/** Open proposals: { until, words }. */
let proposed = [];
/** Whose these are. */
let keptFor = '';

/** An operator is here: what another one did is forgotten. */
export function keepDeedsFor({ member, session }) {
  const one = `${member} ${session}`;
  if (one !== keptFor) [done.length, proposed] = [0, []];
  keptFor = one;
}

function note(deed, told, isBad = false) {
  done.unshift({ ms: Date.now(), words: deed.words, told, isBad });
  done.length = Math.min(done.length, DONE_MAX);
  mark('done');
}

/** Asks in a dialog whether it is meant, and does it or proposes it. Ends when the dialog is closed. */
export function confirmDeed(deed) {
  return new Promise((closed) => {
    const error = el('p', { class: 'error', role: 'alert' });
    const button = (id, words, propose, isQuiet) => {
      const made = el('button', { type: 'button', id, class: isQuiet && 'second' }, words);
      made.addEventListener('click', () => busy(made, () => ask(deed, propose, dialog, error)));
      return made;
    };
    const leave = el('button', { type: 'button', class: 'quiet', onclick: () => dialog.close() }, 'Do nothing');
    const dialog = el('dialog', { 'aria-labelledby': 'deed-title', id: 'deed' }, el('h2', { id: 'deed-title' }, deed.title), el('p', {}, deed.meaning), error,
      el('div', { class: 'buttons' }, button('do-it', deed.title, false, false),
        deed.canPropose && button('propose-it', 'Propose it to a second operator', true, true), leave));
    dialog.addEventListener('close', () => { dialog.remove(); closed(); });
    // It goes with the page of the one who is here.
    document.getElementById('main').append(dialog);
    dialog.showModal();
  });
}

async function ask(deed, propose, dialog, error) {
  const by = who();
  setText(error, '');
  try {
    const outcome = await deed.ask(propose, () => setText(error, 'No answer yet; trying again …'));
    if (who() !== by) return;
    if (propose) proposed.unshift({ until: Date.now() + HOLDS_MS, words: deed.words });
    const told = propose ? 'Proposed, not done: a second operator must confirm it within ten minutes.' : outcomeText(outcome);
    note(deed, told);
    mark('proposed');
    dialog.close();
    say(`${deed.title}: ${told}`);
  } catch (problem) {
    if (who() !== by) return;
    note(deed, refusal(problem), true);
    setText(error, refusal(problem));
    // What is to be done next stands out.
    if (problem.reason === 'second_operator') for (const button of dialog.querySelectorAll('#do-it, #propose-it')) button.classList.toggle('second', button.id === 'do-it');
  }
}

/** What another operator proposed, by its words or by a link with them. */
export function secondCard(hear) {
  const given = new URLSearchParams(location.hash.slice(1)).get('second');
  const words = field({ id: 'second-words', name: 'words', label: 'Proposed command', hint: 'As shown to the first operator, such as: phase ALFA halted' });
  if (given) words.input.value = given;
  const made = form({
    id: 'second', fields: [words], button: 'Second …', isRow: true,
    submit: async (values) => { await confirmDeed(deedOf(values.words)); return ''; },
  });
  return card('Second a proposal', 'second-card', made.element);
}

/** The proposals of this page, and what to send to the second operator. */
export function proposalsCard(hear) {
  const body = el('div', { id: 'proposed' });
  const draw = () => {
    proposed = proposed.filter(({ until }) => until > Date.now());
    refill(body, proposed.length ? el('ul', { class: 'plain' }, proposed.map(line)) : el('p', { class: 'muted' }, 'No proposal of yours is waiting.'));
  };
  for (const topic of ['proposed', 'session']) hear(topic, draw);
  hear('second', () => { if (proposed.length) drawLeft(body, draw); });
  draw();
  return card('Your proposals', 'proposals', body);
}

const leftText = ({ until }) => {
  const seconds = Math.max(0, Math.ceil((until - Date.now()) / 1000));
  return `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')} left`;
};

function line(one) {
  const link = `${location.origin}${location.pathname}#second=${encodeURIComponent(one.words)}`;
  return el('li', {}, el('p', {}, el('code', {}, one.words), ' ', el('span', { class: 'number muted left' }, leftText(one))),
    el('p', { class: 'hint' }, `Give this to another operator than ${who()?.session ?? 'you'}, to enter under “Second a proposal”, or send the link: `, el('a', { href: link }, link)));
}

// Times count down without the list being made anew: a link in it may have the focus.
function drawLeft(body, draw) {
  if (proposed.some(({ until }) => until <= Date.now())) return draw();
  body.querySelectorAll('.left').forEach((left, at) => setText(left, leftText(proposed[at])));
}

/** The requests of this page and their results. */
export function doneCard(hear) {
  const body = el('div', { id: 'done' });
  const row = ({ ms, words, told, isBad }) => [timeText(ms), el('code', {}, words), el('span', { class: isBad ? 'bad' : 'good' }, told)];
  const draw = () => refill(body, table('Requests from this page', [['Time'], ['What'], ['Result']], done.map(row), 'None yet. For the requests of all operators, see pares admin audit.'));
  hear('done', draw);
  draw();
  return card('Requests from this page', 'done-card', body);
}
