// What the broker's forms know besides those of all pages: money, symbols, and what refusals say.

import { asIs, teach } from './forms.js';
import { centsOf, plain } from './money.js';
import { signedOut } from './state.js';
import { inWords } from './words.js';

function readMoney(text) {
  const cents = centsOf(text.replace(/^\$\s*/, ''));
  if (!cents) throw 'An amount is above zero, with two decimals at most, like 12.50.';
  return plain(cents);
}

/** Teaches the forms. */
export function teachForms() {
  teach({
    looks: {
      money: { inputmode: 'decimal', placeholder: '0.00', maxlength: 20 },
      // Longer than a symbol may be: a field that cut `GOOG` would ask for another stock.
      symbol: { maxlength: 16, autocapitalize: 'characters', spellcheck: 'false', class: 'symbol' },
    },
    readers: {
      money: readMoney,
      symbol: (text) => asIs(/^[A-Z]{1,3}$/, text, 'A stock’s symbol is one to three letters.'),
    },
    words: inWords,
    heard: (problem) => { if (problem.reason === 'no-session') signedOut(); },
  });
}
