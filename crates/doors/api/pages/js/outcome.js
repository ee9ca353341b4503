// What became of a request, in words.

import { grouped } from './prices.js';
import { spoken } from './words.js';

/** `Resting, 60 traded, 40 left.` of an order; `Mass cancelled, 3 orders.` of a cancel of many. */
export function outcomeText({ status, reason, executed, remaining }) {
  const why = reason === 'none' ? '' : ` (${spoken(reason)})`;
  const what = spoken(status).replace(/^./, (letter) => letter.toUpperCase()) + why;
  if (status === 'mass_cancelled') return `${what}, ${grouped(executed)} ${executed === '1' ? 'order' : 'orders'}.`;
  const traded = executed === '0' ? '' : `, ${grouped(executed)} traded`;
  const left = remaining === '0' ? '' : `, ${grouped(remaining)} left`;
  return `${what}${traded}${left}.`;
}
