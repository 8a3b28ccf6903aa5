import type { WebhookListItem } from '../../../contracts/webhook-admin.ts';
import type { WebhookProvider } from '../../../contracts/webhook-providers.ts';

/** How a sender is set up. */
export interface Instructions {
  sender: string;
  /** Whether the sender makes the secret itself, so that it is pasted here. */
  makesSecret: boolean;
  /** Whether the sender can set the header that names the namespace. */
  setsHeaders: boolean;
  steps: readonly string[];
}

const PROVIDERS: Readonly<Record<string, Instructions>> = {
  github: {
    sender: 'GitHub',
    makesSecret: false,
    setsHeaders: false,
    steps: [
      'Open Settings, Webhooks, Add webhook in the repository or organization.',
      'Paste the URL into “Payload URL” and the secret into “Secret”.',
      'Select the content type application/json, choose the events, and save.',
      'GitHub sends a ping at once. It signs in the header X-Hub-Signature-256.',
    ],
  },
  stripe: {
    sender: 'Stripe',
    makesSecret: true,
    setsHeaders: false,
    steps: [
      'Open Developers, Webhooks in the Stripe Dashboard, and add an endpoint with the URL.',
      'Choose the events and save. Then reveal the signing secret, which starts with whsec_.',
      'Paste the signing secret here. Stripe signs in the header Stripe-Signature.',
    ],
  },
  slack: {
    sender: 'Slack',
    makesSecret: true,
    setsHeaders: false,
    steps: [
      'Copy the signing secret of your app: api.slack.com/apps, Basic Information, App Credentials.',
      'Paste it here. Slack signs in the header X-Slack-Signature.',
      'Then open Event Subscriptions and paste the URL into “Request URL”. Slack checks it at once.',
    ],
  },
  shopify: {
    sender: 'Shopify',
    makesSecret: true,
    setsHeaders: false,
    steps: [
      'Open Settings, Notifications, Webhooks in the admin of the shop, and create a webhook with the URL and the format JSON.',
      'Copy the secret that the page shows below the webhooks. For an app, it is the client secret of the app.',
      'Paste it here. Shopify signs in the header X-Shopify-Hmac-SHA256.',
    ],
  },
  'standard-webhooks': {
    sender: 'the sender',
    makesSecret: false,
    setsHeaders: false,
    steps: [
      'Paste the URL and the secret, which starts with whsec_, into the settings of the sender.',
      'The sender signs in the header webhook-signature (or svix-signature).',
    ],
  },
};

/** Returns the instructions for the sender of a webhook. `catalogue` has the entries of all providers. */
export function instructionsFor(
  webhook: WebhookListItem,
  catalogue: readonly WebhookProvider[],
): Instructions {
  const written = webhook.provider && PROVIDERS[webhook.provider];
  if (written) return written;
  const provider = catalogue.find(({ id }) => id === webhook.provider);
  if (provider) return fromCatalogue(provider);
  return {
    sender: 'the sender',
    makesSecret: false,
    // Senders of the catalogue usually cannot.
    setsHeaders: webhook.provider === undefined,
    steps: ['Set the URL at the sender. It must send POST requests with JSON.', ...authSteps(webhook)],
  };
}

function fromCatalogue({
  name,
  secretFrom,
  secretHelp,
  sendsHeaders,
  pitfalls,
}: WebhookProvider): Instructions {
  return {
    sender: name,
    makesSecret: secretFrom === 'sender',
    setsHeaders: sendsHeaders,
    steps: [`Set the URL as the webhook's URL at ${name}.`, secretHelp, ...pitfalls],
  };
}

function authSteps({ auth, header, prefix, encoding }: WebhookListItem): string[] {
  if (auth === 'secret') return [`Send the secret unchanged in the header ${header}.`];
  if (auth === 'hmac')
    return [`Sign the raw body with HMAC-SHA256, and send “${prefix}<${encoding}>” in the header ${header}.`];
  return ['The plugin checks the sender with code of its own. See its documentation for the headers.'];
}

/** Returns the URL with the namespace as a parameter, for a webhook without a secret yet. */
export function urlWithNamespace(url: string, namespaceId: string): string {
  return url.includes('?') ? url : `${url}?namespace=${encodeURIComponent(namespaceId)}`;
}
