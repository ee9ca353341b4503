// Who wants to hear of which change.
//
// Drawing at each change would draw 200 times a second what a screen shows 60 times. So a change marks its topic, and everybody who
// listens to it is called once before the next frame.

const listeners = new Map();
const marked = new Set();
let isAsked = false;

/** Calls `heard` before a frame when `topic` has changed; `second` does each second. Returns how to end that. */
export function listen(topic, heard) {
  if (!listeners.has(topic)) listeners.set(topic, new Set());
  listeners.get(topic).add(heard);
  return () => listeners.get(topic).delete(heard);
}

/** Marks a topic as changed. */
export function mark(topic) {
  marked.add(topic);
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(flush);
}

function flush() {
  isAsked = false;
  const topics = [...marked];
  marked.clear();
  for (const topic of topics) for (const heard of [...(listeners.get(topic) ?? [])]) heard();
}

setInterval(() => mark('second'), 1000);
