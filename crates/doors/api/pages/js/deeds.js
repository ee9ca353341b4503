// What operators do, in the words of `pares admin`: so a proposal can be said, sent and seconded here or there.
//
//   phase ALFA halted      block 7      unblock 7      four-eyes on

import * as api from './api.js';
import { PHASES, phaseText } from './words.js';

const FORM = 'One of: phase ALFA halted, block 7, unblock 7, four-eyes on, four-eyes off.';
/** Phases that an operator may ask for: a volatility call comes by itself. */
export const ASKED = Object.keys(PHASES).filter((phase) => phase !== 'volatility_call');
/** Phases that stop a market, so that two operators may be needed. */
const STOPS = ['closed', 'halted'];
const VERBS = { continuous: 'Open', closed: 'Close', halted: 'Halt' };

/** Tries to cancel the orders that a block has left, before one is told. */
const BLOCKS_MAX = 1000;

/** The deed of these words: { words, title, meaning, canPropose, ask(propose, waiting) }. Throws how it should be. */
export function deedOf(text) {
  const words = text.trim().replace(/^pares admin /, '').replace(/ --(propose|key \S+)/g, '').split(/\s+/);
  const made = MAKERS[words[0]]?.(...words.slice(1));
  if (!made) throw new Error(FORM);
  return { words: words.join(' '), ...made };
}

const MAKERS = {
  phase(symbol, word, ...more) {
    const phase = word?.replaceAll('-', '_');
    if (!symbol || !ASKED.includes(phase) || more.length) return null;
    return {
      title: VERBS[phase] ? `${VERBS[phase]} ${symbol}` : `${symbol}: ${phaseText(phase).toLowerCase()}`,
      meaning: PHASES[phase][1],
      canPropose: STOPS.includes(phase),
      ask: (propose, waiting) => api.setPhase(symbol, phase, propose, waiting),
    };
  },
  block(member, ...more) {
    if (!/^\d+$/.test(member ?? '') || more.length) return null;
    return {
      title: `Block member ${member}`,
      meaning: 'Cancels all its orders in every instrument, and refuses new ones until it is unblocked.',
      canPropose: true,
      ask: (propose, waiting) => blockAll(member, propose, waiting),
    };
  },
  unblock(member, ...more) {
    if (!/^\d+$/.test(member ?? '') || more.length) return null;
    return { title: `Unblock member ${member}`, meaning: 'Accepts its orders again.', canPropose: false, ask: (_, waiting) => api.unblock(member, waiting) };
  },
  'four-eyes'(state, ...more) {
    if (!['on', 'off'].includes(state) || more.length) return null;
    return state === 'on'
      ? { title: 'Four eyes on', meaning: 'Closing, halting and blocking will need two operators.', canPropose: false, ask: (_, waiting) => api.fourEyesOn(waiting) }
      : { title: 'Four eyes off', meaning: 'One operator will be able to close, halt and block.', canPropose: true, ask: api.fourEyesOff };
  },
};

// A block cancels so many orders at a time; what is left is asked for again.
async function blockAll(member, propose, waiting) {
  let cancelled = 0n;
  for (let turn = 1; ; turn += 1) {
    const outcome = await api.block(member, propose, waiting);
    cancelled += BigInt(outcome.executed);
    if (outcome.reason !== 'unfinished' || turn >= BLOCKS_MAX) return { ...outcome, executed: cancelled.toString() };
  }
}
