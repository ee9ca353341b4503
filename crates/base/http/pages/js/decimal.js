// Decimal text as whole units in a BigInt, and back.
//
// A number of JavaScript is a float: 0.1 + 0.2 is not 0.3, and above 90 million million dollars a cent is lost. So an amount is
// text where it is shown or sent, and a BigInt where sums are made.

/** The units of `12`, `12.3` or `12.34` at two decimals; null if it is anything else. */
export function unitsOf(text, decimals) {
  const found = /^(\d{1,18})(?:\.(\d+))?$/.exec(String(text).trim().replaceAll(',', ''));
  if (!found || (found[2] ?? '').length > decimals) return null;
  return BigInt(found[1]) * 10n ** BigInt(decimals) + BigInt((found[2] ?? '').padEnd(decimals, '0'));
}

/** `1234.50` at two decimals. */
export function textOf(units, decimals) {
  const digits = units.toString().replace('-', '').padStart(decimals + 1, '0');
  return `${units < 0n ? '-' : ''}${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`;
}

/** `1,234` of a whole number. */
export function grouped(whole) {
  return String(whole).replace(/\B(?=(\d{3})+$)/g, ',');
}
