// Money: whole cents as BigInt, read from and written as decimal dollars.
//
// A number of JavaScript is a float: 0.1 + 0.2 is not 0.3, and above 90 million million dollars a cent is lost. So an amount is
// text where it is shown or sent, and a BigInt where sums are made.

/** The most that a command may name, cents. */
export const CENTS_MAX = 1_000_000_000_000_000n;

/** The cents of `12`, `12.3` or `12.34`; null if it is anything else or more than CENTS_MAX. */
export function centsOf(text) {
  const found = /^(\d{1,18})(?:\.(\d{1,2}))?$/.exec(String(text).trim().replaceAll(',', ''));
  if (!found) return null;
  const cents = BigInt(found[1]) * 100n + BigInt((found[2] ?? '').padEnd(2, '0'));
  return cents <= CENTS_MAX ? cents : null;
}

/** `1234.50`, as the API wants it. */
export function plain(cents) {
  const digits = cents.toString().replace('-', '').padStart(3, '0');
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`;
}

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

/** `1,234` of a whole number. */
export function grouped(whole) {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, ',');
}

/** `1 share`, `1,234 shares`. */
export function sharesText(count) {
  return `${grouped(count)} ${BigInt(count) === 1n ? 'share' : 'shares'}`;
}
