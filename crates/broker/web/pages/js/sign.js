// Signing up and signing in.

import * as api from './api.js';
import { card, el } from './dom.js';
import { field, form } from './forms.js';

const name = (id) => field({ id, name: 'name', label: 'Name', maxlength: 32, autocomplete: 'username', autocapitalize: 'none' });
const secret = (id, autocomplete, hint) => field({ id, name: 'password', label: 'Password', kind: 'secret', autocomplete, hint });

/** The page of somebody who is not signed in. `entered` is told the session. */
export function sign(entered) {
  return el('div', { class: 'sign' }, el('h1', { tabindex: '-1' }, 'Pares brokerage'),
    el('p', { class: 'lead' }, 'Buy and sell at live quotes. A confirmed command is executed exactly once, even if machines fail.'),
    el('div', { class: 'pair' }, signIn(entered), signUp(entered)));
}

function signIn(entered) {
  // Asked for only where there is one.
  const code = field({ id: 'in-code', name: 'code', label: 'Code from your app', kind: 'code', isOptional: true });
  code.hide(true);
  const made = form({
    id: 'sign-in', fields: [name('in-name'), secret('in-password', 'current-password'), code], button: 'Sign in',
    submit: async (values) => {
      try {
        entered(await api.signIn(values.name, values.password, values.code));
      } catch (problem) {
        if (problem.reason === 'code-needed') code.hide(false);
        throw problem;
      }
    },
  });
  return card('Sign in', 'sign-in-card', made.element);
}

function signUp(entered) {
  const made = form({
    id: 'sign-up', fields: [name('up-name'), secret('up-password', 'new-password', 'At least 10 characters')], button: 'Sign up', isQuiet: true,
    submit: async (values) => {
      await api.signUp(values.name, values.password);
      entered(await api.signIn(values.name, values.password));
    },
  });
  return card('New here?', 'sign-up-card', made.element);
}
