// Prices: ten-thousandths as BigInt, read from and written as decimal text.

import { grouped, textOf, unitsOf } from './decimal.js';

export { grouped };

const DECIMALS = 4;

/** The units of a price; null if it is none. */
export const unitsOfPrice = (text) => unitsOf(text, DECIMALS);

/** `1,234.50`: two decimals at least. */
export function priceText(units) {
  const [whole, decimals] = textOf(units, DECIMALS).split('.');
  return `${grouped(whole)}.${decimals.replace(/0{1,2}$/, '')}`;
}

/** The same of the API's text; a dash if there is none. */
export function shown(text) {
  const units = text == null ? null : unitsOfPrice(text);
  return units == null ? '–' : priceText(units);
}
