import { readFile, realpath } from 'node:fs/promises';
import { resolve } from 'node:path';
import {
  type CommandResult,
  HandlerRef,
  type HostKind,
  type ManifestV3,
  NamespaceId,
  type PluginJob,
  type PluginRun,
  type WebhookHandlerDecl,
} from '../contracts/index.ts';
import { deliveryPath } from '../daemons/gateway/domain/webhooks/delivery-path.ts';
import { commandCall, requireCommand } from '../daemons/plugin-runtime/commands.ts';
import type { PluginCall } from '../daemons/plugin-runtime/runtime.ts';
import { serviceHeaders } from '../http/index.ts';
import { manualClock } from '../kit/clock.ts';
import { PlatformError } from '../kit/errors.ts';
import type { LoadedPlugin, StubFetch } from '../plugins/index.ts';
import { createDeliveries } from './deliveries.ts';
import { requireSupportedNode } from './node-version.ts';
import { startTestServices } from './services.ts';
import type {
  CallerOptions,
  CommandOptions,
  Decision,
  DeliveryAnswer,
  DeliveryOptions,
  RouteAnswer,
  RouteOptions,
  TestLog,
  ValidatorRequest,
  WebhookOptions,
} from './types.ts';
import { workflowCalls } from './workflow-calls.ts';

export interface TestHostOptions {
  /** The plugin's folder; default: the working directory, which is where `npm test` starts. */
  plugin?: string;
  /** Folders of other plugins, for `ctx.invoke` and dependencies. */
  plugins?: string[];
  /** What the plugin finds as `ctx.config`. */
  config?: Record<string, unknown>;
  /**
   * `adapters` of the config: a model's endpoint, a bucket. Objects and vectors are kept in a folder that goes with the
   * host unless told otherwise; a model there is only when one is named.
   */
  adapters?: Record<string, unknown>;
  /**
   * Answers `ctx.fetch` instead of the network, for hosts that the manifest allows; others are refused as ever. Return
   * undefined to have the network answer.
   */
  fetch?: StubFetch;
  /** Where the clock stands at first, in epoch milliseconds. Default: 2030-01-01. */
  startAt?: number;
}

export interface TestHost extends AsyncDisposable {
  readonly manifest: ManifestV3;
  /** Every line so far, of the plugin and of the services. */
  readonly logs: readonly TestLog[];
  /** Runs a command as `svc run` does, or as another host. Rejects with the platform's code where the platform fails it. */
  command<Result = unknown>(
    id: string,
    input?: unknown,
    options?: CommandOptions,
  ): Promise<CommandResult<Result>>;
  job<Result = unknown>(id: string, input?: unknown, options?: CallerOptions): Promise<CommandResult<Result>>;
  /** Calls a route over HTTP; `path` is the route's own, below the base path. `Body` is what the test expects of it. */
  route<Body = unknown>(method: string, path: string, options?: RouteOptions): Promise<RouteAnswer<Body>>;
  /** Runs a webhook's handler with a delivery that was let in. */
  webhook<Result = unknown>(
    event: string,
    payload: unknown,
    options?: WebhookOptions,
  ): Promise<CommandResult<Result>>;
  /**
   * Delivers an event to the real gateway, signed with the secret of the webhook, and resolves with what its sender is
   * answered: authentication, duplicates, limits and the handler included.
   */
  deliver(event: string, payload: unknown, options?: DeliveryOptions): Promise<DeliveryAnswer>;
  /** Asks the plugin's own validator of a webhook. Resolves with whether the delivery counts as authentic. */
  validator(event: string, request: ValidatorRequest): Promise<boolean>;
  /** Starts a registered workflow; the run goes on by itself, on the clock of the test. */
  workflow(id: string, input?: unknown, options?: CallerOptions): Promise<PluginRun>;
  /** Sends what `ctx.waitForSignal`, or a `signal` step, waits for or will wait for. */
  signal(id: string, name: string, payload?: unknown, options?: CallerOptions): Promise<void>;
  /** Decides an approval that the run waits for; `step` as in the run's steps: `main.ship`. Default: approved. */
  approve(id: string, step: string, decision?: Decision): Promise<void>;
  /**
   * Resolves with a run once it has ended or waits for something that is not there yet, its children included; for a
   * job, once it has ended.
   */
  settled(id: string, options?: CallerOptions): Promise<PluginRun | PluginJob>;
  /** Moves the platform's time: what was kept for a while expires, calls under way time out. */
  advance(ms: number): void;
  close(): Promise<void>;
}

