import type { CommandResult, ValidatorHostContext } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors/errors.ts';
import type { Random } from '../../kit/security/random.ts';
import type { PluginRuntime } from '../plugin-runtime/runtime.ts';
import type { RunOnProvision } from './domain/webhooks/admin/admin.ts';
import type { DeclaredWebhook } from './domain/webhooks/receive/targets.ts';
import type { RunValidator } from './domain/webhooks/verify/verifier.ts';

/** Time limit of validators and `onProvision` handlers. A sender or an administrator waits for the response. */
const TIMEOUT_MS = 10_000;
/** Host context for `onProvision` handlers, which are called without a delivery. */
const NO_REQUEST = { source: 'platform', method: 'POST', path: '', query: {}, headers: {} };

interface SideCall {
  target: DeclaredWebhook;
  handler: string;
  host: 'validator' | 'webhook';
  input: object;
  namespaceId: string;
  requestId: string;
  traceId: string;
  webhookId: string;
  /** Fields of the request that are added to the handler's host context. */
  fields: Partial<ValidatorHostContext>;
}

/** Calls validators and `onProvision` handlers of webhooks. */
export class SideCalls {
  readonly #plugins: Pick<PluginRuntime, 'execute'>;
  readonly #random: Random;

  constructor(plugins: Pick<PluginRuntime, 'execute'>, random: Random) {
    this.#plugins = plugins;
    this.#random = random;
  }

  readonly runValidator: RunValidator = (target, handler, input, context) => {
    const { namespaceId, webhookId, instanceId, incoming, request } = context;
    const { requestId, traceId, source } = incoming;
    const instance = target.webhook.multi ? { instanceId } : {};
    return this.#call({
      ...{ target, handler, host: 'validator', input },
      ...{ namespaceId, requestId, traceId, webhookId },
      fields: { source, ...instance, ...request },
    });
  };

  readonly runOnProvision: RunOnProvision = (target, handler, input, { requestId, traceId }) =>
    this.#call({
      ...{ target, handler, host: 'webhook', input },
      ...{ namespaceId: input.namespaceId, requestId, traceId, webhookId: this.#random.uuid() },
      fields: NO_REQUEST,
    });

  async #call({ target, handler, host, input, fields, webhookId, ...ids }: SideCall): Promise<unknown> {
    const { namespaceId, requestId, traceId } = ids;
    const { plugin, webhook } = target;
    const result: CommandResult = await this.#plugins.execute({
      plugin,
      handler,
      host,
      hostContext: { ...fields, host, event: webhook.event, namespaceId, webhookId },
      input,
      params: {},
      user: null,
      tenantId: namespaceId,
      requestId,
      traceId,
      timeoutMs: TIMEOUT_MS,
    });
    if (result.exitCode === 0) return result.result;
    throw new PlatformError('EXECUTION_ERROR', result.error?.message ?? `Exit code ${result.exitCode}`);
  }
}
