import {
  type CommandResult,
  HandlerRef,
  type HostKind,
  NamespaceId,
  type WebhookHandlerDecl,
} from '../contracts/index.ts';
import { deliveryPath } from '../daemons/gateway/domain/webhooks/receive/delivery-path.ts';
import { commandCall, requireCommand } from '../daemons/plugin-runtime/commands.ts';
import type { PluginCall } from '../daemons/plugin-runtime/plugin-call.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { LoadedPlugin } from '../plugins/index.ts';
import type { CallerOptions, CommandOptions, ValidatorRequest, WebhookOptions } from './call-types.ts';
import type { TestServices } from './services.ts';

const SENDER_ADDRESS = '192.0.2.1';

type Declared = Pick<PluginCall, 'handler' | 'schemas' | 'timeoutMs' | 'permissions'>;

/** Runs handlers of the plugin under test. The execution code is the same as in production. */
export class HandlerCalls {
  readonly #plugin: LoadedPlugin;
  readonly #services: TestServices;

  constructor(plugin: LoadedPlugin, services: TestServices) {
    this.#plugin = plugin;
    this.#services = services;
  }

  async command<Result>(
    id: string,
    input: unknown = {},
    options: CommandOptions = {},
  ): Promise<CommandResult<Result>> {
    const { host = 'cli', ...caller } = options;
    const { command } = requireCommand(this.#registry, this.#plugin.id, id);
    return this.#run(host, commandCall(command), input, { command: id }, caller);
  }

  async job<Result>(id: string, input: unknown = {}, caller?: CallerOptions): Promise<CommandResult<Result>> {
    const job = this.#plugin.manifest.jobs.find((declared) => declared.id === id);
    if (!job) throw new PlatformError('JOB_NOT_FOUND', `Plugin ${this.#plugin.id} has no job "${id}".`);
    const { handler, input: schema, timeoutMs } = job;
    const schemas = schema ? { input: schema } : {};
    const declared = { handler, schemas, ...(timeoutMs === undefined ? {} : { timeoutMs }) };
    return this.#run('job', declared, input, { job: id }, caller);
  }

  async webhook<Result>(
    event: string,
    payload: unknown,
    options: WebhookOptions = {},
  ): Promise<CommandResult<Result>> {
    const { namespaceId = 'default', instanceId, webhookId, source = SENDER_ADDRESS, headers = {} } = options;
    const { handler, timeoutMs } = this.requireWebhook(event);
    return this.#run(
      'webhook',
      { handler: HandlerRef.parse(handler), ...(timeoutMs === undefined ? {} : { timeoutMs }) },
      payload,
      {
        event,
        namespaceId,
        webhookId: webhookId ?? this.#services.random.uuid(),
        ...this.#request(event, headers, instanceId),
        source,
        ...(instanceId === undefined ? {} : { instanceId }),
      },
      { tenantId: NamespaceId.parse(namespaceId), user: null },
    );
  }

  async validator(event: string, { headers, rawBody, secret }: ValidatorRequest): Promise<boolean> {
    const lowerCase = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
    const input = {
      headers: Object.fromEntries(lowerCase),
      rawBody: Buffer.from(rawBody).toString('base64'),
      secret,
    };
    const context = {
      event,
      namespaceId: 'default',
      webhookId: this.#services.random.uuid(),
      source: SENDER_ADDRESS,
      ...this.#request(event, input.headers),
    };
    const declared = { handler: validatorOf(this.requireWebhook(event)) };
    const { result } = await this.#run<{ valid?: unknown }>('validator', declared, input, context, {
      user: null,
    });
    return result?.valid === true;
  }

  /** Returns the declaration of a webhook. Throws WEBHOOK_NOT_FOUND if the manifest does not declare the webhook. */
  requireWebhook(event: string): WebhookHandlerDecl {
    return this.#registry.requireWebhook(this.#plugin.id, event).webhook;
  }

  get #registry() {
    return this.#services.rest.services.plugins.registry;
  }

  /** Returns the fields of `ctx.hostContext` that describe the request. */
  #request(event: string, headers: Record<string, string>, instanceId = '') {
    const path = deliveryPath({ pluginId: this.#plugin.id, event, instanceId });
    return { method: 'POST', query: {}, headers, path };
  }

  #run<Result>(
    host: HostKind,
    declared: Declared,
    input: unknown,
    hostContext: Record<string, unknown>,
    { tenantId = 'default', user = 'tester' }: CallerOptions = {},
  ): Promise<CommandResult<Result>> {
    const requestId = this.#services.random.uuid();
    const result = this.#services.rest.services.plugins.execute({
      ...declared,
      plugin: this.#plugin,
      host,
      hostContext: { host, ...hostContext },
      input,
      params: {},
      user: user === null ? null : { hostId: user, namespaceId: tenantId },
      tenantId,
      requestId,
      traceId: requestId.replaceAll('-', ''),
    });
    // The test chooses the result type, which is not checked at run time.
    return result as Promise<CommandResult<Result>>;
  }
}

/**
 * Returns the validator of a webhook. Throws INVALID_HANDLER if the gateway authenticates the webhook itself, without a
 * validator.
 */
function validatorOf({ event, auth }: WebhookHandlerDecl): string {
  if (auth.type === 'custom') return auth.validator;
  throw new PlatformError(
    'INVALID_HANDLER',
    `The webhook "${event}" is authenticated by the gateway (${auth.type}), not by a validator of the plugin. Use host.deliver(), which signs it.`,
  );
}
