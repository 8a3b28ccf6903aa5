import { readFile, realpath } from 'node:fs/promises';
import { join } from 'node:path';
import { HEADERS } from '../../../../contracts/index.ts';
import type { Clock } from '../../../../kit/clock.ts';
import { messageOf, PlatformError } from '../../../../kit/errors.ts';
import type { Random } from '../../../../kit/random.ts';
import { isInside } from '../../../../plugins/inside.ts';
import type { SecretKey } from '../../../../store/ports/index.ts';
import type { WebhookDelivery } from './delivery.ts';
import { deliveryPath } from './delivery-path.ts';
import { schemeOf } from './schemes.ts';
import { describe, type WebhookSecrets } from './secrets.ts';
import type { DeclaredWebhook, WebhookTargets } from './targets.ts';

export interface Sample extends SecretKey {
  /** The payload; undefined: the one of the declaration. */
  data: unknown;
  headers: Record<string, string>;
  /** The caller's address. */
  source: string;
  requestId: string;
  traceId: string;
}

export interface WebhookSamplesDeps {
  targets: WebhookTargets;
  secrets: WebhookSecrets;
  delivery: WebhookDelivery;
  clock: Clock;
  random: Random;
}

/** Headers that say how the request travels, which this one does not. */
const NOT_SENT = new Set([
  'content-encoding',
  'content-length',
  'transfer-encoding',
  'host',
  'connection',
  HEADERS.namespace,
]);

/** Delivers to ourselves what a sender would, through every step. @spec docs/webhooks.md "Send" */
export function createWebhookSamples({ targets, secrets, delivery, clock, random }: WebhookSamplesDeps) {
  async function signatureOf(
    target: DeclaredWebhook,
    key: SecretKey,
    body: Buffer,
  ): Promise<Record<string, string>> {
    const { auth } = target.webhook;
    if (auth.type === 'custom')
      throw new PlatformError(
        'VALIDATION_ERROR',
        `Webhook ${describe(key)} is checked by its plugin's own validator, which the gateway cannot sign for: give the headers it wants.`,
      );
    const keys = await secrets.find(key);
    if (!keys)
      throw new PlatformError(
        'CONFLICT',
        `Webhook ${describe(key)} has no secret to sign with: \`svc webhooks provision\` makes one.`,
      );
    return schemeOf(auth).sign(keys.current, body, { nowMs: clock.now(), id: `msg_${random.uuid()}` });
  }

  return {
    /** Resolves with what the sender would be answered. Throws what keeps it from being sent. */
    async send({ data, headers, source, requestId, traceId, ...key }: Sample) {
      const { pluginId, event, namespaceId } = key;
      const instanceId = key.instanceId === '' ? undefined : key.instanceId;
      const target = targets.require(pluginId, event, instanceId);
      const payload = data === undefined ? await declaredSample(target) : JSON.stringify(data);
      const body = Buffer.from(payload);
      // In one case, as a name of another case would be a second header beside the signature's own.
      const given = Object.entries(headers)
        .map(([name, value]) => [name.toLowerCase(), value] as const)
        .filter(([name]) => !NOT_SENT.has(name));
      const isSignedByHand = target.webhook.auth.type === 'custom' && given.length > 0;
      const signature = isSignedByHand ? {} : await signatureOf(target, key, body);
      const sent = { 'content-type': 'application/json', ...Object.fromEntries(given), ...signature };
      const {
        status,
        body: answer,
        webhookId,
        answered,
      } = await delivery.receive({
        webhookId: random.uuid(),
        pluginId,
        event,
        instanceId,
        url: deliveryPath(key),
        rawHeaders: [...Object.entries(sent).flat(), HEADERS.namespace, namespaceId],
        namespaceInUrl: undefined,
        source,
        requestId,
        traceId,
        origin: 'sample',
        readBody: async (limitBytes) => {
          if (body.length <= limitBytes) return body;
          throw new PlatformError(
            'PAYLOAD_TOO_LARGE',
            `The sample has ${body.length} bytes; this webhook takes ${limitBytes}.`,
          );
        },
      });
      answered();
      return { webhookId, status, body: answer };
    },
  };
}
export type WebhookSamples = ReturnType<typeof createWebhookSamples>;

/** The file that the declaration names: the plugin's own, and no link out of it. */
async function declaredSample({ plugin, webhook }: DeclaredWebhook): Promise<string> {
  if (webhook.sample === undefined)
    throw new PlatformError(
      'VALIDATION_ERROR',
      `Webhook ${plugin.id} ${webhook.event} declares no sample: give the payload as data.`,
    );
  try {
    const [root, file] = await Promise.all([
      realpath(plugin.root),
      realpath(join(plugin.root, webhook.sample)),
    ]);
    if (!isInside(root, file)) throw new Error('it lies outside of the plugin');
    const text = await readFile(file, 'utf8');
    JSON.parse(text);
    return text;
  } catch (error) {
    throw new PlatformError(
      'INVALID_MANIFEST',
      `The sample ${webhook.sample} of ${plugin.id} cannot be used: ${messageOf(error)}.`,
    );
  }
}
