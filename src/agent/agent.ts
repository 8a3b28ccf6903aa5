import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { HOST_CLOSE, type HostPlugin, PlatformConfig } from '../contracts/index.ts';
import { messageOf, PlatformError } from '../kit/errors/errors.ts';
import type { Random } from '../kit/security/random.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import type { Clock } from '../kit/time/clock.ts';
import { seconds } from '../kit/time/duration.ts';
import {
  type LoadedPlugin,
  loadPlugins,
  type PlatformServices,
  packageIntegrityOf,
  userSecrets,
  WorkerBackend,
} from '../plugins/index.ts';
import { Connection, type ConnectionEnd } from './connection.ts';
import { AgentExecutions } from './executions.ts';
import type { AgentIdentity } from './identity.ts';
import { PluginCache } from './plugin-cache.ts';
import { type AgentTokens, createAgentTokens } from './tokens.ts';

const FIRST_RETRY_MS = 500;
const MAX_RETRY_MS = seconds(30);
/** Minimum duration of a connection, in ms, after which the reconnect backoff is reset. */
const STABLE_MS = seconds(10);
const RENEW_RETRY_MS = seconds(15);

type WorkerSettings = PlatformConfig['execution']['worker'];

export interface AgentOptions {
  identity: AgentIdentity;
  home: string;
  /** Folders of plugins installed on this machine. */
  pluginFolders: string[];
  worker: Partial<WorkerSettings>;
  /** Time limit for running executions to finish after `stop`, in ms. */
  drainMs: number;
  clock: Clock;
  random: Random;
  logger: Logger;
  /** Callback that is called whenever the gateway has accepted the connection. */
  onConnected?(sessionId: string): void;
}

interface AgentParts {
  tokens: AgentTokens;
  executions: AgentExecutions;
  backend: WorkerBackend;
  announced: HostPlugin[];
}

/** Starts the agent of this host, which runs plugin handlers for the gateway. @spec docs/operations.md "Agents" */
export async function startAgent(options: AgentOptions): Promise<Agent> {
  const { identity, home, clock, logger } = options;
  await mkdir(home, { recursive: true, mode: 0o700 });
  const local = await loadLocal(options);
  const tokens = createAgentTokens(identity, clock);
  const cache = new PluginCache({
    folder: join(home, 'plugins'),
    gateway: identity.gateway,
    local,
    token: async () => (await tokens.current()).accessToken,
    logger,
  });
  const config = { ...PlatformConfig.parse({}).execution.worker, ...options.worker };
  // `PlatformCalls.offer` adds the services that the gateway lists in its `welcome` frame.
  const services: PlatformServices = {};
  const backend = new WorkerBackend({
    ...{ config, services, logger, clock, dataDir: home },
    secrets: userSecrets(process.env),
  });
  const executions = new AgentExecutions({
    namespaceId: identity.namespaceId,
    ...{ cache, backend, services, logger },
    isBusy: (id) =>
      backend
        .stats()
        .some(({ pluginId, running, slots, queued }) => pluginId === id && (queued > 0 || running >= slots)),
  });
  return new Agent(options, { tokens, executions, backend, announced: await announce(local) });
}

/** Keeps a connection to the gateway open. Reconnects with backoff. */
export class Agent {
  /**
   * Resolves after `stop` was called and the agent has shut down. Rejects if the gateway revoked this host, or if
   * another agent connected with the same identity.
   */
  readonly finished: Promise<void>;
  readonly #options: AgentOptions;
  readonly #parts: AgentParts;
  readonly #stopping = new AbortController();
  #connection: Connection | undefined;
  #draining: Promise<void> | undefined;

