// The exchange's HTTP API, and nothing else: all that the pages know and do goes through here.
//
// The token is in this page's memory alone: a page that is loaded anew signs on anew. A session with a key ends when its gateway dies (401
// `sign_on_again`); then the key, which is here still, signs on again, and what has no answer is asked again under its name.

import { ask, forgetDoubts, underOneName, untilAnswered } from './http.js';
import { keyOf } from './key.js';
import { mark } from './topics.js';

const BASE = '/v1';
/** Pages name their requests in a series of their own: another program of the session counts for itself. */
const PAGES_SERIES = 1 << 14;
/** What a session enters in the series above this dies with it. */
const GUARDED_SERIES = 1 << 15;

/** { member, session, copied, token, key } or null; copied: the member whose orders it is told, 0 its own. */
let own = null;
let signingOn = null;
let lastNumber = 0n;

export const who = () => own;

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
  own = await signedOn(key ?? { member, session }, key);
  mark('session');
}

async function signedOn({ member, session }, key) {
  const asked = await ask('POST', `${BASE}/sign-on`, { body: { member, session } });
  if (asked.token) return { member, session, copied: asked.copied, token: asked.token, key };
  if (!key) throw new Error('This exchange wants a proof: choose the key file.');
  const proof = await key.prove(asked.transcript);
  const { token, copied } = await ask('POST', `${BASE}/sign-on/${asked.sign_on}`, { body: { proof } });
  return { member, session, copied, token, key };
}

export async function signOut() {
  await once('DELETE', '/session').catch(() => {});
  forget();
}

function forget() {
  own = null;
  forgetDoubts();
  mark('session');
}

/** Signs on again as before; all who need it at once wait for the same. Who is told of another member by now begins anew: numbers of one's streams are none in another's. */
export function signOnAgain() {
  signingOn ??= untilAnswered(() => signedOn(own, own.key)).then((again) => {
    if (again.copied !== own.copied) throw new Error('The operator has changed whose orders this session is told: sign on again.');
    own = again;
  }).catch((problem) => {
    forget();
    throw problem;
  }).finally(() => { signingOn = null; });
  return signingOn;
}

async function once(method, path, body) {
  const token = own?.token;
  const asked = () => ask(method, BASE + path, { body, headers: { Authorization: `Bearer ${own?.token}` } });
  try {
    return await asked();
  } catch (problem) {
    if (problem.status !== 401 || !own) throw problem;
    if (own.token === token) await signOnAgain();
    return asked();
  }
}

/** What changes something: again under the name that is in it, until there is an answer. */
const done = (method, path, body, waiting) => untilAnswered(() => once(method, path, body), waiting);
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
