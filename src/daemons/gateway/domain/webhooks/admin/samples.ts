import { readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { HEADERS, type WebhookAuthConfig } from '../../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Random } from '../../../../../kit/security/random.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import { isInside } from '../../../../../plugins/inside.ts';
import type { SecretKey } from '../../../../../store/ports/index.ts';
import { receiveRulesOf } from '../../../../../webhooks/receive-rules.ts';
import { type Draft, verificationOf, withSigned } from '../../../../../webhooks/schemes/index.ts';
import type { WebhookDelivery } from '../receive/delivery.ts';
import { deliveryPath } from '../receive/delivery-path.ts';
import { describeEndpoint } from '../receive/endpoint-name.ts';
import type { DeclaredWebhook, WebhookTargets } from '../receive/targets.ts';
import { draftOf } from '../verify/draft.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';

export interface Sample extends SecretKey {
  /** Payload of the sample. If undefined, the sample file that the webhook declares is sent. */
  data: unknown;
  /** Body of the sample, instead of `data`. */
  body: Buffer | undefined;
  contentType: string | undefined;
  headers: Record<string, string>;
  /** IP address of the caller. */
  source: string;
  requestId: string;
  traceId: string;
}

const JSON_TYPE = 'application/json';

export interface WebhookSamplesDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  delivery: WebhookDelivery;
  publicUrl: string | null;
  clock: Clock;
  random: Random;
}

/**
 * Headers that are not copied from the caller to the internal request. The internal request sets its own values or does
 * not need these headers.
 */
const NOT_SENT = new Set([
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'host',
  'connection',
  HEADERS.namespace,
]);

/**
 * Sends sample deliveries to this gateway. A sample passes through the same steps as the delivery of a real sender.
 * @spec docs/webhooks.md "Send"
 */
export class WebhookSamples {
  readonly #deps: WebhookSamplesDeps;

  constructor(deps: WebhookSamplesDeps) {
    this.#deps = deps;
  }

  /** Sends a sample. Resolves with the response that a sender would get. Throws if the sample cannot be sent. */
  async send({ data, body: given, contentType, headers, source, requestId, traceId, ...key }: Sample) {
    const { pluginId, event, namespaceId } = key;
    const instanceId = key.instanceId === '' ? undefined : key.instanceId;
    const target = this.#deps.targets.require(pluginId, event, instanceId);
    const bytes =
      given ?? (data === undefined ? await declaredSample(target) : Buffer.from(JSON.stringify(data)));
    // Header names are converted to lower case. The generated signature header then replaces a signature header of the
    // caller.
    const extra = Object.entries(headers)
      .map(([name, value]) => [name.toLowerCase(), value] as const)
      .filter(([name]) => !NOT_SENT.has(name));
    const type = contentType ?? sampleType(target);
    const unsigned = { 'content-type': type, ...Object.fromEntries(extra) };
    const draft = draftOf({
      rawHeaders: Object.entries(unsigned).flat(),
      body: bytes,
      nowMs: this.#deps.clock.now(),
      id: `msg_${this.#deps.random.uuid()}`,
      target: deliveryPath(key),
      publicUrl: this.#deps.publicUrl,
    });
    const isSignedByHand = isSignedElsewhere(target) && extra.length > 0;
    const { body, target: url, rawHeaders } = isSignedByHand ? draft : await this.#signed(target, key, draft);
    const {
      status,
      body: answer,
      webhookId,
      answered,
    } = await this.#deps.delivery.receive({
      webhookId: this.#deps.random.uuid(),
      pluginId,
      event,
      instanceId,
      method: 'POST',
      url,
      rawHeaders: [...rawHeaders, HEADERS.namespace, namespaceId],
      namespaceInUrl: undefined,
      source,
      requestId,
      traceId,
      origin: 'sample',
      readBody: async (limitBytes) => {
        if (body.length <= limitBytes) return body;
        throw new PlatformError(
          'PAYLOAD_TOO_LARGE',
          `The sample has ${body.length} bytes; this webhook accepts ${limitBytes}.`,
        );
      },
    });
    answered();
    return { webhookId, status, body: answer };
  }

  async #signed(target: DeclaredWebhook, key: SecretKey, draft: Draft): Promise<Draft> {
    const { auth } = target.webhook;
    const scheme = auth.type === 'custom' ? undefined : verificationOf(auth).schemes.find(({ sign }) => sign);
    if (!scheme) throw new PlatformError('VALIDATION_ERROR', whyUnsigned(auth, key));
    const keys = await this.#deps.secrets.find(key);
    if (!keys)
      throw new PlatformError(
        'CONFLICT',
        `Webhook ${describeEndpoint(key)} has no secret to sign with: create one with \`svc webhooks provision\`.`,
      );
    return withSigned(draft, await scheme.sign!(keys.current, draft));
  }
}

/** Returns whether the gateway cannot sign: a plugin's validator authenticates, or only the sender has the private key. */
function isSignedElsewhere({ webhook: { auth } }: DeclaredWebhook): boolean {
  return auth.type === 'custom' || verificationOf(auth).schemes.every(({ sign }) => !sign);
}

function whyUnsigned(auth: WebhookAuthConfig, key: SecretKey): string {
  const webhook = `Webhook ${describeEndpoint(key)}`;
  return auth.type === 'custom'
    ? `${webhook} is authenticated by its plugin's validator, so the gateway cannot sign the sample: pass the headers that it expects.`
    : `${webhook} is signed with a private key that only the sender has, so the gateway cannot sign the sample: let the sender deliver a test event, or pass the headers of a signed delivery.`;
}

/** Returns the content type of a sample: JSON, or the first concrete type that the webhook accepts. */
function sampleType({ webhook }: DeclaredWebhook): string {
  const { contentTypes } = receiveRulesOf(webhook);
  return contentTypes?.find((type) => !type.includes('*')) ?? JSON_TYPE;
}

/** Reads the sample file that the manifest declares. The file must be inside the plugin's folder. */
async function declaredSample({ plugin, webhook }: DeclaredWebhook): Promise<Buffer> {
  if (webhook.sample === undefined)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `Webhook ${plugin.id} ${webhook.event} declares no sample: pass the payload as data.`,
    );
  try {
    const [root, file] = await Promise.all([
      realpath(plugin.root),
      realpath(join(plugin.root, webhook.sample)),
    ]);
    if (!isInside(root, file)) throw new Error('it is outside of the plugin');
    const body = await readFile(file);
    if (receiveRulesOf(webhook).body.format === 'json') JSON.parse(body.toString('utf8'));
    return body;
  } catch (error) {
    throw new PlatformError(
      'INVALID_MANIFEST',
      `The sample ${webhook.sample} of ${plugin.id} cannot be used: ${messageOf(error)}.`,
    );
  }
}