/** Starts what a plugin runs on. Throws INVALID_MANIFEST, INVALID_HANDLER and the like when it cannot be loaded. */
export async function createTestHost(options: TestHostOptions = {}): Promise<TestHost> {
  requireSupportedNode();
  const clock = manualClock(options.startAt);
  const logs: TestLog[] = [];
  const folder = await realFolder(options.plugin ?? '.');
  const write = (line: TestLog): void => void logs.push(line);
  const plugins = [folder, ...(options.plugins ?? []).map((other) => resolve(other))];
  const id = await idOf(folder);
  const services = await startTestServices({
    plugins,
    pluginConfig: id === undefined || !options.config ? {} : { [id]: options.config },
    adapters: options.adapters ?? {},
    fetch: options.fetch,
    clock,
    write,
  });
  const { rest, keys, random } = services;
  const runtime = rest.services.plugins;

  function loaded(): LoadedPlugin {
    const plugin = runtime.registry.plugins.find(({ root }) => root === folder);
    const found = plugin ?? (id === undefined ? undefined : runtime.registry.find(id));
    if (found) return found;
    const faults = runtime.registry.broken.flatMap((broken) => broken.faults);
    throw new PlatformError(
      faults[0]?.code ?? 'INVALID_MANIFEST',
      `The plugin in ${folder} cannot be loaded: ${faults.map(({ path, message }) => `${path || 'manifest'}: ${message}`).join('; ')}`,
      { details: { faults } },
    );
  }

  let plugin: LoadedPlugin;
  try {
    plugin = loaded();
    await services.startFor(plugin.manifest);
  } catch (error) {
    await services.close();
    throw error;
  }

  const deliver = createDeliveries(services);

  function run<Result>(
    host: HostKind,
    declared: Pick<PluginCall, 'handler' | 'schemas' | 'timeoutMs' | 'permissions'>,
    input: unknown,
    hostContext: Record<string, unknown>,
    { tenantId = 'default', user = 'tester' }: CallerOptions = {},
  ): Promise<CommandResult<Result>> {
    const requestId = random.uuid();
    const result = runtime.execute({
      ...declared,
      plugin,
      host,
      hostContext: { host, ...hostContext },
      input,
      params: {},
      user: user === null ? null : { hostId: user, namespaceId: tenantId },
      tenantId,
      requestId,
      traceId: requestId.replaceAll('-', ''),
    });
    // The caller says what it expects, as of a route's body.
    return result as Promise<CommandResult<Result>>;
  }

  return {
    manifest: plugin.manifest,
    logs,
    async command<Result>(commandId: string, input: unknown = {}, options: CommandOptions = {}) {
      const { host = 'cli', ...caller } = options;
      const { command } = requireCommand(runtime.registry, plugin.id, commandId);
      return run<Result>(host, commandCall(command), input, { command: commandId }, caller);
    },
    async job<Result>(jobId: string, input: unknown = {}, caller?: CallerOptions) {
      const job = plugin.manifest.jobs.find((declared) => declared.id === jobId);
      if (!job) throw new PlatformError('JOB_NOT_FOUND', `The plugin ${plugin.id} has no job "${jobId}".`);
      const { handler, input: schema, timeoutMs } = job;
      const schemas = schema ? { input: schema } : {};
      return run<Result>(
        'job',
        { handler, schemas, ...(timeoutMs === undefined ? {} : { timeoutMs }) },
        input,
        { job: jobId },
        caller,
      );
    },
    async route<Body>(method: string, path: string, routeOptions: RouteOptions = {}) {
      const base = `${rest.url}/api/v1/plugins/${encodeURIComponent(plugin.id)}`;
      return call<Body>(base + (path === '/' ? '' : path), method, routeOptions, keys.internalSecret);
    },
    async webhook<Result>(event: string, payload: unknown, options: WebhookOptions = {}) {
      const { namespaceId = 'default', instanceId, webhookId, source = '192.0.2.1', headers = {} } = options;
      const { webhook } = runtime.registry.requireWebhook(plugin.id, event);
      return run<Result>(
        'webhook',
        {
          handler: HandlerRef.parse(webhook.handler),
          ...(webhook.timeoutMs === undefined ? {} : { timeoutMs: webhook.timeoutMs }),
        },
        payload,
        {
          event,
          namespaceId,
          webhookId: webhookId ?? random.uuid(),
          ...{ method: 'POST', query: {}, headers },
          path: deliveryPath({ pluginId: plugin.id, event, instanceId: instanceId ?? '' }),
          source,
          ...(instanceId === undefined ? {} : { instanceId }),
        },
        { tenantId: NamespaceId.parse(namespaceId), user: null },
      );
    },
    deliver: (event, payload, deliveryOptions = {}) => {
      const { webhook } = runtime.registry.requireWebhook(plugin.id, event);
      return deliver(plugin.id, webhook, payload, deliveryOptions);
    },
    async validator(event, { headers, rawBody, secret }) {
      const { webhook } = runtime.registry.requireWebhook(plugin.id, event);
      const input = {
        headers: Object.fromEntries(
          Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]),
        ),
        rawBody: Buffer.from(rawBody).toString('base64'),
        secret,
      };
      const context = { event, namespaceId: 'default', webhookId: random.uuid(), source: '192.0.2.1' };
      const request = {
        method: 'POST',
        query: {},
        headers: input.headers,
        path: deliveryPath({ pluginId: plugin.id, event, instanceId: '' }),
      };
      const { result } = await run<{ valid?: unknown }>(
        'validator',
        { handler: validatorOf(webhook) },
        input,
        { ...context, ...request },
        { user: null },
      );
      return result?.valid === true;
    },
    ...workflowCalls(services, clock),
    advance: (ms) => clock.advance(ms),
    close: () => services.close(),
    [Symbol.asyncDispose]: () => services.close(),
  };
}

