import { type AccessRule, SOURCES_PLUGIN_ID } from '../../../../../contracts/index.ts';
import { PlatformError } from '../../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../../kit/time/clock.ts';
import type { KeyValueStore, SecretKey } from '../../../../../store/ports/index.ts';
import type { AuditLog } from '../../audit/audit-log.ts';
import { recordCall } from '../../audit/call-audit.ts';
import { checkedSecret } from '../verify/new-secret.ts';
import type { WebhookSecrets } from '../verify/secrets.ts';
import type { DeliveryContext } from './delivery-context.ts';
import { describeEndpoint, endpointName } from './endpoint-name.ts';
import { mark } from './step-log.ts';
import type { DeclaredWebhook } from './targets.ts';

export interface ExpectedSecretsDeps {
  secrets: Pick<WebhookSecrets, 'provision'>;
  audit: AuditLog;
  /** A cache that all gateway processes share. */
  cache: KeyValueStore;
  clock: Clock;
  logger: Logger;
}

const TAKEN: AccessRule = {
  needs: 'open',
  audit: 'webhook.take_secret',
  object: 'webhook:{pluginId}/{event}/{instanceId}',
};
const TAKEN_BY_SOURCE: AccessRule = { needs: 'open', audit: 'source.take_secret', object: 'source:{event}' };

/** Cache scope of the open windows, by endpoint name. The value is the end of the window in epoch ms. */
const SCOPE = 'webhook-expected-secret';

/**
 * Secrets that senders hand over when their webhook is set up (Asana, Notion). A secret is accepted once, in a window
 * that the operator opens, because the request that contains it is not authenticated. @spec docs/webhooks.md
 * "Handshakes"
 */
export class ExpectedSecrets {
  readonly #deps: ExpectedSecretsDeps;

  constructor(deps: ExpectedSecretsDeps) {
    this.#deps = deps;
  }

  /** Opens the window of an endpoint. Returns its end in epoch ms. */
  async open(key: SecretKey, forMs: number): Promise<number> {
    const expiresAt = this.#deps.clock.now() + forMs;
    await this.#deps.cache.set(SCOPE, endpointName(key), expiresAt, forMs);
    return expiresAt;
  }

  /** Stores a secret and closes the window. Throws UNAUTHORIZED if no window is open, VALIDATION_ERROR if it is invalid. */
  async take(context: DeliveryContext, { webhook }: DeclaredWebhook, secret: unknown): Promise<void> {
    const { cache, clock, logger, secrets } = this.#deps;
    const { namespaceId, pluginId, event, instanceId, incoming } = context;
    const key = { namespaceId, pluginId, event, instanceId };
    const name = endpointName(key);
    const expiresAt = (await cache.get(SCOPE, name))?.value;
    if (typeof expiresAt !== 'number' || expiresAt <= clock.now()) throw notExpected(context);
    if (typeof secret !== 'string') throw new PlatformError('VALIDATION_ERROR', 'The secret must be a text.');
    checkedSecret(webhook.auth, secret);
    // Of several requests, only one deletes the entry.
    if (!(await cache.delete(SCOPE, name))) throw notExpected(context);
    try {
      await secrets.provision(key, secret, { namespaceInUrl: undefined });
    } catch (error) {
      const leftMs = expiresAt - clock.now();
      if (leftMs > 0) await cache.set(SCOPE, name, expiresAt, leftMs);
      throw error;
    }
    mark(context, 'challenge', 'secret_taken');
    await this.#record(context);
    logger.info(`The sender's secret for ${describeEndpoint(key)} was stored, and its window is closed`, {
      requestId: incoming.requestId,
      traceId: incoming.traceId,
      tenantId: namespaceId,
      pluginId,
    });
  }

  /** Adds the change to the audit log. The actor is the address of the sender, who is not authenticated. */
  async #record({ namespaceId, pluginId, event, instanceId, incoming }: DeliveryContext): Promise<void> {
    const { audit, logger } = this.#deps;
    const { requestId, traceId, source } = incoming;
    const caller = { hostId: `sender:${source}`, namespaceId, kind: 'sender' } as const;
    const rule = pluginId === SOURCES_PLUGIN_ID ? TAKEN_BY_SOURCE : TAKEN;
    // The URL and the body are not part of the entry: they can contain a token or the secret.
    const params = { pluginId, event, instanceId };
    const call = { caller, rule, params, path: endpointName({ namespaceId, ...params }), requestId, traceId };
    await recordCall(audit, call, { status: 200, body: null, reply: null }, logger);
  }
}

function notExpected(context: DeliveryContext): PlatformError {
  mark(context, 'challenge', 'secret_not_expected');
  const area = context.pluginId === SOURCES_PLUGIN_ID ? 'sources' : 'webhooks';
  context.refusal = JSON.stringify({
    error: {
      code: 'UNAUTHORIZED',
      message: `The sender handed over a secret while none was expected. Run \`svc ${area} expect-secret\` and let the sender try again.`,
    },
  });
  return new PlatformError('UNAUTHORIZED', 'This webhook expects no secret at the moment.');
}
