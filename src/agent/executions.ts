import {
  type AgentFrame,
  type ExecutionRequest,
  type GatewayFrame,
  HOST_SOCKET,
  type HostExecution,
} from '../contracts/index.ts';
import { createBoundedCache } from '../kit/data/bounded-cache.ts';
import { PlatformError, toPlatformError } from '../kit/errors/errors.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import {
  createStreamCredit,
  type ExecutionBackend,
  type PlatformCallContext,
  type PlatformServices,
  type StreamCredit,
  type StreamSink,
} from '../plugins/index.ts';
import type { PluginCache } from './plugin-cache.ts';
import { remoteError } from './remote-error.ts';

/** Recently accepted execution ids: an id runs only once, even after a reconnect. */
const MAX_ACCEPTED_IDS = 4096;
const MAX_MESSAGE_CHARS = 8000;

/** A connection to the gateway, as used by executions. */
export interface Link {
  /** Returns false if the connection is closed or the frame too large. */
  send(frame: AgentFrame): boolean;
}

export interface AgentExecutions {
  readonly running: number;
  /** Platform services for handlers; filled by `offer`. */
  readonly services: PlatformServices;
  /** Sets the services the gateway offers. */
  offer(services: Record<string, string[]>): void;
  start(link: Link, frame: ExecuteFrame): void;
  /** Grants credit for more of a stream. */
  pull(executionId: string, bytes: number): void;
  cancel(executionId: string, reason: string): void;
  settleCall(callId: number, outcome: Extract<GatewayFrame, { type: 'reply' }>['outcome']): void;
  /** The connection is gone: aborts its executions. */
  abandon(link: Link): void;
  /** Rejects new executions. */
  drain(): void;
  /** Resolves when no execution is running. */
  idle(): Promise<void>;
}

export interface AgentExecutionsDeps {
  /** Tenant of the host's registration. Executions of other tenants are refused. */
  namespaceId: string;
  cache: PluginCache;
  /** Creates the backend with the services of these executions. */
  createBackend(services: PlatformServices): ExecutionBackend & { isBusy(pluginId: string): boolean };
  logger: Logger;
}

type ExecuteFrame = Extract<GatewayFrame, { type: 'execute' }>;

interface Running {
  link: Link;
  abort: AbortController;
  credit: StreamCredit;
}

interface WaitingCall {
  link: Link;
  resolve(value: unknown): void;
  reject(error: PlatformError): void;
}

