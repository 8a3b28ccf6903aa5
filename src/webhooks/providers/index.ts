import type { ProviderId } from '../../contracts/index.ts';
import { airtable } from './airtable.ts';
import { asana } from './asana.ts';
import { bitbucket } from './bitbucket.ts';
import { calendly } from './calendly.ts';
import { discord } from './discord.ts';
import { docusign } from './docusign.ts';
import { dropbox } from './dropbox.ts';
import { gitea } from './gitea.ts';
import { github } from './github.ts';
import { gitlab } from './gitlab.ts';
import { hubspot } from './hubspot.ts';
import { intercom } from './intercom.ts';
import { jira } from './jira.ts';
import { line } from './line.ts';
import { linear } from './linear.ts';
import { mailgun } from './mailgun.ts';
import { meta } from './meta.ts';
import { notion } from './notion.ts';
import { paypal } from './paypal.ts';
import { postmark } from './postmark.ts';
import type { Provider } from './provider.ts';
import { resend } from './resend.ts';
import { salesforce } from './salesforce.ts';
import { sendgrid } from './sendgrid.ts';
import { shopify } from './shopify.ts';
import { slack } from './slack.ts';
import { standardWebhooks } from './standard-webhooks.ts';
import { stripe } from './stripe.ts';
import { svix } from './svix.ts';
import { telegram } from './telegram.ts';
import { trello } from './trello.ts';
import { twilio } from './twilio.ts';
import { typeform } from './typeform.ts';
import { whatsapp } from './whatsapp.ts';
import { woocommerce } from './woocommerce.ts';
import { x } from './x.ts';
import { zendesk } from './zendesk.ts';
import { zoom } from './zoom.ts';

export type { BuiltInAuth, Protection, Provider, ProviderAuth, TokenAuth } from './provider.ts';

export { providerDetails, providerSummary } from './provider-view.ts';

/** Catalogue of providers, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = [
  airtable,
  asana,
  bitbucket,
  calendly,
  discord,
  docusign,
  dropbox,
  gitea,
  github,
  gitlab,
  hubspot,
  intercom,
  jira,
  line,
  linear,
  mailgun,
  meta,
  notion,
  paypal,
  postmark,
  resend,
  salesforce,
  sendgrid,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  svix,
  telegram,
  trello,
  twilio,
  typeform,
  whatsapp,
  woocommerce,
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
