// The public HTTP API, and nothing else: all that the pages know and do goes through here.
//
// A request that is lost may have been executed. So a command has a name of its own (`Idempotency-Key`), and is sent again under it
// until there is an answer: the broker executes it once. Without one after all tries the name is kept: who presses the button again sends the
// same command under the same name. Who has changed the form meanwhile sends another, and is told that of the first nothing is known.

const BASE = '/api/v1';
/** Pauses before a command or a read is sent again, ms. */
const PAUSES_MS = [300, 700, 1500, 3000, 5000];

let csrf = null;
let skewMs = 0;

/** Now by the server's clock, ms since 1970; by this machine's if they differ by less than two seconds. */
export const nowMs = () => Date.now() + skewMs;

/** A refusal or failure of the API. `status` 0: nothing answered. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.reason = body.reason ?? null;
  }
}

function request(method, path, body, headers) {
  const asked = { method, headers: { ...headers }, credentials: 'same-origin', cache: 'no-store' };
  if (csrf && method !== 'GET') asked.headers['X-CSRF'] = csrf;
  if (body !== undefined) {
    asked.headers['Content-Type'] = 'application/json';
    asked.body = JSON.stringify(body);
  }
  return fetch(BASE + path, asked);
}

function readClock(answer) {
  const theirs = Date.parse(answer.headers.get('Date') ?? '');
  if (Number.isNaN(theirs)) return;
  const apart = theirs + 500 - Date.now();
  skewMs = Math.abs(apart) > 2000 ? apart : 0;
}

async function once(method, path, body, headers) {
  let answer;
  try {
    answer = await request(method, path, body, headers);
  } catch {
    throw new Problem(0, { detail: 'No answer from the broker.' });
  }
  readClock(answer);
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get('Content-Type') ?? '');
  const read = isJson && text ? JSON.parse(text) : {};
  if (answer.ok) return read;
  const problem = new Problem(answer.status, read);
  problem.afterMs = Number(answer.headers.get('Retry-After') ?? 0) * 1000;
  throw problem;
}

const mayPass = (problem) => problem instanceof Problem && [0, 502, 503, 504].includes(problem.status);
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

async function untilAnswered(method, path, body, headers, waiting) {
  for (const pauseMs of PAUSES_MS) {
    try {
      return await once(method, path, body, headers);
    } catch (problem) {
      if (!mayPass(problem)) throw problem;
      waiting?.(problem);
      await pause(Math.max(pauseMs, Math.min(problem.afterMs ?? 0, 5000)));
    }
  }
  return once(method, path, body, headers);
}

const get = (path) => untilAnswered('GET', path);

function forget() {
  csrf = null;
  doubted.clear();
}

function kept(session) {
  csrf = session.csrf;
  return session;
}

/** Commands that were sent and may be executed or not, the latest of each form: form -> { said, key }. */
const doubted = new Map();
/** Statuses that say what became of a command under its name: it is known, or was refused by the rules. */
const settles = (problem) => [404, 409, 422].includes(problem.status);
let tellDoubt = () => {};

/** `told` hears of a command that was left without an answer when its form sends another. */
export function hearDoubts(told) { tellDoubt = told; }

/**
 * A command, executed once however often it is sent. `waiting` is told when it has to be sent again. `form` sends it: what it sent without an
 * answer goes under the same name when it is sent again.
 */
export const command = (name, fields, waiting, form = name) => named(`/commands/${name}`, name, fields, waiting, form);

async function named(path, name, fields, waiting, form) {
  const said = JSON.stringify([name, fields]);
  const before = doubted.get(form);
  const key = before?.said === said ? before.key : crypto.randomUUID();
  if (before && before.key !== key) tellDoubt(JSON.parse(before.said));
  doubted.delete(form);
  let isDoubted = before?.key === key;
  try {
    return await untilAnswered('POST', path, fields, { 'Idempotency-Key': key }, (problem) => {
      isDoubted = true;
      waiting?.(problem);
    });
  } catch (problem) {
    if (mayPass(problem) || (isDoubted && !settles(problem))) doubted.set(form, { said, key });
    throw problem;
  }
}

export const signUp = (name, password) => once('POST', '/people', { name, password });
export const signIn = async (name, password, code) =>
  kept(await once('POST', '/session', code ? { name, password, code } : { name, password }));
export const session = async () => kept(await get('/session'));
export const signOut = async () => { await once('DELETE', '/session'); forget(); };
export const signOutAll = async () => { await once('DELETE', '/sessions'); forget(); };
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
export const cancelOrder = (number, waiting) => untilAnswered('DELETE', `/orders/${number}`, undefined, {}, waiting);

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
