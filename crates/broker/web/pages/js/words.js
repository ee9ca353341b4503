// Refusals of the API in plain words, and the field that each is about.

const PLAIN = {
  'bad-user': ['name', 'A name is 1 to 32 letters and digits.'],
  'bad-symbol': ['symbol', 'A stock’s symbol is one to three letters.'],
  'bad-amount': ['amount', 'An amount must be above zero and at most 10,000,000,000,000.00, with at most two decimals.'],
  'bad-file': ['file', 'A file’s name may have only letters, digits, dots and dashes.'],
  'too-many-files': ['file', 'You have reached the limit of log files. Name an existing one to overwrite it.'],
  'log-not-written': ['file', 'The log could not be written. Press the same button again in a moment.'],
  'no-account': ['', 'You have no account yet: add cash first.'],
  'no-quote': ['symbol', 'The quote server gave no price for this stock. Nothing has changed; try again in a moment.'],
  'stale-quote': ['symbol', 'The price was too old. Nothing has changed; try again.'],
  'other-symbol': ['symbol', 'The quote server answered for another stock. Nothing has changed; try again.'],
  'insufficient-cash': ['amount', 'You do not have enough free cash.'],
  'below-one-share': ['amount', 'That is less than the price of one share.'],
  'insufficient-shares': ['amount', 'You do not have enough free shares of this stock.'],
  'nothing-pending': ['', 'There is nothing left to confirm or cancel.'],
  'other-pending': ['', 'A newer command from another window is pending. Nothing was done; look at it first.'],
  'no-right': ['', 'You do not have the right to do that.'],
  lapsed: ['', 'The 60 seconds have passed: it was released, and nothing traded.'],
  'too-many-pending': ['', 'Too many commands are pending. Confirm or cancel one first.'],
  'no-amount-set': ['price', 'Set the amount first, then the price.'],
  'too-much': ['amount', 'The amount exceeds the maximum of an account.'],
  'bad-order': ['shares', 'The order exceeds the maximum of an account.'],
  'order-too-large': ['shares', 'The order exceeds your size limit.'],
  'too-many-orders': ['', 'You have reached your limit of open orders. Cancel one first.'],
  'position-limit': ['shares', 'The order would exceed your position limit in this stock.'],
  'loss-limit': ['', 'You have reached your loss limit for today. You can place orders again tomorrow (UTC).'],
  blocked: ['', 'Your orders are blocked. Ask the broker.'],
  'no-order': ['', 'There is no such order.'],
  'order-ended': ['', 'The order has already ended.'],
  'in-debt': ['', 'Pay the debt from a void trade first.'],
  'no-customer': ['name', 'There is no account of that name.'],
  'own-limits': ['name', 'Another supervisor must change your limits.'],
  'person-taken': ['name', 'That name is taken.'],
  'bad-name': ['name', 'A name is 1 to 32 letters and digits.'],
  'bad-password': ['password', 'A password must have at least 10 characters, none of them a control character or unassigned in Unicode.'],
  'bad-new-password': ['new', 'A password must have at least 10 characters, none of them a control character or unassigned in Unicode.'],
  'wrong-password': ['password', 'The name or password is wrong.'],
  'code-needed': ['code', 'Enter the code that your app shows.'],
  'wrong-code': ['code', 'The code is wrong.'],
  'code-used': ['code', 'That code was already used. Wait for the next one.'],
  'person-changed': ['', 'Your data changed in the meantime. Start again.'],
  'no-person': ['name', 'There is no person of that name.'],
  'own-rights': ['name', 'Another supervisor must change your rights.'],
};

const BY_STATUS = {
  0: 'No answer from the broker. The command may still be executed. Press the same button again: it is executed only once.',
  401: 'You were signed out. Sign in again.',
  403: 'You do not have the right to do that.',
  413: 'The input is too long.',
  503: 'No site answers now. The command may still be executed. Press the same button again in a moment: it is executed only once.',
};

/** `day-end` as people say it: `day end`. */
export const spoken = (reason) => reason.replaceAll('-', ' ');

/** What to show for a problem: `[field, words]`, the field empty if it is about none. */
export function inWords(problem) {
  const known = PLAIN[problem.reason];
  if (known) return known;
  if (problem.status === 429) return ['', `Too many attempts. Wait ${Math.ceil((problem.afterMs || 1000) / 1000)} s.`];
  return ['', BY_STATUS[problem.status] ?? problem.message];
}
