import type { ProviderId } from '../../contracts/index.ts';
import { bitbucket } from './bitbucket.ts';
import { discord } from './discord.ts';
import { dropbox } from './dropbox.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { line } from './line.ts';
import { meta } from './meta.ts';
import { paypal } from './paypal.ts';
import type { Provider } from './provider.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { svix } from './svix.ts';
import { telegram } from './telegram.ts';
import { twilio } from './twilio.ts';
import { whatsapp } from './whatsapp.ts';
import { woocommerce } from './woocommerce.ts';
import { x } from './x.ts';
import { zoom } from './zoom.ts';

export type { BuiltInAuth, Protection, Provider, ProviderAuth, TokenAuth } from './provider.ts';

export { providerDetails, providerSummary } from './provider-view.ts';

/** Catalogue of providers, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = [
  bitbucket,
  discord,
  dropbox,
  gitea,
  github,
  gitlab,
  line,
  meta,
  paypal,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  svix,
  telegram,
  twilio,
  whatsapp,
  woocommerce,
  x,
  zoom,
];

const BY_ID = new Map(PROVIDERS.map((provider) => [provider.id, provider]));

/** Returns the entry of a provider. */
export function providerOf(id: ProviderId): Provider {
  const provider = BY_ID.get(id);
  if (!provider) throw new Error(`The catalogue has no entry for ${id}.`);
  return provider;
}
