import type { WebhookAuthConfig } from '../../../../../contracts/index.ts';
import { authsOf } from '../../../../../webhooks/schemes/index.ts';

const HIDDEN = '…';

/** Returns the query parameter that contains the secret, for senders that sign nothing and set no headers. */
export function urlTokenOf(auth: WebhookAuthConfig): string | undefined {
  if (auth.type !== 'provider') return undefined;
  const [scheme] = authsOf(auth);
  return scheme.type === 'token' ? scheme.at.query : undefined;
}

/** Adds the token to the URL of a webhook whose secret is in the URL. Without a secret, the token is shown as `…`. */
export function withUrlToken(url: string, auth: WebhookAuthConfig, secret?: string): string {
  const name = urlTokenOf(auth);
  if (name === undefined) return url;
  const value = secret === undefined ? HIDDEN : encodeURIComponent(secret);
  return `${url}${url.includes('?') ? '&' : '?'}${name}=${value}`;
}
