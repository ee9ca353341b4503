// A key file, and what it proves. The secret stays in this page: it is read here, the browser's own cryptography keeps it in a form that no
// script can read again, and only proofs leave.

const LINE = /^pares-key (ed25519|shared) member (\d+) session (\d+) ([0-9a-fA-F]{64})$/;
/** What stands before the seed of an Ed25519 key in PKCS #8. */
const PKCS8 = '302e020100300506032b657004220420';
const PROOF_BYTES = 64;
const TRANSCRIPT_BYTES = 64;
/** How a transcript begins, in hex: `Pares sign-on 1` and a zero. */
const LABEL = '5061726573207369676e2d6f6e203100';

const bytesOf = (hex) => Uint8Array.from(hex.match(/../g) ?? [], (digits) => parseInt(digits, 16));
const hexOf = (bytes) => Array.from(bytes, (byte) => byte.toString(16).padStart(2, '0')).join('');

/** The key in the text of a file: { member, session, prove(transcript in hex) gives the proof in hex }. Throws words if there is none. */
export async function keyOf(text) {
  const lines = text.split('\n').map((line) => line.trim().replace(/\s+/g, ' '));
  const found = LINE.exec(lines.find((line) => line && !line.startsWith('#')) ?? '');
  if (!found) throw new Error('That is no key file: one looks like “pares-key ed25519 member 7 session 1 HEX”.');
  const [, kind, member, session, secret] = found;
  const prove = kind === 'ed25519' ? await signing(secret) : await sharing(secret);
  const own = { member: Number(member), session: Number(session) };
  return { ...own, prove: async (hex) => hexOf(await prove(transcriptOf(own, hex))) };
}

/** A transcript of one's own sign-on. A server that could have other bytes signed could sign on by another protocol, such as FIX. */
function transcriptOf({ member, session }, hex) {
  const bytes = bytesOf(hex);
  const isWhole = bytes.length === TRANSCRIPT_BYTES && hexOf(bytes).startsWith(LABEL);
  const names = new DataView(bytes.buffer);
  if (!isWhole || names.getUint16(50, true) !== session || names.getUint32(52, true) !== member) {
    throw new Error('The server asks to sign something that is no sign-on of this session.');
  }
  return bytes;
}

async function signing(seed) {
  const key = await crypto.subtle.importKey('pkcs8', bytesOf(PKCS8 + seed), { name: 'Ed25519' }, false, ['sign'])
    .catch(() => { throw new Error('This browser cannot sign with Ed25519. A newer one can.'); });
  return async (transcript) => new Uint8Array(await crypto.subtle.sign('Ed25519', key, transcript));
}

const hmacKey = (bytes) => crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign']);
const hmac = async (key, bytes) => new Uint8Array(await crypto.subtle.sign('HMAC', key, bytes));

async function sharing(secret) {
  const key = await hmacKey(bytesOf(secret));
  return async (transcript) => {
    const client = await hmac(key, new TextEncoder().encode('Pares client key'));
    const verifier = await hmacKey(await crypto.subtle.digest('SHA-256', client));
    const mask = await hmac(verifier, transcript);
    const proof = new Uint8Array(PROOF_BYTES);
    proof.set(client.map((byte, at) => byte ^ mask[at]));
    return proof;
  };
}
