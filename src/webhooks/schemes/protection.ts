import {
  type Placeholder,
  parseTemplate,
  type SignatureAuth,
  type WebhookAuthConfig,
} from '../../contracts/index.ts';
import { type Protection, type ProviderAuth, providerOf } from '../providers/index.ts';
import { authsOf } from './verification.ts';

/**
 * Returns what a declaration protects. Undefined for a plugin's validator, which the platform cannot judge. A provider's
 * entry states its protection, because the platform cannot compute that of a built-in verifier.
 */
export function protectionOf(auth: WebhookAuthConfig): Protection | undefined {
  if (auth.type === 'custom') return undefined;
  if (auth.type === 'provider') return providerOf(auth.provider).protects;
  return computedProtection(authsOf(auth));
}

/** Computes the protection of schemes. A sender may use any of them, so that only what all protect is protected. */
export function computedProtection(auths: readonly ProviderAuth[]): Protection | undefined {
  const all = auths.map(schemeProtection);
  if (!all.every((one) => one !== undefined)) return undefined;
  const every = (name: keyof Protection) => all.every((one) => one[name]);
  return { body: every('body'), url: every('url'), time: every('time'), sender: every('sender') };
}

function schemeProtection(auth: ProviderAuth): Protection | undefined {
  switch (auth.type) {
    case 'built-in':
      return undefined;
    case 'token':
    case 'basic':
      return { body: false, url: false, time: false, sender: true };
    case 'jwt': {
      const expires = auth.requireExpiry ?? true;
      return { body: auth.bodyDigest !== undefined, url: false, time: expires, sender: true };
    }
    case 'signature':
      return signatureProtection(auth);
  }
}

function signatureProtection({ signed, timestamp }: SignatureAuth): Protection {
  const parsed = parseTemplate(signed);
  const names = new Set<Placeholder['name']>();
  if ('parts' in parsed) for (const part of parsed.parts) if (typeof part !== 'string') names.add(part.name);
  return {
    body: names.has('body') || names.has('sortedForm'),
    url: names.has('url') || (names.has('path') && names.has('query')),
    time: timestamp !== undefined,
    sender: true,
  };
}

const LABELS: Readonly<Record<keyof Protection, string>> = {
  body: 'body',
  url: 'URL',
  time: 'time',
  sender: 'sender',
};

/** Returns the names of what is not protected, such as `URL` and `time`. */
export function unprotected(protection: Protection): string[] {
  return Object.entries(LABELS).flatMap(([name, label]) =>
    protection[name as keyof Protection] ? [] : [label],
  );
}
