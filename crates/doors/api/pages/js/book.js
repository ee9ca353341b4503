// A book as it is told: first all of it, then what changes, each change on the one before, with a sum over the best prices.
//
// A page that merely adds up what comes shows a wrong book for ever once something was lost. Here each change names the number that it
// builds on, and the sum is made again from what is here: if either is another, the book is told anew.

import { unitsOfPrice } from './prices.js';

/** Prices of each side that the sum is made of. */
const SUMMED = 10;
const SIDES = ['bids', 'offers'];

const TABLE = Uint32Array.from({ length: 256 }, (_, byte) => {
  let sum = byte;
  for (let bit = 0; bit < 8; bit += 1) sum = (sum >>> 1) ^ (sum & 1 ? 0xedb88320 : 0);
  return sum;
});

/** CRC-32 (IEEE) of ASCII text, as 8 hex digits. */
export function crc32(text) {
  let sum = 0xffffffff;
  for (let at = 0; at < text.length; at += 1) sum = (sum >>> 8) ^ TABLE[(sum ^ text.charCodeAt(at)) & 0xff];
  return ((sum ^ 0xffffffff) >>> 0).toString(16).padStart(8, '0');
}

const ahead = { bids: (one, other) => other - one, offers: (one, other) => one - other };
const order = (side) => (one, other) => { const by = ahead[side](one.units, other.units); return by > 0n ? 1 : by < 0n ? -1 : 0; };

/** An empty book, of which nothing was told yet. */
export const empty = () => ({ number: null, isCurrent: false, bids: [], offers: [] });

const level = ({ price, quantity }) => ({ units: unitsOfPrice(price), shares: BigInt(quantity) });

function sumOf(book) {
  const best = SIDES.flatMap((side) => book[side].slice(0, SUMMED));
  return crc32(best.map(({ units, shares }) => `${units}:${shares};`).join(''));
}

/** The book after a message; null if that does not fit what is here, so that it has to be told anew. */
export function after(book, message) {
  const isWhole = message.type === 'snapshot';
  if (!isWhole && message.previous !== book.number) return null;
  const next = { number: message.number, isCurrent: message.is_current };
  for (const side of SIDES) next[side] = changed(isWhole ? [] : book[side], message[side].map(level), side);
  return sumOf(next) === message.checksum ? next : null;
}

function changed(before, changes, side) {
  if (changes.length === 0) return before;
  const byPrice = new Map(before.map((one) => [one.units, one]));
  for (const one of changes) byPrice.set(one.units, one);
  return [...byPrice.values()].filter((one) => one.shares > 0n).sort(order(side));
}
