import type { ProviderId } from '../../contracts/index.ts';
import { airtable } from './airtable.ts';
import { asana } from './asana.ts';
import { calendly } from './calendly.ts';
import { docusign } from './docusign.ts';
import { github } from './github.ts';
import { hubspot } from './hubspot.ts';
import { intercom } from './intercom.ts';
import { jira } from './jira.ts';
import { linear } from './linear.ts';
import { mailgun } from './mailgun.ts';
import { notion } from './notion.ts';
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
import { trello } from './trello.ts';
import { typeform } from './typeform.ts';
import { zendesk } from './zendesk.ts';

export type { BuiltInAuth, Protection, Provider, ProviderAuth, TokenAuth } from './provider.ts';

/** Catalogue of providers, in the order of their ids. */
export const PROVIDERS: readonly Provider[] = [
  airtable,
  asana,
  calendly,
  docusign,
  github,
  hubspot,
  intercom,
  jira,
  linear,
  mailgun,
  notion,
  postmark,
  resend,
  salesforce,
  sendgrid,
  shopify,
  slack,
  standardWebhooks,
  stripe,
  svix,
  trello,
  typeform,
  zendesk,
];

const BY_ID = new Map(PROVIDERS.map((provider) => [provider.id, provider]));

/** Returns the entry of a provider. */
export function providerOf(id: ProviderId): Provider {
  const provider = BY_ID.get(id);
  if (!provider) throw new Error(`The catalogue has no entry for ${id}.`);
  return provider;
}
