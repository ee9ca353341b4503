// The supervisor's page: all users, what this front’s quotes have cost, everybody's log, limits, and rights.

import * as api from './api.js';
import { customerCard } from './customer.js';
import { card, el, refill, table } from './dom.js';
import { action, errorPlace, field, form } from './forms.js';
import { dollarsOf, grouped } from './money.js';
import { inWords } from './words.js';

/** The page. */
export function supervisor() {
  return el('div', { class: 'supervisor' }, el('h1', { tabindex: '-1' }, 'Supervisor'),
    costs(), dump(), users(), customerCard(), rights());
}

// Reads into `body` and shows there what went wrong.
function into(body, work) {
  const error = errorPlace();
  body.before(error);
  const again = () => work().then(() => { error.textContent = ''; }, (problem) => { [, error.textContent] = inWords(problem); });
  queueMicrotask(again);
  return again;
}

function costs() {
  const body = el('dl', { class: 'totals' });
  const made = card('Cost of quotes', 'costs', body, el('p', { class: 'hint' }, 'These are this front’s costs; the log of all users lists every paid quote. Requests that brought no quote appear only on the quote server’s bill.'));
  const read = into(body, async () => {
    const { front_hits: hits, front_dollars: dollars } = await api.costs();
    const line = (words, value) => el('div', {}, el('dt', {}, words), el('dd', {}, value));
    refill(body, line('Quotes bought by this front since it started', grouped(hits)), line('Cost', dollarsOf(dollars)));
  });
  made.append(action({ id: 'costs-again', label: 'Refresh', isQuiet: true, work: async () => { await read(); return 'Costs read.'; } }));
  return made;
}

function dump() {
  return card('Log of all', 'dump-card', el('p', {}, 'All commands, cents and quotes of all users, as XML.'),
    el('p', {}, el('a', { href: api.supervisorLogUrl, download: 'all.xml', id: 'download-all' }, 'Download all users’ log')));
}

function users() {
  const body = el('div');
  const shown = { users: [], from: undefined };
  const made = card('Users', 'users', body);
  const read = async () => {
    const page = await api.users(shown.from);
    shown.users.push(...page.users);
    shown.from = page.from;
    const more = shown.from && action({ id: 'more-users', label: 'Show more', isQuiet: true, work: read });
    refill(body, table('All users', [['Name'], ['Rights'], ['Cash', true]], shown.users.map(userCells), 'No users yet.'), more);
  };
  into(body, read);
  return made;
}

const userCells = (user) => (typeof user === 'string' ? [user, '', '–'] : [user.name, (user.rights ?? []).join(', '), dollarsOf(user.cash)]);

function rights() {
  const name = field({ id: 'right-name', name: 'name', label: 'Name' });
  const box = el('input', { type: 'checkbox', id: 'right-supervisor' });
  const made = form({
    id: 'rights', fields: [name], button: 'Set the rights', isQuiet: true,
    submit: async (values) => {
      await api.setRights(values.name, { rights: box.checked ? ['trader', 'supervisor'] : ['trader'] });
      return `The rights of ${values.name} are set.`;
    },
  });
  made.element.firstElementChild.after(el('div', { class: 'check' }, box, el('label', { for: 'right-supervisor' }, 'May supervise')));
  return card('Rights', 'rights-card', made.element);
}
