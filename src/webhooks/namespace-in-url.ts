import type { WebhookAuthConfig } from '../contracts/index.ts';
import { PROVIDERS } from './providers/index.ts';

/**
 * Returns whether the URL of a webhook must contain the namespace, because its provider cannot send the header with
 * the namespace.
 */
export function needsNamespaceInUrl(auth: WebhookAuthConfig): boolean {
  if (auth.type !== 'provider') return false;
  const provider = PROVIDERS.find(({ id }) => id === auth.provider);
  return provider !== undefined && !provider.sendsHeaders;
}
