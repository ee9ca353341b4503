// Elements made from plain calls, and what every view says to the user.
//
// Text goes in as text nodes only, never as HTML: a name or a symbol cannot become markup.

/** An element. `given`: class, attributes; `on…` are listeners; `true` is an empty attribute, null and false are left out. */
export function el(tag, given = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(given)) {
    if (value == null || value === false) continue;
    if (name.startsWith('on')) made.addEventListener(name.slice(2), value);
    else if (name === 'value') made.value = value;
    else made.setAttribute(name, value === true ? '' : value);
  }
  made.append(...children.flat(3).filter((child) => child != null && child !== false));
  return made;
}

/** Sets an element's text if it is another: what is unchanged costs no layout and is not read out again. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Puts other children into an element, keeping the focus by the id or name of what had it. */
export function refill(element, ...children) {
  const had = element.contains(document.activeElement) ? document.activeElement : null;
  element.replaceChildren(...children.flat(3).filter((child) => child != null && child !== false));
  if (!had) return;
  const again = had.id && document.getElementById(had.id);
  if (again && !again.disabled) again.focus();
  else (element.closest('section') ?? document.getElementById('main')).querySelector('h2')?.focus();
}

/** Says something to screen readers without moving the focus. */
export function say(words) {
  const said = document.getElementById('said');
  said.textContent = '';
  requestAnimationFrame(() => { said.textContent = words; });
}

/** A part of a page with a heading that takes the focus when what had it is gone. */
export function card(title, id, ...children) {
  const heading = el('h2', { id: `${id}-title`, tabindex: '-1' }, title);
  return el('section', { class: 'card', id, 'aria-labelledby': `${id}-title` }, heading, ...children);
}

/** A table that scrolls on a narrow screen and can be reached by the keyboard. `columns`: [words, isNumber]. */
export function table(label, columns, rows, ifEmpty) {
  if (rows.length === 0) return el('p', { class: 'muted' }, ifEmpty);
  const head = columns.map(([words, isNumber]) => el('th', { scope: 'col', class: isNumber && 'number' }, words));
  const body = rows.map((cells) => el('tr', {}, cells.map((cell, at) => el('td', { class: columns[at][1] && 'number' }, cell))));
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': label },
    el('table', {}, el('caption', { class: 'unseen' }, label), el('thead', {}, el('tr', {}, head)), el('tbody', {}, body)));
}

/** `14:03:09`, or with the day if it is another than today. */
export function timeText(ms) {
  const time = new Date(ms);
  const clock = time.toLocaleTimeString('en-GB');
  return time.toDateString() === new Date().toDateString() ? clock : `${time.toLocaleDateString('sv-SE')} ${clock}`;
}