  constructor(options: AgentOptions, parts: AgentParts) {
    this.#options = options;
    this.#parts = parts;
    this.finished = this.#run().finally(async () => {
      await this.#draining;
      await parts.backend.close();
    });
  }

  /** Stops accepting executions. Disconnects once the running executions have finished or `drainMs` has passed. */
  stop(): void {
    this.#draining ??= this.#drain();
  }

  async #run(): Promise<void> {
    const { identity, clock, random, logger } = this.#options;
    const { signal } = this.#stopping;
    let failures = 0;
    while (!signal.aborted) {
      const startedAt = clock.monotonic();
      const end = await this.#connectOnce().catch(failedToConnect);
      if (signal.aborted) return;
      const refusal = finalRefusal(end, identity);
      if (refusal) throw refusal;
      // The gateway might have rejected the token, so the next attempt requests a new token.
      if (end.status === 401 || end.code === HOST_CLOSE.unauthenticated) this.#parts.tokens.forget();
      failures = end.wasOpen && clock.monotonic() - startedAt >= STABLE_MS ? 0 : failures + 1;
      const waitMs = retryMs(failures, random);
      logger.warn(
        `Not connected to ${identity.gateway}: ${end.reason || `code ${end.code}`}; retrying in ${Math.round(waitMs)} ms`,
        { meta: { code: end.code, failures } },
      );
      await wait(clock, waitMs, signal);
    }
  }

  async #connectOnce(): Promise<ConnectionEnd> {
    const { identity, clock, logger } = this.#options;
    const { tokens, executions, announced } = this.#parts;
    const { accessToken } = await tokens.current();
    const connection = new Connection({
      ...{ identity, accessToken, executions, clock, logger },
      plugins: announced,
      onWelcome: (sessionId) => {
        logger.info(`Connected to ${identity.gateway} as ${identity.hostId}`, { meta: { sessionId } });
        this.#options.onConnected?.(sessionId);
      },
    });
    this.#connection = connection;
    const stopRenewing = keepRenewed(tokens, connection, this.#options);
    const end = await connection.ended;
    stopRenewing();
    this.#connection = undefined;
    return end;
  }

  async #drain(): Promise<void> {
    const { clock, logger, drainMs } = this.#options;
    const { executions } = this.#parts;
    executions.drain();
    this.#connection?.drain();
    if (executions.running > 0) logger.info(`Stopping: ${executions.running} executions in flight`);
    const deadline = new AbortController();
    // Large results might still be in the send queue after their executions have finished.
    const done = executions.idle().then(() => this.#connection?.flushed());
    await Promise.race([done, wait(clock, drainMs, deadline.signal)]);
    deadline.abort();
    this.#stopping.abort();
    const last = this.#connection;
    last?.close();
    await last?.ended;
  }
}

/** Loads the plugins from `pluginFolders`. Throws if a plugin is invalid, so that the agent does not start. */
async function loadLocal({ pluginFolders, home }: AgentOptions): Promise<readonly LoadedPlugin[]> {
  if (pluginFolders.length === 0) return [];
  const { plugins, broken } = await loadPlugins({ projectDir: home, patterns: pluginFolders });
  const [first] = broken;
  if (!first) return plugins;
  throw new PlatformError(
    'INVALID_MANIFEST',
    `The plugin in ${first.folder} is invalid: ${first.faults[0]?.message}`,
    {
      details: { folder: first.folder, faults: first.faults },
    },
  );
}

function announce(local: readonly LoadedPlugin[]): Promise<HostPlugin[]> {
  return Promise.all(
    local.map(async ({ id, version, root }) => ({
      id,
      version,
      integrity: await packageIntegrityOf(root).catch(() => null),
    })),
  );
}

/** Renews the token five minutes before the expiry, without reconnecting. Retries if a renewal fails. */
function keepRenewed(
  tokens: AgentTokens,
  connection: Connection,
  { clock, logger }: AgentOptions,
): () => void {
  let isOver = false;
  let stop = clock.after(tokens.renewInMs(), renew);
  function renew(): void {
    tokens.renew().then(
      ({ accessToken }) => {
        if (isOver) return;
        connection.renew(accessToken);
        stop = clock.after(tokens.renewInMs(), renew);
      },
      (error) => {
        if (isOver) return;
        logger.warn(`Token renewal failed: ${messageOf(error)}`);
        stop = clock.after(RENEW_RETRY_MS, renew);
      },
    );
  }
  return () => {
    isOver = true;
    stop();
  };
}

/**
 * Converts a failed token request to a `ConnectionEnd`, so that the agent retries. Throws if the gateway rejected the
 * credentials.
 */
function failedToConnect(thrown: unknown): ConnectionEnd {
  if (thrown instanceof PlatformError && thrown.code === 'UNAUTHORIZED') throw refused(thrown);
  return { code: 1006, reason: messageOf(thrown), wasOpen: false };
}

function refused(cause?: unknown): PlatformError {
  return new PlatformError(
    'UNAUTHORIZED',
    'The gateway no longer accepts this host: it was revoked, or its registration was deleted. Register it again with `svc agent register`.',
    cause === undefined ? {} : { cause },
  );
}

/** Returns an error if the agent must not reconnect, otherwise undefined. */
function finalRefusal({ code, status }: ConnectionEnd, { hostId }: AgentIdentity): PlatformError | undefined {
  if (code === HOST_CLOSE.revoked || status === 403) return refused();
  if (code !== HOST_CLOSE.replaced) return undefined;
  return new PlatformError(
    'CONFLICT',
    `Another agent connected as ${hostId}, so this one stops; otherwise they would disconnect each other forever. Register each machine separately.`,
    { details: { hostId } },
  );
}

/**
 * Returns a reconnect delay with exponential backoff and jitter, in ms. Jitter keeps agents from reconnecting at the
 * same time after an outage.
 */
function retryMs(failures: number, random: Random): number {
  const ceiling = Math.min(MAX_RETRY_MS, FIRST_RETRY_MS * 2 ** Math.min(failures, 16));
  return FIRST_RETRY_MS / 5 + random.fraction() * ceiling;
}

function wait(clock: Clock, ms: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      stop();
      signal.removeEventListener('abort', end);
      resolve();
    };
    const stop = clock.after(ms, end);
    signal.addEventListener('abort', end);
  });
}