/** Runs executions from the gateway and forwards the platform calls of their handlers. */
export function createAgentExecutions({
  namespaceId,
  cache,
  createBackend,
  logger,
}: AgentExecutionsDeps): AgentExecutions {
  const running = new Map<string, Running>();
  /** Connection by execution id. Kept after cancellation, so that final log lines still reach the gateway. */
  const accepted = createBoundedCache<Link>(MAX_ACCEPTED_IDS);
  const calls = new Map<number, WaitingCall>();
  const services: PlatformServices = {};
  const backend = createBackend(services);
  let lastCallId = 0;
  let isDraining = false;
  let onIdle = (): void => {};

  async function run(
    { executionId, request, streams, tellsBegun }: ExecuteFrame,
    { link, abort: { signal }, credit }: Running,
  ): Promise<void> {
    try {
      const { id, version } = request.plugin;
      const root = (await cache.find(request.plugin)) ?? (await fetchPlugin(link, executionId, request));
      if (!backend.isBusy(id)) link.send({ type: 'progress', executionId, state: 'running' });
      const fullRequest = { ...request, executionId, plugin: { id, version, root } } as ExecutionRequest;
      const stream = streams ? streamTo(link, executionId, credit) : undefined;
      const onBegun = tellsBegun && (() => void link.send({ type: 'begun', executionId }));
      const result = await backend.run(fullRequest, {
        signal,
        ...(stream ? { stream } : {}),
        ...(onBegun ? { onBegun } : {}),
      });
      if (signal.aborted || link.send({ type: 'result', executionId, result })) return;
      throw tooLarge('result');
    } catch (thrown) {
      if (signal.aborted) return;
      logStack(link, executionId, request.handler, thrown);
      report(link, executionId, thrown);
    } finally {
      running.delete(executionId);
      if (running.size === 0) onIdle();
    }
  }

  function refusalOf({ request: { tenantId } }: ExecuteFrame): string | undefined {
    if (isDraining) return 'The host is stopping.';
    if (tenantId === namespaceId) return undefined;
    return `The host serves namespace ${namespaceId} only, and received an execution of ${tenantId}.`;
  }

  /** Sends the handler's stream as the gateway grants credit. */
  function streamTo(link: Link, executionId: string, credit: StreamCredit): StreamSink {
    return {
      start: (contentType) => void link.send({ type: 'stream', executionId, contentType }),
      async write(piece) {
        await credit.take(piece.length);
        link.send({ type: 'chunk', executionId, data: piece.toString('base64') });
      },
    };
  }

  function fetchPlugin(link: Link, executionId: string, { plugin }: HostExecution): Promise<string> {
    link.send({ type: 'progress', executionId, state: 'preparing' });
    return cache.fetch(plugin);
  }

  /** Sends the stack of a handler's failure to the gateway's log only: the error itself is returned to callers. */
  function logStack(link: Link, executionId: string, handler: string, thrown: unknown): void {
    const { code, message, details, cause } = toPlatformError(thrown);
    if (code !== 'EXECUTION_ERROR' || !(cause instanceof Error) || !cause.stack) return;
    const at = typeof details.at === 'string' ? { at: details.at } : {};
    const meta = { code, ...at, stack: cause.stack.slice(0, MAX_MESSAGE_CHARS) };
    const text = `"${handler}" failed: ${message}`.slice(0, MAX_MESSAGE_CHARS);
    link.send({ type: 'log', executionId, level: 'error', message: text, meta });
  }

  function report(link: Link, executionId: string, thrown: unknown): void {
    const { code, message, details } = toPlatformError(thrown);
    if (code === 'INTERNAL_ERROR') logger.error(`Execution ${executionId} failed`, { error: thrown });
    const error = { code, message: message.slice(0, MAX_MESSAGE_CHARS) };
    // The details may be too large; the error itself must always be sent.
    if (link.send({ type: 'error', executionId, error: { ...error, details } })) return;
    link.send({ type: 'error', executionId, error });
  }

  function call(
    service: string,
    method: string,
    { request, signal }: PlatformCallContext,
    args: unknown[],
  ): Promise<unknown> {
    const { executionId } = request;
    const link = running.get(executionId)?.link;
    if (!link || signal.aborted) return Promise.reject(lost());
    const callId = ++lastCallId;
    return new Promise((resolve, reject) => {
      calls.set(callId, { link, resolve, reject });
      if (link.send({ type: 'call', callId, executionId, service, method, args })) return;
      calls.delete(callId);
      reject(tooLarge(`call of ctx.${service}`));
    });
  }

  function log({ request }: PlatformCallContext, [level, message, meta]: unknown[]): Promise<void> {
    const { executionId } = request;
    accepted.get(executionId)?.send({
      type: 'log',
      executionId,
      level: String(level).slice(0, 16),
      message:
        typeof message === 'string' ? message.slice(0, 8192) : String(JSON.stringify(message)).slice(0, 8192),
      ...(typeof meta === 'object' && meta !== null ? { meta: meta as Record<string, unknown> } : {}),
    });
    return Promise.resolve();
  }

  return {
    services,
    get running() {
      return running.size;
    },
    offer(offered) {
      for (const name of Object.keys(services)) delete services[name];
      for (const [service, methods] of Object.entries(offered)) {
        services[service] = Object.fromEntries(
          methods.map((method) => [method, (context, args) => call(service, method, context, args)]),
        );
      }
      services.log = { write: log };
    },
    start(link, frame) {
      const { executionId } = frame;
      if (accepted.get(executionId)) {
        logger.warn(`Execution ${executionId} was received twice; the second one is ignored`);
        return;
      }
      accepted.set(executionId, link);
      const message = refusalOf(frame);
      if (message !== undefined) {
        link.send({ type: 'error', executionId, error: { code: 'HOST_UNAVAILABLE', message } });
        return;
      }
      const abort = new AbortController();
      const entry = { link, abort, credit: createStreamCredit(abort.signal) };
      running.set(executionId, entry);
      void run(frame, entry);
    },
    pull(executionId, bytes) {
      running.get(executionId)?.credit.grant(bytes);
    },
    cancel(executionId, reason) {
      running.get(executionId)?.abort.abort(new DOMException(reason, 'AbortError'));
    },
    settleCall(callId, outcome) {
      const waiting = calls.get(callId);
      calls.delete(callId);
      if (outcome.ok) waiting?.resolve(outcome.value);
      else waiting?.reject(remoteError(outcome.error));
    },
    abandon(link) {
      for (const entry of running.values()) if (entry.link === link) entry.abort.abort();
      for (const [callId, waiting] of calls) {
        if (waiting.link !== link) continue;
        calls.delete(callId);
        waiting.reject(lost());
      }
    },
    drain() {
      isDraining = true;
    },
    idle: () =>
      new Promise((resolve) => {
        onIdle = resolve;
        if (running.size === 0) resolve();
      }),
  };
}

function lost(): PlatformError {
  return new PlatformError('HOST_UNAVAILABLE', 'The connection of this host to the gateway was lost.');
}

function tooLarge(item: string): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The ${item} exceeds ${HOST_SOCKET.agentFrameBytes} bytes, the limit of a frame from a host.`,
    { details: { maxBytes: HOST_SOCKET.agentFrameBytes } },
  );
}
