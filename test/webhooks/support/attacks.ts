import type { RequestPlace } from '../../../src/contracts/index.ts';
import type { Provider, ProviderAuth } from '../../../src/webhooks/providers/index.ts';
import { withSameChecksum } from './same-checksum.ts';
import { type WireRequest, withChangedBody, withChangedQuery, withTexts } from './wire-request.ts';

/** A delivery by somebody without the secret, who changes or repeats a genuine one. */
export interface Attack {
  name: string;
  isRefused: boolean;
  change?(wire: WireRequest): WireRequest;
  /** Time between the genuine delivery and this one. */
  afterMs?: number;
  hasOtherSecret?: boolean;
  /** Address that the delivery comes from, instead of one that the entry lists. */
  source?: string;
}

/** Longer than the largest tolerance, and than the life of a token. */
const MUCH_LATER_MS = 3 * 24 * 3600_000;

/** Attacks on an entry, whose declared protection says whether each one is refused. */
export function attacksOn(provider: Provider, used: ProviderAuth): Attack[] {
  const { auth, firstSchemeProtects } = provider;
  const protects = (used === auth[0] && firstSchemeProtects) || provider.protects;
  const places = auth.flatMap(placesOf);
  const all = (wire: WireRequest, change: (text: string) => string[]) =>
    places.reduce((changed, place) => withTexts(changed, place, change), wire);
  return [
    {
      name: 'a changed body',
      isRefused: protects.body,
      // PayPal signs a checksum of the body only.
      change: provider.id === 'paypal' ? withSameChecksum : withChangedBody,
    },
    { name: 'a changed URL', isRefused: protects.url, change: withChangedQuery },
    { name: 'an old time', isRefused: protects.time, afterMs: MUCH_LATER_MS },
    { name: 'another secret', isRefused: protects.sender, hasOtherSecret: true },
    { name: 'no proof', isRefused: protects.sender, change: (wire) => all(wire, () => []) },
    {
      name: 'the proof twice',
      isRefused: protects.sender,
      change: (wire) => all(wire, (text) => [text, text]),
    },
    {
      name: 'another proof',
      isRefused: protects.sender,
      change: (wire) => all(wire, (text) => [otherText(text)]),
    },
    ...(used.type === 'signature'
      ? [
          {
            name: 'another encoding',
            isRefused: protects.sender,
            change: (wire: WireRequest) => all(wire, (text) => [reencoded(used, text)]),
          },
        ]
      : []),
  ];
}

/** Returns the places of the proof. */
function placesOf(auth: ProviderAuth): RequestPlace[] {
  switch (auth.type) {
    case 'signature': {
      const { header, query, field, alternatives = [] } = auth.signature;
      const first = { ...(header && { header }), ...(query && { query }), ...(field && { field }) };
      return [first, ...alternatives];
    }
    case 'token':
      return [auth.at];
    case 'basic':
      return [{ header: 'authorization' }];
    case 'jwt':
      return [{ header: auth.header }];
    case 'built-in':
      return BUILT_IN_PLACES[auth.verifier];
  }
}

const BUILT_IN_PLACES = {
  twilio: [{ header: 'x-twilio-signature' }],
  paypal: [{ header: 'paypal-transmission-sig' }],
  'aws-sns': [{ field: 'Signature' }],
};

/** Shortest text that can be a signature. */
const SIGNATURE = /[A-Za-z0-9+/_-]{24,}/g;

/** Changes a letter in the middle of each signature, or of the longest word of a text without signatures. */
function otherText(text: string): string {
  const changed = text.replace(SIGNATURE, withOtherLetter);
  if (changed !== text) return changed;
  const longest = text.split(/[^A-Za-z0-9]/).reduce((a, b) => (b.length > a.length ? b : a));
  return text.replace(longest, withOtherLetter);
}

function withOtherLetter(text: string): string {
  const at = Math.floor(text.length / 2);
  return text.slice(0, at) + (text[at] === 'a' ? 'b' : 'a') + text.slice(at + 1);
}

/** Writes the same signature in another encoding. */
function reencoded({ signature }: Extract<ProviderAuth, { type: 'signature' }>, text: string): string {
  const { encoding, prefix, format } = signature;
  const value =
    format === 'plain'
      ? text.slice(prefix.length)
      : (text.split(format.key + format.assign)[1] ?? '').split(format.separator)[0]!;
  const bytes = Buffer.from(value, encoding.startsWith('hex') ? 'hex' : (encoding as 'base64'));
  return text.replace(value, bytes.toString(encoding.startsWith('hex') ? 'base64' : 'hex'));
}
