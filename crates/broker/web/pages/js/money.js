// Money: whole cents as BigInt, read from and written as decimal dollars.

import { grouped, textOf, unitsOf } from './decimal.js';

export { grouped };

/** The most that a command may name, cents. */
export const CENTS_MAX = 1_000_000_000_000_000n;

/** The cents of `12`, `12.3` or `12.34`; null if it is anything else or more than CENTS_MAX. */
export function centsOf(text) {
  const cents = unitsOf(text, 2);
  return cents !== null && cents <= CENTS_MAX ? cents : null;
}

/** `1234.50`, as the API wants it. */
export const plain = (cents) => textOf(cents, 2);

/** `$1,234.50`, for people. */
export function dollars(cents) {
  const [whole, decimals] = plain(cents < 0n ? -cents : cents).split('.');
  return `${cents < 0n ? '−' : ''}$${grouped(whole)}.${decimals}`;
}

/** `$1,234.50` of the API's text; a dash if there is none. */
export function dollarsOf(text) {
  const cents = text == null ? null : centsOf(text);
  return cents == null ? '–' : dollars(cents);
}

/** `1 share`, `1,234 shares`. */
export function sharesText(count) {
  return `${grouped(count)} ${BigInt(count) === 1n ? 'share' : 'shares'}`;
}
