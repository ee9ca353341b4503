// Notices as they happen, over one WebSocket that is made again when it breaks.
//
// While it is broken, notices are missed. So when it is there again the account is read anew, and quotes of what is watched are
// asked for; the history has the rest.

import * as api from './api.js';
import { line } from './line.js';
import { listen, mark, noteQuote, refresh, state, watched } from './state.js';
import { show } from './notices.js';

let sent = '';

const wire = line({
  dial: () => (state.session ? new WebSocket(api.noticesUrl()) : null),
  opened,
  heard: (text) => receive(text),
  standing: (feed) => { state.feed = feed; mark('feed'); },
});

/** Opens it, and keeps it open while somebody is signed in. */
export const open = () => wire.open();

/** Closes it for good. */
export const close = () => wire.close();

function opened() {
  sent = '';
  watch();
  refresh();
  for (const symbol of watched()) api.quote(symbol).then(noteQuote, () => {});
}

/** Tells the broker which quotes to send. */
export function watch() {
  const wanted = JSON.stringify({ watch: watched() });
  if (wanted !== sent && wire.send(wanted)) sent = wanted;
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
