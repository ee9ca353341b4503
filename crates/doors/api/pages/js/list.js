// The instruments: what each is called, how it trades, and its last price. One of them is in hand.

import { card, el, refill } from './dom.js';
import { shown } from './prices.js';
import { choose, state } from './state.js';
import { PHASES, phaseText } from './words.js';

/** A phase as a mark with its meaning. */
export const phaseMark = ({ phase, is_quarantined: isQuarantined }) =>
  el('span', { class: `phase ${phase}`, title: isQuarantined ? 'Takes nothing: the matching engine failed at a request.' : PHASES[phase]?.[1] },
    isQuarantined ? 'Quarantined' : phaseText(phase));

/** All of them, as a list of which one is chosen. */
export function instrumentsCard(hear) {
  const body = el('tbody');
  const made = card('Instruments', 'instruments', el('div', { class: 'scroll tall', tabindex: '0', role: 'region', 'aria-label': 'All instruments' },
    el('table', {}, el('thead', {}, el('tr', {}, el('th', { scope: 'col' }, 'Symbol'), el('th', { scope: 'col' }, 'Phase'), el('th', { scope: 'col', class: 'number' }, 'Last'))), body)));
  const draw = () => refill(body, state.instruments.map(row));
  for (const topic of ['instruments', 'symbol']) hear(topic, draw);
  draw();
  return made;
}

function row(one) {
  const isChosen = one.symbol === state.symbol;
  return el('tr', { class: isChosen && 'chosen' },
    el('th', { scope: 'row' }, el('button', { class: 'quiet', id: `choose-${one.symbol}`, 'aria-pressed': String(isChosen), onclick: () => choose(one.symbol) }, one.symbol)),
    el('td', {}, phaseMark(one)), el('td', { class: 'number' }, shown(one.last)));
}
