// Forms: labelled fields, what is wrong beside the field that it is about, and one submission at a time.

import { el, say, setText } from './dom.js';

/** How fields look, by kind. What else pages have, they teach. */
const LOOKS = {
  secret: { type: 'password', maxlength: 200 },
  code: { inputmode: 'numeric', maxlength: 6, autocomplete: 'one-time-code' },
  text: { maxlength: 64, spellcheck: 'false' },
  whole: { inputmode: 'numeric', maxlength: 20 },
  time: { type: 'datetime-local', step: 1 },
};
/** How fields are read, by kind: gives the value, or throws words. */
const READERS = {
  code: (text) => asIs(/^\d{6}$/, text, 'A code must have six digits.'),
  whole: (text) => asIs(/^[1-9]\d{0,14}$/, text, 'Enter a whole number from 1.'),
};
/** What refusals say, `[field, words]`; and who else hears of problems. */
let inWords = (problem) => ['', problem.message];
let hearProblem = () => {};

/** The text if it is so; else the words are thrown. */
export function asIs(form, text, words) {
  if (!form.test(text)) throw words;
  return text;
}

/** Teaches the forms a page's own kinds of fields and its words. */
export function teach({ looks = {}, readers = {}, words, heard }) {
  Object.assign(LOOKS, looks);
  Object.assign(READERS, readers);
  inWords = words;
  hearProblem = heard;
}

/** What a form has said is taken back after so long, ms: a price that was good for a minute is none for an hour. */
const SAID_MS = 30_000;

/** A labelled field. `kind` is one of LOOKS; `read` reads it, throwing words if it is not right. */
export function field({ id, name, label, kind = 'text', hint, isOptional = false, ...attributes }) {
  const input = el('input', {
    id, name, autocomplete: 'off', ...LOOKS[kind], 'aria-describedby': `${id}-hint ${id}-error`, required: !isOptional, ...attributes,
  });
  const error = el('p', { class: 'error', id: `${id}-error` });
  if (input.classList.contains('symbol')) input.addEventListener('input', () => { input.value = input.value.toUpperCase(); });
  const box = el('div', { class: 'field' }, el('label', { for: id }, label), input,
    el('p', { class: 'hint', id: `${id}-hint` }, hint ?? ''), error);
  return { name, input, box, hide: (isHidden) => { box.hidden = isHidden; }, read: () => readField(kind, input.value.trim(), isOptional), fail: (words) => failField(input, error, words) };
}

function failField(input, error, words) {
  setText(error, words);
  if (words) input.setAttribute('aria-invalid', 'true');
  else input.removeAttribute('aria-invalid');
}

function readField(kind, text, isOptional) {
  if (text === '' && isOptional) return undefined;
  if (READERS[kind]) return READERS[kind](text);
  if (text === '') throw 'Please fill this in.';
  return text;
}

function readAll(fields) {
  const values = {};
  let wrong = null;
  for (const one of fields) {
    try {
      values[one.name] = one.read();
      one.fail('');
    } catch (words) {
      one.fail(words);
      wrong ??= one;
    }
  }
  wrong?.input.focus();
  return wrong ? null : values;
}

function showProblem(problem, fields, error) {
  const [name, words] = inWords(problem);
  const about = fields.find((one) => one.name === name);
  about?.fail(words);
  about?.input.focus();
  setText(error, about ? '' : words);
  hearProblem(problem);
}

/** Does `work` with a button out of action meanwhile, and says the words that it gives. */
export async function busy(button, work) {
  if (button.getAttribute('aria-disabled') === 'true') return;
  button.setAttribute('aria-disabled', 'true');
  try {
    await work();
  } finally {
    button.removeAttribute('aria-disabled');
  }
}

/**
 * A form. `submit(values, waiting)` does what it is for, and gives the words to say; a Problem that it throws is shown in its place.
 * `estimate(values)` says what it would cost: it describes the button, so it is read out before that is pressed.
 */
export function form({ id, fields, button, estimate, submit, isQuiet = false, isRow = false }) {
  const error = errorPlace();
  const done = el('p', { class: 'done' });
  const cost = el('p', { class: 'estimate', id: `${id}-estimate` });
  const send = el('button', { type: 'submit', class: isQuiet && 'second', 'aria-describedby': estimate && `${id}-estimate` }, button);
  const made = el('form', { id, novalidate: true, class: isRow && 'row' }, fields.map((one) => one.box), isRow && send, estimate && cost, !isRow && send, error, done);
  const redo = () => { if (estimate) setText(cost, estimate(readQuietly(fields)) ?? ''); };
  made.addEventListener('input', () => { setText(done, ''); redo(); });
  made.addEventListener('submit', (event) => {
    event.preventDefault();
    setText(error, '');
    setText(done, '');
    const values = readAll(fields);
    if (values) busy(send, () => run(values));
  });
  let silence;
  const run = async (values) => {
    clearTimeout(silence);
    try {
      const words = await submit(values, () => setText(done, 'No answer yet; trying again …'));
      setText(done, words ?? '');
      silence = setTimeout(() => setText(done, ''), SAID_MS);
      if (words) say(words);
    } catch (problem) {
      setText(done, '');
      showProblem(problem, fields, error);
    }
    redo();
  };
  redo();
  return { element: made, redo, clear: () => fields.forEach((one) => { one.input.value = ''; }), button: send };
}

function readQuietly(fields) {
  const values = {};
  for (const one of fields) {
    try { values[one.name] = one.read(); } catch { values[one.name] = undefined; }
  }
  return values;
}

/** A place for what went wrong, outside of what is drawn anew. */
export const errorPlace = () => el('p', { class: 'error', role: 'alert' });

/** A button that does one thing; what goes wrong is shown in `error`, behind the button unless that is elsewhere. */
export function action({ id, label, isQuiet = false, describedBy, work, error }) {
  const isElsewhere = error != null;
  error ??= el('span', { class: 'error', role: 'alert' });
  const button = el('button', { type: 'button', id, class: isQuiet && 'second', 'aria-describedby': describedBy }, label);
  button.addEventListener('click', () => busy(button, async () => {
    setText(error, '');
    try {
      const words = await work(() => setText(error, 'No answer yet; trying again …'));
      if (words) say(words);
      setText(error, '');
    } catch (problem) {
      showProblem(problem, [], error);
    }
  }));
  return el('span', { class: 'action' }, button, !isElsewhere && error);
}
