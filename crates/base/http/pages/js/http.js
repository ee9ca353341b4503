// Requests of a page to its server, and what went wrong as the server says it (RFC 9457).
//
// A request that is lost may have been executed. So what changes something has a name of its own, and is sent again under it until there is
// an answer: it is executed once.

/** Pauses before a request is sent again, ms. */
const PAUSES_MS = [300, 700, 1500, 3000, 5000];

/** A refusal or failure. `status` 0: nothing answered. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail || body.title || `The server answered ${status}.`);
    this.status = status;
    this.reason = body.reason ?? null;
  }
}

/** Asks once. `heard` is given each answer as it came; `silence` is said if there is none. */
export async function ask(method, url, { body, headers = {}, heard, silence = 'No answer from the server.' } = {}) {
  const asked = { method, headers: { ...headers }, credentials: 'same-origin', cache: 'no-store' };
  if (body !== undefined) {
    asked.headers['Content-Type'] = 'application/json';
    asked.body = JSON.stringify(body);
  }
  const answer = await fetch(url, asked).catch(() => { throw new Problem(0, { detail: silence }); });
  heard?.(answer);
  const text = await answer.text();
  const isJson = /json/.test(answer.headers.get('Content-Type') ?? '');
  const read = isJson && text ? JSON.parse(text) : {};
  if (answer.ok) return read;
  const problem = new Problem(answer.status, read);
  problem.afterMs = Number(answer.headers.get('Retry-After') ?? 0) * 1000;
  throw problem;
}

/** Whether the same again may be answered. */
export const mayPass = (problem) => problem instanceof Problem && [0, 502, 503, 504].includes(problem.status);

const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

/** Raised when who was here leaves: what one asks is never sent, or answered, to the next. */
let turn = 0;

/** Who was here leaves: nothing is in doubt any more, and what waits for an answer gets none. */
export function leave() {
  turn += 1;
  doubted.clear();
}

/** Does `once` again until it is answered, all tries are over, or who asks has left. `waiting` hears of each try that was not answered. */
export async function untilAnswered(once, waiting) {
  const asked = turn;
  const stay = () => { if (turn !== asked) throw new Error('You have signed out.'); };
  const attempt = async () => {
    stay();
    const answer = await once();
    stay();
    return answer;
  };
  for (const pauseMs of PAUSES_MS) {
    try {
      return await attempt();
    } catch (problem) {
      if (!mayPass(problem)) throw problem;
      waiting?.(problem);
      await pause(Math.max(pauseMs, Math.min(problem.afterMs ?? 0, 5000)));
    }
  }
  return attempt();
}

/** What was sent and may be executed or not, the latest of each form: form -> { said, name }. */
const doubted = new Map();
/** Statuses that say what became of it under its name: it is known, or was refused by the rules. */
const settles = (problem) => [404, 409, 422].includes(problem.status);
let tellDoubt = () => {};

/** `told` hears what was left without an answer when its form sends something else. */
export function hearDoubts(told) { tellDoubt = told; }

/**
 * Sends what a form says under a name, by `send(name, waiting)`, and gives the answer. What it sent without an answer goes under the same name when
 * the same is sent again.
 */
export async function underOneName(form, what, newName, send, waiting) {
  const said = JSON.stringify(what);
  const before = doubted.get(form);
  const name = before?.said === said ? before.name : newName();
  if (before && before.name !== name) tellDoubt(JSON.parse(before.said));
  doubted.delete(form);
  const asked = turn;
  let isDoubted = before?.name === name;
  try {
    return await send(name, (problem) => {
      isDoubted = true;
      waiting?.(problem);
    });
  } catch (problem) {
    if (turn === asked && (mayPass(problem) || (isDoubted && !settles(problem)))) doubted.set(form, { said, name });
    throw problem;
  }
}
