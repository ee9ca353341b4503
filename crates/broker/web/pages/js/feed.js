// Notices as they happen, over one WebSocket that is made again when it breaks.
//
// While it is broken, notices are missed. So when it is there again the account is read anew, and quotes of what is watched are
// asked for; the history has the rest.

import * as api from './api.js';
import { listen, mark, noteQuote, refresh, state, watched } from './state.js';
import { show } from './notices.js';

/** First and longest pause before it is tried again, ms. */
const PAUSE_MS = [500, 10_000];

let socket = null;
let tries = 0;
let sent = '';

/** Opens it, and keeps it open while somebody is signed in. */
export function open() {
  if (socket || !state.session) return;
  set('connecting');
  const made = new WebSocket(api.noticesUrl());
  socket = made;
  made.addEventListener('open', opened);
  made.addEventListener('message', (event) => receive(event.data));
  made.addEventListener('close', () => { if (socket === made) closed(); });
}

/** Closes it for good. */
export function close() {
  const made = socket;
  socket = null;
  made?.close();
  set('off');
}

function opened() {
  tries = 0;
  sent = '';
  set('live');
  watch();
  refresh();
  for (const symbol of watched()) api.quote(symbol).then(noteQuote, () => {});
}

function closed() {
  socket = null;
  set('connecting');
  const longest = Math.min(PAUSE_MS[0] * 2 ** tries, PAUSE_MS[1]);
  tries += 1;
  // Not all browsers come back in the same moment.
  setTimeout(open, longest * (0.5 + Math.random() / 2));
}

function set(feed) {
  state.feed = feed;
  mark('feed');
}

/** Tells the broker which quotes to send. */
export function watch() {
  const wanted = JSON.stringify({ watch: watched() });
  if (socket?.readyState !== WebSocket.OPEN || wanted === sent) return;
  sent = wanted;
  socket.send(wanted);
}

/** A message of the broker, as it came. */
export function receive(text) {
  const message = JSON.parse(text);
  if (message.kind === 'quote') return noteQuote(message);
  show(message);
  refresh();
}

listen('account', watch);
listen('symbol', watch);
