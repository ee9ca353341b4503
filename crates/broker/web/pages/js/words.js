// Refusals of the API in plain words, and the field that each is about.

const PLAIN = {
  'bad-user': ['name', 'A name is 1 to 32 letters and digits.'],
  'bad-symbol': ['symbol', 'A stock’s symbol is one to three letters.'],
  'bad-amount': ['amount', 'An amount is above zero, with two decimals at most.'],
  'bad-file': ['file', 'A file’s name has only letters, digits, dots and dashes.'],
  'too-many-files': ['file', 'You have as many files of logs as anybody may. Name one of them: it is written anew.'],
  'log-not-written': ['file', 'The log could not be written. Press the same button again soon.'],
  'no-account': ['', 'You have no account yet: add cash first.'],
  'no-quote': ['symbol', 'The quote server gave no price for this stock. Nothing has changed; try again in a moment.'],
  'stale-quote': ['symbol', 'The price had become too old. Nothing has changed; try again.'],
  'other-symbol': ['symbol', 'The quote server answered for another stock. Nothing has changed; try again.'],
  'insufficient-cash': ['amount', 'You do not have so much free cash.'],
  'below-one-share': ['amount', 'That is less than the price of one share.'],
  'insufficient-shares': ['amount', 'You do not own so many free shares of this stock.'],
  'nothing-pending': ['', 'There is nothing left to confirm or cancel.'],
  'other-pending': ['', 'Something newer is pending, from another window. Nothing was done; look at it first.'],
  'no-right': ['', 'You may not do that.'],
  lapsed: ['', 'The 60 seconds are over: it was given back, nothing was traded.'],
  'too-many-pending': ['', 'Too much is pending. Confirm or cancel something first.'],
  'no-amount-set': ['price', 'Set the amount first, then the price.'],
  'too-much': ['amount', 'No account holds so much.'],
  'bad-order': ['shares', 'That is more than an account holds.'],
  'order-too-large': ['shares', 'The order is larger than you may place.'],
  'too-many-orders': ['', 'You have as many open orders as you may. Cancel one first.'],
  'position-limit': ['shares', 'You would own more of this stock than you may.'],
  'loss-limit': ['', 'You have lost as much today as you may. Orders are taken again tomorrow (UTC).'],
  blocked: ['', 'Your orders are blocked. Ask the broker.'],
  'no-order': ['', 'There is no such order.'],
  'order-ended': ['', 'The order has ended already.'],
  'in-debt': ['', 'What a void trade left owed comes first.'],
  'no-customer': ['name', 'Nobody of that name has an account.'],
  'own-limits': ['name', 'Your own limits are for another supervisor to change.'],
  'person-taken': ['name', 'That name is taken.'],
  'bad-name': ['name', 'A name is 1 to 32 letters and digits.'],
  'bad-password': ['password', 'A password has 10 characters at least.'],
  'bad-new-password': ['new', 'A password has 10 characters at least.'],
  'wrong-password': ['password', 'Name or password is wrong.'],
  'code-needed': ['code', 'Now the code that your app shows.'],
  'wrong-code': ['code', 'That is not the code of now.'],
  'code-used': ['code', 'That code was used already. Wait for the next one.'],
  'person-changed': ['', 'Something has changed meanwhile. Begin again.'],
  'no-person': ['name', 'There is nobody of that name.'],
  'own-rights': ['name', 'Your own rights are for another supervisor to change.'],
};

const BY_STATUS = {
  0: 'No answer from the broker. A command may be executed still: press the same button again, and it is done once.',
  401: 'You were signed out. Sign in again.',
  403: 'You may not do that.',
  413: 'That is too long.',
  503: 'No site answers at the moment. A command may be executed still: press the same button again soon, and it is done once.',
};

/** `day-end` as people say it: `day end`. */
export const spoken = (reason) => reason.replaceAll('-', ' ');

/** What to show for a problem: `[field, words]`, the field empty if it is about none. */
export function inWords(problem) {
  const known = PLAIN[problem.reason];
  if (known) return known;
  if (problem.status === 429) return ['', `Too many tries. Wait ${Math.ceil((problem.afterMs || 1000) / 1000)} s.`];
  return ['', BY_STATUS[problem.status] ?? problem.message];
}
