// A WebSocket that is made again when it breaks.

/** First and longest pause before it is tried again, ms. */
const PAUSE_MS = [500, 10_000];

/**
 * A line, closed at first. `dial()` makes a socket, or gives null if none is wanted now; `opened`, `heard(text)` and `broken(event)` are told what
 * happens; `standing('off' | 'connecting' | 'live')` how it is.
 */
export function line({ dial, opened, heard, broken, standing }) {
  let socket = null;
  let tries = 0;

  function open() {
    const made = socket ? null : dial();
    if (!made) return;
    standing('connecting');
    socket = made;
    made.addEventListener('open', () => {
      if (socket !== made) return;
      tries = 0;
      standing('live');
      opened();
    });
    made.addEventListener('message', (event) => { if (socket === made) heard(event.data); });
    made.addEventListener('close', (event) => { if (socket === made) again(event); });
  }

  function again(event) {
    socket = null;
    standing('connecting');
    broken?.(event);
    const longest = Math.min(PAUSE_MS[0] * 2 ** tries, PAUSE_MS[1]);
    tries += 1;
    // Not all browsers come back in the same moment.
    setTimeout(open, longest * (0.5 + Math.random() / 2));
  }

  function close() {
    const made = socket;
    socket = null;
    made?.close();
    standing('off');
  }

  /** Sends it if it is open; says whether it was. */
  function send(text) {
    const isOpen = socket?.readyState === WebSocket.OPEN;
    if (isOpen) socket.send(text);
    return isOpen;
  }

  return { open, close, send };
}
