// The exchange's HTTP API, and nothing else: all that the pages know and do goes through here.
//
// The token is in this page's memory alone: a page that is loaded anew signs on anew. A session with a key ends when its gateway dies (401
// `sign_on_again`); then the key, which is here still, signs on again, and what has no answer is asked again under its name. Who is told of
// another member by then, finds no gateway for some ten seconds, or is in use elsewhere, has to sign on by hand.

import { Problem, ask, leave, underOneName, untilAnswered } from './http.js';
import { keyOf } from './key.js';
import { mark } from './topics.js';

const BASE = '/v1';
/** Pages name their requests in a series of their own: another program of the session counts for itself. */
const PAGES_SERIES = 1 << 14;
/** What a session enters in the series above this dies with it. */
const GUARDED_SERIES = 1 << 15;

/** A session that is in use in two places ends in one as it begins in the other: so often within so long, ms, and the page gives way. */
const QUICK_MS = 5000;
const QUICK_MAX = 3;

/**
 * Who is signed on, or null: { member, session, copied, token, key, again, quick, madeMs }. It is the same object until that one leaves, and
 * all that is asked holds on to it: nothing is sent by the next one's token. copied: the member whose orders it is told, 0 its own.
 */
let own = null;
/** Why the last one had to leave, in words. */
let whyLeft = '';
let lastNumber = 0n;

export const who = () => own;
export const left = () => whyLeft;

/** A name that is new and higher than all before. An operator's are of its session's series. */
function newName(isGuarded = false) {
  const number = (BigInt(Date.now()) * 1_000_000n) >> 14n;
  lastNumber = number > lastNumber ? number : lastNumber + 1n;
  const series = isGuarded ? GUARDED_SERIES + own.session : PAGES_SERIES + own.session % PAGES_SERIES;
  return ((BigInt(own.member === 0 ? own.session : series) << 48n) | lastNumber).toString();
}

/** Signs on: by the text of a key file, or as a member where nobody proves anything. */
export async function signOn({ keyText, member, session }) {
  const key = keyText ? await keyOf(keyText) : null;
  const by = { member: key?.member ?? member, session: key?.session ?? session, key, again: null, quick: 0 };
  own = Object.assign(by, await signedOn(by));
  whyLeft = '';
  mark('session');
}

/** A session of one: { token, copied, madeMs }. */
async function signedOn({ member, session, key }) {
  const asked = await ask('POST', `${BASE}/sign-on`, { body: { member, session } });
  const given = ({ token, copied }) => ({ token, copied, madeMs: Date.now() });
  if (asked.token) return given(asked);
  if (!key) throw new Error('This exchange requires a key: choose the key file.');
  const proof = await key.prove(asked.transcript);
  return given(await ask('POST', `${BASE}/sign-on/${asked.sign_on}`, { body: { proof } }));
}

export async function signOut() {
  const by = own;
  forget(by, '');
  await end(by.token);
}

const sent = (by, method, path, body) => ask(method, BASE + path, { body, headers: { Authorization: `Bearer ${by.token}` } });
const end = (token) => sent({ token }, 'DELETE', '/session').catch(() => {});

/** One leaves, if it is the one who is here. */
function forget(by, why) {
  if (own !== by) return;
  own = null;
  whyLeft = why;
  leave();
  mark('session');
}

/** Signs on again as before; all who need it at once wait for the same. */
function signOnAgain(by) {
  by.again ??= renewed(by).catch((problem) => {
    forget(by, `${problem.message} Requests in progress may have been executed: check your orders.`);
    throw problem;
  }).finally(() => { by.again = null; });
  return by.again;
}

async function renewed(by) {
  by.quick = Date.now() - by.madeMs < QUICK_MS ? by.quick + 1 : 0;
  if (by.quick >= QUICK_MAX) throw new Error('This session signed on elsewhere, which ended it here.');
  await untilAnswered(() => renew(by));
}

/** Who is told of another member by now begins anew: numbers of one's streams are none in another's. */
async function renew(by) {
  const again = await signedOn(by);
  if (own === by && again.copied === by.copied) return Object.assign(by, again);
  end(again.token);
  // Who has left meanwhile is told nothing here.
  if (own === by) throw new Error('The operator has changed this session’s drop copy: sign on again.');
}

async function once(method, path, body, waiting) {
  const by = own;
  if (!by) throw new Problem(401, { detail: 'You are not signed on.' });
  const { token } = by;
  try {
    return await sent(by, method, path, body);
  } catch (problem) {
    if (problem.status !== 401 || own !== by) throw problem;
    // A session may end while its gateway does what was asked.
    waiting?.(problem);
    if (by.token === token) await signOnAgain(by);
    return sent(by, method, path, body);
  }
}

/** What changes something: again under the name that is in it, until there is an answer. */
const done = (method, path, body, waiting) => untilAnswered(() => once(method, path, body, waiting), waiting);
const get = (path) => untilAnswered(() => once('GET', path));
const of = (symbol) => `/instruments/${encodeURIComponent(symbol)}`;
const named = (name, more = {}) => new URLSearchParams({ client_order_id: name, ...more });

export const instruments = async () => (await once('GET', '/instruments')).instruments;
export const trades = async (symbol, limit) => (await get(`${of(symbol)}/trades?limit=${limit}`)).trades;
export const candles = async (symbol, interval, limit) => (await get(`${of(symbol)}/candles?interval=${interval}&limit=${limit}`)).candles;
export const standing = () => once('GET', '/status');
export const orders = async () => (await get('/orders')).orders;
/** Enters an order, once; `named(name)` is told under which name. */
export const enter = (order, isGuarded, named, waiting) => underOneName('enter', [order, isGuarded], () => newName(isGuarded), (name, again) => {
  named(name);
  return done('POST', '/orders', { client_order_id: name, ...order }, again);
}, waiting);
export const change = (target, terms, waiting) => underOneName('change', [target, terms], () => newName(),
  (name, again) => done('PATCH', `/orders/by-name/${target}`, { client_order_id: name, ...terms }, again), waiting);
export const cancel = (target, waiting) => done('DELETE', `/orders/by-name/${target}?${named(newName())}`, undefined, waiting);
export const cancelAll = (waiting) => done('DELETE', `/orders?${named(newName())}`, undefined, waiting);

const deed = (propose) => ({ client_order_id: newName(), propose });
export const setPhase = (symbol, phase, propose, waiting) => done('PUT', `${of(symbol)}/phase/${phase}`, deed(propose), waiting);
export const block = (member, propose, waiting) => done('PUT', `/members/${member}/block`, deed(propose), waiting);
export const unblock = (member, waiting) => done('DELETE', `/members/${member}/block?${named(newName())}`, undefined, waiting);
export const fourEyesOn = (waiting) => done('PUT', '/four-eyes', deed(false), waiting);
export const fourEyesOff = (propose, waiting) => done('DELETE', `/four-eyes?${named(newName(), { propose })}`, undefined, waiting);

/** A socket. A script cannot say `Authorization` for one: the token goes as a protocol. */
export function socket() {
  const scheme = location.protocol === 'https:' ? 'wss' : 'ws';
  return new WebSocket(`${scheme}://${location.host}${BASE}/socket`, ['pares', `bearer.${own.token}`]);
}
