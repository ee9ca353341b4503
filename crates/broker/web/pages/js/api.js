// The public HTTP API, and nothing else: all that the pages know and do goes through here.
//
// A request that is lost may have been executed. So a command has a name of its own (`Idempotency-Key`), and is sent again under it
// until there is an answer: the broker executes it once. Without one after all tries the name is kept: who presses the button again sends the
// same command under the same name. Who has changed the form meanwhile sends another, and is told that of the first nothing is known.

import { ask, leave, underOneName, untilAnswered } from './http.js';

export { Problem, hearDoubts } from './http.js';

const BASE = '/api/v1';
let csrf = null;
let skewMs = 0;

/** Now by the server's clock, ms since 1970; by this machine's if they differ by less than two seconds. */
export const nowMs = () => Date.now() + skewMs;

function readClock(answer) {
  const theirs = Date.parse(answer.headers.get('Date') ?? '');
  if (Number.isNaN(theirs)) return;
  const apart = theirs + 500 - Date.now();
  skewMs = Math.abs(apart) > 2000 ? apart : 0;
}

function once(method, path, body, headers = {}) {
  const csrfToo = csrf && method !== 'GET' ? { 'X-CSRF': csrf, ...headers } : headers;
  return ask(method, BASE + path, { body, headers: csrfToo, heard: readClock, silence: 'No answer from the broker.' });
}

const answered = (method, path, body, headers, waiting) => untilAnswered(() => once(method, path, body, headers), waiting);
const get = (path) => answered('GET', path);

function forget() {
  csrf = null;
  leave();
}

function kept(session) {
  csrf = session.csrf;
  return session;
}

/**
 * A command, executed once however often it is sent. `waiting` is told when it has to be sent again. `form` sends it: what it sent without an
 * answer goes under the same name when it is sent again.
 */
export const command = (name, fields, waiting, form = name) => named(`/commands/${name}`, name, fields, waiting, form);

const named = (path, name, fields, waiting, form) => underOneName(form, [name, fields], () => crypto.randomUUID(),
  (key, again) => answered('POST', path, fields, { 'Idempotency-Key': key }, again), waiting);

export const signUp = (name, password) => once('POST', '/people', { name, password });
export async function signIn(name, password, code) {
  const session = await once('POST', '/session', code ? { name, password, code } : { name, password });
  // The session before may have ended without a word.
  leave();
  return kept(session);
}
export const session = async () => kept(await get('/session'));
export const signOut = () => once('DELETE', '/session').finally(forget);
export const signOutAll = () => once('DELETE', '/sessions').then(forget);
export const setPassword = (password, wanted) => once('POST', '/password', { password, new: wanted });

export const totpBegin = (password) => once('POST', '/totp', { password });
export const totpConfirm = (code) => once('POST', '/totp/confirm', { code });
export const totpEnd = (password, code) => once('DELETE', '/totp', { password, code });

export const account = () => get('/account');
const query = (wanted) => new URLSearchParams(Object.entries(wanted).filter(([, value]) => value));
export const history = (wanted) => get(`/history?${query(wanted)}`);

/** Places an order on the exchange, once. */
export const placeOrder = (wanted, waiting) => named('/orders', 'order', wanted, waiting, 'order');
export const orders = (wanted) => get(`/orders?${query(wanted)}`);
export const cancelOrder = (number, waiting) => answered('DELETE', `/orders/${number}`, undefined, {}, waiting);

export const quote = (symbol) => get(`/quotes/${symbol}`);
export const points = (symbol) => get(`/quotes/${symbol}/points`);

export const users = (from) => get(`/supervisor/users${from ? `?from=${encodeURIComponent(from)}` : ''}`);
export const costs = () => get('/supervisor/costs');
export const setRights = (name, rights) => once('POST', `/supervisor/people/${encodeURIComponent(name)}/rights`, rights);

const ofUser = (what, name) => `/supervisor/${what}/${encodeURIComponent(name)}`;
export const limits = (name) => get(ofUser('limits', name));
export const setLimits = (name, limits) => once('PUT', ofUser('limits', name), limits);
export const kill = (name, isOn) => once(isOn ? 'PUT' : 'DELETE', ofUser('kill', name));

export const noticesUrl = () => `${location.protocol === 'https:' ? 'wss' : 'ws'}://${location.host}${BASE}/notices`;
export const logUrl = `${BASE}/log`;
export const supervisorLogUrl = `${BASE}/supervisor/log`;