/** Throws INVALID_HANDLER for a webhook that the gateway checks itself. */
function validatorOf({ event, auth }: WebhookHandlerDecl): string {
  if (auth.type === 'custom') return auth.validator;
  throw new PlatformError(
    'INVALID_HANDLER',
    `The webhook "${event}" is checked by the gateway (${auth.type}), not by a validator of the plugin; host.deliver() signs for it.`,
  );
}

/** As the registry names it; a folder that is not there is told by loading it. */
async function realFolder(path: string): Promise<string> {
  const folder = resolve(path);
  return realpath(folder).catch(() => folder);
}

/** The id as the manifest file tells it; a manifest module has to be run for that. */
async function idOf(folder: string): Promise<string | undefined> {
  for (const file of ['svc.plugin.json', 'package.json']) {
    try {
      const { id, name } = JSON.parse(await readFile(`${folder}/${file}`, 'utf8')) as Record<string, unknown>;
      const found = file === 'package.json' ? name : id;
      if (typeof found === 'string') return found;
    } catch {
      // The other file may tell.
    }
  }
  return undefined;
}

async function call<Body>(
  url: string,
  method: string,
  { body, query = {}, headers = {}, tenantId = 'default', user = 'tester' }: RouteOptions,
  internalSecret: string,
): Promise<RouteAnswer<Body>> {
  const target = new URL(url);
  for (const [name, value] of Object.entries(query)) target.searchParams.append(name, String(value));
  const caller = { namespaceId: tenantId, ...(user === null ? {} : { hostId: user }) };
  const response = await fetch(target, {
    method,
    headers: {
      ...serviceHeaders(internalSecret, caller),
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const isJson = response.headers.get('content-type')?.startsWith('application/json');
  return {
    status: response.status,
    headers: response.headers,
    body: isJson && text !== '' ? JSON.parse(text) : text,
  };
}
