// What the pages say: phases, kinds of orders, and refusals as the exchange says them.

import { teach } from './forms.js';
import { textOf } from './decimal.js';
import { unitsOfPrice } from './prices.js';

/** What each phase is called, and what it means. */
export const PHASES = {
  closed: ['Closed', 'Orders can only be cancelled.'],
  opening_call: ['Opening call', 'Orders collect for the opening auction; nothing trades until it ends.'],
  continuous: ['Continuous', 'Orders trade on arrival.'],
  volatility_call: ['Volatility call', 'Orders collect for an auction, because a trade would have left the price band.'],
  closing_call: ['Closing call', 'Orders collect for the closing auction; nothing trades until it ends.'],
  post_close: ['Post close', 'Orders trade at the closing price.'],
  halted: ['Halted', 'Stopped by the exchange: orders can only be cancelled.'],
};

/** `Opening call` of `opening_call`; a word that is not known is said as it is. */
export const phaseText = (phase) => PHASES[phase]?.[0] ?? phase.replaceAll('_', ' ');

/** A word of the exchange as people say it. */
export const spoken = (word) => word.replaceAll('_', ' ');

/** What to say of a problem: the exchange's own words, and its word for programs. */
export function refusal(problem) {
  return problem.reason ? `${problem.message.replace(/\.$/, '')} (${problem.reason}).` : problem.message;
}

function readPrice(text) {
  const units = unitsOfPrice(text);
  if (units == null) throw 'A price may have at most four decimals, such as 223.82.';
  return textOf(units, 4);
}

/** Teaches the forms what the exchange's pages have besides those of all pages. */
export function teachForms() {
  teach({
    looks: { price: { inputmode: 'decimal', maxlength: 20 }, member: { inputmode: 'numeric', maxlength: 10 } },
    readers: {
      price: readPrice,
      member: (text) => { if (!/^\d{1,10}$/.test(text)) throw 'A member must be a number.'; return Number(text); },
    },
    // "quantity: ..." names its field.
    words: (problem) => {
      const [, field] = /^([a-z_]+): /.exec(problem.message) ?? [];
      return [field ?? '', refusal(problem)];
    },
    heard: () => {},
  });
}
