// One's own page: password and sessions, the second factor, and one's log to take away.

import * as api from './api.js';
import { card, el, refill } from './dom.js';
import { action, field, form } from './forms.js';
import { mark, signedOut, state } from './state.js';

/** The page. */
export function person() {
  return el('div', { class: 'narrow' }, el('h1', { tabindex: '-1' }, 'You'),
    el('p', {}, 'Signed in as ', el('strong', {}, state.session.name), '.'), password(), factor(), log());
}

function password() {
  const before = field({ id: 'password-now', name: 'password', label: 'Your password', kind: 'secret', autocomplete: 'current-password' });
  const wanted = field({ id: 'password-new', name: 'new', label: 'New password', kind: 'secret', autocomplete: 'new-password', hint: 'At least 10 characters' });
  const change = form({
    id: 'password', fields: [before, wanted], button: 'Change password', isQuiet: true,
    submit: async (values) => {
      if ([...values.new].length < 10) throw new api.Problem(422, { reason: 'bad-new-password' });
      await api.setPassword(values.password, values.new);
      change.clear();
      return 'Your password is changed. All other sessions are signed out.';
    },
  });
  const out = action({ id: 'sign-out-all', label: 'Sign out everywhere', isQuiet: true, work: async () => { await api.signOutAll(); signedOut(); } });
  return card('Password and sessions', 'password-card', change.element,
    el('p', {}, 'If someone else may be signed in as you, change your password, or end all sessions, including this one:'), out);
}

function factor() {
  const body = el('div');
  const own = field({ id: 'totp-own', name: 'password', label: 'Your password', kind: 'secret', autocomplete: 'current-password' });
  const begin = form({
    id: 'totp-begin', fields: [own], button: 'Set up',
    submit: async (values) => {
      const secret = await api.totpBegin(values.password);
      begin.clear();
      showSecret(body, secret);
    },
  });
  const password = field({ id: 'totp-password', name: 'password', label: 'Your password', kind: 'secret', autocomplete: 'current-password' });
  const code = field({ id: 'totp-end-code', name: 'code', label: 'Current code', kind: 'code' });
  const end = form({
    id: 'totp-end', fields: [password, code], button: 'Turn off', isQuiet: true,
    submit: async (values) => {
      await api.totpEnd(values.password, values.code);
      end.clear();
      return 'Signing in now needs only the password.';
    },
  });
  return card('Codes from an app (second factor)', 'factor',
    el('p', {}, 'With an app, signing in needs your password and a code that changes every 30 seconds.'),
    begin.element, body, el('details', {}, el('summary', {}, 'Turn the codes off'), end.element));
}

function showSecret(body, { secret, uri }) {
  const code = field({ id: 'totp-code', name: 'code', label: 'The code that the app shows', kind: 'code' });
  const confirm = form({
    id: 'totp-confirm', fields: [code], button: 'Confirm',
    submit: async (values) => {
      await api.totpConfirm(values.code);
      refill(body, el('p', { class: 'done' }, 'Signing in now needs a code.'));
      return 'Signing in now needs a code.';
    },
  });
  refill(body, el('p', {}, 'Give this secret to your app, or ', el('a', { href: uri }, 'open it there'), ':'),
    el('p', {}, el('code', { class: 'secret' }, secret)), confirm.element);
  code.input.focus();
}

function log() {
  const file = field({ id: 'file', name: 'file', label: 'File on the broker’s side', hint: 'Letters, digits, dots and dashes', value: 'log.xml' });
  const dump = form({
    id: 'dump', fields: [file], button: 'Write the log', isQuiet: true,
    submit: async (values, waiting) => {
      await api.command('dumplog', values, waiting);
      mark('history');
      return `Your log is being written to ${values.file}. Download it below.`;
    },
  });
  return card('Your log', 'log-card',
    el('p', {}, 'Everything that happened in your account, as XML: each command, each cent, each quote.'), dump.element,
    el('p', {}, el('a', { href: api.logUrl, download: 'log.xml', id: 'download' }, 'Download the log')));
}
