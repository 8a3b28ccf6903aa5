import type { ProviderId } from '../../contracts/index.ts';
import { bitbucket } from './bitbucket.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { paypal } from './paypal.ts';
import type { Provider } from './provider.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { svix } from './svix.ts';
import { twilio } from './twilio.ts';

export type { BuiltInAuth, Protection, Provider, ProviderAuth, TokenAuth } from './provider.ts';

/** Catalogue of providers, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = [
  bitbucket,
  gitea,
  github,
  gitlab,
  paypal,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  svix,
  twilio,
];

const BY_ID = new Map(PROVIDERS.map((provider) => [provider.id, provider]));

/** Returns the entry of a provider. */
export function providerOf(id: ProviderId): Provider {
  const provider = BY_ID.get(id);
  if (!provider) throw new Error(`The catalogue has no entry for ${id}.`);
  return provider;
}
