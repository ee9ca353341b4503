// The history: every command with its time and what became of it, newest first, filtered by command and time.

import * as api from './api.js';
import { card, el, refill, say, table, timeText } from './dom.js';
import { action, errorPlace, field, form } from './forms.js';
import { dollarsOf } from './money.js';
import { inWords } from './words.js';

export const COMMANDS = [
  'add', 'quote', 'buy', 'commit-buy', 'cancel-buy', 'sell', 'commit-sell', 'cancel-sell', 'set-buy-amount', 'set-buy-trigger',
  'cancel-set-buy', 'set-sell-amount', 'set-sell-trigger', 'cancel-set-sell', 'dumplog', 'display-summary',
];
const COLUMNS = [['Time'], ['Command'], ['Amount', true], ['Outcome'], ['What happened'], ['Number', true]];
/** Entries of a page. */
const LIMIT = 50;

/** `set-buy-amount` for people: `Set buy amount`. */
export function titleOf(command) {
  const words = String(command).toLowerCase().replaceAll(/[-_]/g, ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The page. */
export function history(hear) {
  const shown = { wanted: {}, entries: [], before: undefined };
  const body = el('div', { id: 'entries' });
  const error = errorPlace();
  const filter = filterForm((wanted) => { shown.wanted = wanted; return read(shown, body); });
  let isOld = false;
  hear('history', () => { isOld = true; });
  // What happens meanwhile appears by itself as long as one looks at the newest page.
  hear('second', () => {
    if (isOld && shown.entries.length <= LIMIT) {
      isOld = false;
      read(shown, body).catch(() => {});
    }
  });
  read(shown, body).catch((problem) => { [, error.textContent] = inWords(problem); });
  return el('div', {}, el('h1', { tabindex: '-1' }, 'History'), card('Filter', 'filter-card', filter), card('Entries', 'entries-card', error, body));
}

function filterForm(apply) {
  const options = [el('option', { value: '' }, 'All'), COMMANDS.map((name) => el('option', { value: name }, titleOf(name)))];
  const command = el('select', { id: 'command', name: 'command' }, options);
  const since = field({ id: 'since', name: 'since_ms', label: 'From', kind: 'time', isOptional: true });
  const until = field({ id: 'until', name: 'until_ms', label: 'To', kind: 'time', isOptional: true });
  const made = form({
    id: 'filter', fields: [since, until], button: 'Show',
    submit: async (values) => {
      const ms = (text) => (text ? new Date(text).getTime() : undefined);
      const count = await apply({ command: command.value, since_ms: ms(values.since_ms), until_ms: ms(values.until_ms) });
      return `${count} ${count === 1 ? 'entry' : 'entries'}.`;
    },
  });
  made.element.prepend(el('div', { class: 'field' }, el('label', { for: 'command' }, 'Command'), command));
  made.element.classList.add('inline');
  return made.element;
}

async function read(shown, body, before) {
  const page = await api.history({ ...shown.wanted, limit: LIMIT, before });
  shown.entries = before ? [...shown.entries, ...page.entries] : page.entries;
  shown.before = page.before;
  const more = shown.before != null && action({
    id: 'older', label: 'Show older', isQuiet: true,
    work: async () => { await read(shown, body, shown.before); say(`${shown.entries.length} entries.`); },
  });
  refill(body, table('History, newest first', COLUMNS, shown.entries.map(cells), 'Nothing here yet.'), more);
  return shown.entries.length;
}

function cells(entry) {
  const notes = entry.notes ?? [];
  const isRefused = entry.outcome === 'refused';
  const why = isRefused && entry.reason ? inWords({ reason: entry.reason, message: titleOf(entry.reason) })[1] : '';
  const said = [why, ...notes.map(noteText)].filter(Boolean);
  return [
    el('time', { datetime: new Date(entry.time_ms).toISOString() }, timeText(entry.time_ms)),
    [commandOf(entry), entry.symbol].filter(Boolean).join(' ') || '–', entry.amount == null ? '' : dollarsOf(entry.amount),
    el('span', { class: isRefused ? 'bad' : 'good' }, isRefused ? 'Refused' : 'Done'),
    said.map((words) => el('div', {}, words)), el('span', { class: 'muted' }, String(entry.number)),
  ];
}

// None of the sixteen is refused without its name: so that was an order on the exchange.
function commandOf({ command, order, outcome }) {
  if (command) return titleOf(command);
  return order || outcome === 'refused' ? 'Order' : '';
}

function noteText({ kind, text, amount }) {
  const words = text ? text.charAt(0).toUpperCase() + text.slice(1) : titleOf(kind);
  return amount == null || words.includes(amount) ? words : `${words}: ${dollarsOf(amount)}`;
}
