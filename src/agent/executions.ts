import type { ExecutionRequest, GatewayFrame, HostExecution } from '../contracts/index.ts';
import { createBoundedCache } from '../kit/data/bounded-cache.ts';
import { toPlatformError } from '../kit/errors/errors.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import {
  createStreamCredit,
  type ExecutionBackend,
  type PlatformServices,
  type StreamCredit,
  type StreamSink,
} from '../plugins/index.ts';
import type { Link } from './link.ts';
import { PlatformCalls, tooLarge } from './platform-calls.ts';
import type { PluginCache } from './plugin-cache.ts';

/**
 * Number of recent execution ids kept to detect duplicates. An execution must run only once, even after a reconnect.
 */
const MAX_ACCEPTED_IDS = 4096;
const MAX_MESSAGE_CHARS = 8000;

export interface AgentExecutionsDeps {
  /** Tenant for which this host is registered. Executions of other tenants are refused. */
  namespaceId: string;
  cache: PluginCache;
  backend: Pick<ExecutionBackend, 'run'>;
  /** Returns whether a call of this plugin would have to wait for a free process. */
  isBusy(pluginId: string): boolean;
  /**
   * Functions that the backend calls when a handler uses a service of `ctx`. `PlatformCalls` adds the services that the
   * gateway lists.
   */
  services: PlatformServices;
  logger: Logger;
}

type ExecuteFrame = Extract<GatewayFrame, { type: 'execute' }>;

interface Running {
  link: Link;
  abort: AbortController;
  credit: StreamCredit;
}

/** Runs the handler executions that the gateway requests. */
export class AgentExecutions {
  readonly #deps: AgentExecutionsDeps;
  readonly #running = new Map<string, Running>();
  readonly #accepted = createBoundedCache<Link>(MAX_ACCEPTED_IDS);
  readonly calls: PlatformCalls;
  #isDraining = false;
  #onIdle = (): void => {};

  constructor(deps: AgentExecutionsDeps) {
    this.#deps = deps;
    const { services } = deps;
    this.calls = new PlatformCalls({ services, running: this.#running, accepted: this.#accepted });
  }

  get running(): number {
    return this.#running.size;
  }

  start(link: Link, frame: ExecuteFrame): void {
    const { executionId } = frame;
    if (this.#accepted.get(executionId)) {
      this.#deps.logger.warn(`Execution ${executionId} was received twice; the second one is ignored`);
      return;
    }
    this.#accepted.set(executionId, link);
    const message = this.#refusalOf(frame);
    if (message !== undefined) {
      link.send({ type: 'error', executionId, error: { code: 'HOST_UNAVAILABLE', message } });
      return;
    }
    const abort = new AbortController();
    const entry = { link, abort, credit: createStreamCredit(abort.signal) };
    this.#running.set(executionId, entry);
    void this.#run(frame, entry);
  }

  /** Lets the stream of an execution send `bytes` more bytes. */
  pull(executionId: string, bytes: number): void {
    this.#running.get(executionId)?.credit.grant(bytes);
  }

  cancel(executionId: string, reason: string): void {
    this.#running.get(executionId)?.abort.abort(new DOMException(reason, 'AbortError'));
  }

  /** Aborts the executions of a connection that was closed. */
  abandon(link: Link): void {
    for (const entry of this.#running.values()) if (entry.link === link) entry.abort.abort();
    this.calls.abandon(link);
  }

  /** Rejects all further executions. */
  drain(): void {
    this.#isDraining = true;
  }

  /** Resolves when no execution is running. */
  idle(): Promise<void> {
    return new Promise((resolve) => {
      this.#onIdle = resolve;
      if (this.#running.size === 0) resolve();
    });
  }

  async #run(frame: ExecuteFrame, { link, abort: { signal }, credit }: Running): Promise<void> {
    const { executionId, request, streams, tellsBegun } = frame;
    try {
      const { id, version } = request.plugin;
      const { cache, backend } = this.#deps;
      const root =
        (await cache.find(request.plugin)) ?? (await this.#fetchPlugin(link, executionId, request));
      if (!this.#deps.isBusy(id)) link.send({ type: 'progress', executionId, state: 'running' });
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
      this.#report(link, executionId, thrown);
    } finally {
      this.#running.delete(executionId);
      if (this.#running.size === 0) this.#onIdle();
    }
  }

  #refusalOf({ request: { tenantId } }: ExecuteFrame): string | undefined {
    const { namespaceId } = this.#deps;
    if (this.#isDraining) return 'The host is stopping.';
    if (tenantId === namespaceId) return undefined;
    return `The host serves namespace ${namespaceId} only, and received an execution of ${tenantId}.`;
  }

  #fetchPlugin(link: Link, executionId: string, { plugin }: HostExecution): Promise<string> {
    link.send({ type: 'progress', executionId, state: 'preparing' });
    return this.#deps.cache.fetch(plugin);
  }

  #report(link: Link, executionId: string, thrown: unknown): void {
    const { code, message, details } = toPlatformError(thrown);
    if (code === 'INTERNAL_ERROR')
      this.#deps.logger.error(`Execution ${executionId} failed`, { error: thrown });
    const error = { code, message: message.slice(0, MAX_MESSAGE_CHARS) };
    // Frames have a size limit. An error whose details exceed the limit is sent without details.
    if (link.send({ type: 'error', executionId, error: { ...error, details } })) return;
    link.send({ type: 'error', executionId, error });
  }
}

/** Sends the chunks of a handler's stream. Each chunk waits until the gateway has granted credit for the chunk. */
function streamTo(link: Link, executionId: string, credit: StreamCredit): StreamSink {
  return {
    start: (contentType) => void link.send({ type: 'stream', executionId, contentType }),
    async write(piece) {
      await credit.take(piece.length);
      link.send({ type: 'chunk', executionId, data: piece.toString('base64') });
    },
  };
}
