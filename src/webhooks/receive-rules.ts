import type {
  AcceptedReply,
  Handshake,
  ProviderId,
  RequestPlace,
  WebhookHandlerDecl,
} from '../contracts/index.ts';
import { CLOUD_EVENT_TYPE } from './bodies/cloud-events.ts';
import { DEFAULT_TYPES } from './bodies/content-type.ts';
import type { BodyRules } from './bodies/parse-body.ts';
import { repliesWithHmac } from './handshakes/reply.ts';
import { PROVIDERS, type Provider } from './providers/index.ts';

/** How a webhook receives deliveries: its declaration, completed by its provider's entry in the catalogue. */
export interface ReceiveRules {
  body: BodyRules;
  /** Whether the declaration or the entry sets `body` or `contentTypes`. Handlers then get the bytes of the body. */
  hasBodyRules: boolean;
  /** Accepted media types. Undefined if the content type is not checked. */
  contentTypes: readonly string[] | undefined;
  /** Place of the delivery id: as declared (a dot path or `header:<name>`), or that of the entry. */
  deliveryId: string | RequestPlace | undefined;
  reply: 'platform' | 'handler';
  accepted: AcceptedReply | undefined;
  ackAfterMs: number | undefined;
  handshakes: readonly Handshake[];
  /** Whether the body of a delivery must be a JSON object or array. See `isHmacChallenge`. */
  requiresObject: boolean;
}

/**
 * Providers that existed before the catalogue. Their entries do not change how deliveries are received, because the
 * plugins that use them rely on the former behaviour.
 */
const FORMER_PROVIDERS: ReadonlySet<ProviderId> = new Set([
  'github',
  'shopify',
  'slack',
  'standard-webhooks',
  'stripe',
]);

const BY_ID = new Map(PROVIDERS.map((provider) => [provider.id, provider]));
const known = new WeakMap<WebhookHandlerDecl, ReceiveRules>();

/** Returns the rules of a webhook. They are computed once per declaration, because each delivery needs them. */
export function receiveRulesOf(webhook: WebhookHandlerDecl): ReceiveRules {
  let rules = known.get(webhook);
  if (!rules) {
    const { auth } = webhook;
    rules = mergedRules(webhook, auth.type === 'provider' ? BY_ID.get(auth.provider) : undefined);
    known.set(webhook, rules);
  }
  return rules;
}

/** Merges a declaration with an entry. The declaration takes precedence. */
export function mergedRules(webhook: WebhookHandlerDecl, provider: Provider | undefined): ReceiveRules {
  const entry = provider && !FORMER_PROVIDERS.has(provider.id) ? provider : undefined;
  // An entry's content types belong to the entry's format.
  const listed = webhook.contentTypes ?? (webhook.body === undefined ? entry?.contentTypes : undefined);
  const format = webhook.body ?? entry?.body ?? 'json';
  const handshakes = webhook.handshakes ?? entry?.handshakes ?? [];
  const hasBodyRules = webhook.body !== undefined || listed !== undefined || entry?.body !== undefined;
  return {
    body: {
      format,
      jsonField: webhook.jsonField ?? entry?.jsonField,
      takesCloudEvents: listed?.includes(CLOUD_EVENT_TYPE) ?? false,
    },
    hasBodyRules,
    contentTypes: hasBodyRules ? (listed ?? DEFAULT_TYPES[format]) : undefined,
    deliveryId: webhook.idempotencyKey ?? entry?.deliveryId,
    reply: webhook.reply ?? 'platform',
    // Slack shows the answers to commands and buttons to its users. These are forms, so such webhooks declare `body`.
    accepted: webhook.accepted ?? (provider?.id === 'slack' && webhook.body ? provider : entry)?.accepted,
    ackAfterMs: webhook.ackAfterMs ?? (webhook.async ? undefined : entry?.ackAfterMs),
    handshakes,
    requiresObject: handshakes.some(repliesWithHmac),
  };
}
