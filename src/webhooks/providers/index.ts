import type { ProviderId } from '../../contracts/index.ts';
import { alertmanager } from './alertmanager.ts';
import { auth0 } from './auth0.ts';
import { awsSns } from './aws-sns.ts';
import { azureEventgrid } from './azure-eventgrid.ts';
import { circleci } from './circleci.ts';
import { clerk } from './clerk.ts';
import { cloudevents } from './cloudevents.ts';
import { cloudflare } from './cloudflare.ts';
import { datadog } from './datadog.ts';
import { dockerHub } from './docker-hub.ts';
import { github } from './github.ts';
import { googlePubsub } from './google-pubsub.ts';
import { grafana } from './grafana.ts';
import { microsoftGraph } from './microsoft-graph.ts';
import { netlify } from './netlify.ts';
import { pagerduty } from './pagerduty.ts';
import type { Provider } from './provider.ts';
import { sentry } from './sentry.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { supabase } from './supabase.ts';
import { svix } from './svix.ts';
import { vercel } from './vercel.ts';
import { workos } from './workos.ts';

export type { BuiltInAuth, Protection, Provider, ProviderAuth, TokenAuth } from './provider.ts';

/** Catalogue of providers, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = [
  alertmanager,
  auth0,
  awsSns,
  azureEventgrid,
  circleci,
  clerk,
  cloudevents,
  cloudflare,
  datadog,
  dockerHub,
  github,
  googlePubsub,
  grafana,
  microsoftGraph,
  netlify,
  pagerduty,
  sentry,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  supabase,
  svix,
  vercel,
  workos,
];

const BY_ID = new Map(PROVIDERS.map((provider) => [provider.id, provider]));

/** Returns the entry of a provider. */
export function providerOf(id: ProviderId): Provider {
  const provider = BY_ID.get(id);
  if (!provider) throw new Error(`The catalogue has no entry for ${id}.`);
  return provider;
}
