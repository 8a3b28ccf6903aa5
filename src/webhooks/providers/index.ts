import type { ProviderId } from '../../contracts/index.ts';
import { airtable } from './airtable.ts';
import { alertmanager } from './alertmanager.ts';
import { asana } from './asana.ts';
import { auth0 } from './auth0.ts';
import { awsSns } from './aws-sns.ts';
import { azureEventgrid } from './azure-eventgrid.ts';
import { bitbucket } from './bitbucket.ts';
import { calendly } from './calendly.ts';
import { circleci } from './circleci.ts';
import { clerk } from './clerk.ts';
import { cloudevents } from './cloudevents.ts';
import { cloudflare } from './cloudflare.ts';
import { datadog } from './datadog.ts';
import { discord } from './discord.ts';
import { dockerHub } from './docker-hub.ts';
import { docusign } from './docusign.ts';
import { dropbox } from './dropbox.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { googlePubsub } from './google-pubsub.ts';
import { grafana } from './grafana.ts';
import { hubspot } from './hubspot.ts';
import { intercom } from './intercom.ts';
import { jira } from './jira.ts';
import { line } from './line.ts';
import { linear } from './linear.ts';
import { mailgun } from './mailgun.ts';
import { meta } from './meta.ts';
import { microsoftGraph } from './microsoft-graph.ts';
import { netlify } from './netlify.ts';
import { notion } from './notion.ts';
import { pagerduty } from './pagerduty.ts';
import { paypal } from './paypal.ts';
import { postmark } from './postmark.ts';
import type { Provider } from './provider.ts';
import { resend } from './resend.ts';
import { salesforce } from './salesforce.ts';
import { sendgrid } from './sendgrid.ts';
import { sentry } from './sentry.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { supabase } from './supabase.ts';
import { svix } from './svix.ts';
import { telegram } from './telegram.ts';
import { trello } from './trello.ts';
import { twilio } from './twilio.ts';
import { typeform } from './typeform.ts';
import { vercel } from './vercel.ts';
import { whatsapp } from './whatsapp.ts';
import { woocommerce } from './woocommerce.ts';
import { workos } from './workos.ts';
import { x } from './x.ts';
import { zendesk } from './zendesk.ts';
import { zoom } from './zoom.ts';

export type { BuiltInAuth, Protection, Provider, ProviderAuth, TokenAuth } from './provider.ts';

export { providerDetails, providerSummary } from './provider-view.ts';

/** Catalogue of providers, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = [
  airtable,
  alertmanager,
  asana,
  auth0,
  awsSns,
  azureEventgrid,
  bitbucket,
  calendly,
  circleci,
  clerk,
  cloudevents,
  cloudflare,
  datadog,
  discord,
  dockerHub,
  docusign,
  dropbox,
  gitea,
  github,
  gitlab,
  googlePubsub,
  grafana,
  hubspot,
  intercom,
  jira,
  line,
  linear,
  mailgun,
  meta,
  microsoftGraph,
  netlify,
  notion,
  pagerduty,
  paypal,
  postmark,
  resend,
  salesforce,
  sendgrid,
  sentry,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  supabase,
  svix,
  telegram,
  trello,
  twilio,
  typeform,
  vercel,
  whatsapp,
  woocommerce,
  workos,
  x,
  zendesk,
  zoom,
];

const BY_ID = new Map(PROVIDERS.map((provider) => [provider.id, provider]));

/** Returns the entry of a provider. */
export function providerOf(id: ProviderId): Provider {
  const provider = BY_ID.get(id);
  if (!provider) throw new Error(`The catalogue has no entry for ${id}.`);
  return provider;
}
