import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, onTestFinished } from 'vitest';
import { type ExecutionRequest, Permissions, PlatformConfig } from '../../src/contracts/index.ts';
import type { PlatformError } from '../../src/kit/errors/errors.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { createLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import {
  createPlatformServices,
  type PlatformServices,
  type StateAccess,
  type StateScope,
  sandboxInForce,
  WorkerBackend,
  type WorkerBackendDeps,
} from '../../src/plugins/index.ts';
import { sqliteStateStore } from '../../src/store/sqlite/index.ts';
import { captureLogs, type LogCapture } from '../support/daemon.ts';
import { FIXTURES } from './fixtures.ts';

export { FIXTURES };

/** Why the tests under bubblewrap are skipped here; undefined when it works. */
const bwrapMissing: string | undefined = (await sandboxInForce('auto')).reason;

export type Sandbox = 'permission' | 'bwrap';
export const SANDBOXES: Sandbox[] = bwrapMissing === undefined ? ['permission', 'bwrap'] : ['permission'];
if (bwrapMissing !== undefined) console.warn(`Tests under bubblewrap are skipped: ${bwrapMissing}`);

const random = systemRandom();

export interface CallOptions extends Partial<Omit<ExecutionRequest, 'plugin' | 'permissions'>> {
  plugin?: string;
  root?: string;
  permissions?: unknown;
}

/** A request for a fixture plugin's handler. */
export function requestFor(handler: string, options: CallOptions = {}): ExecutionRequest {
  const { plugin = 'attacker', root = join(FIXTURES, plugin), permissions = {}, ...rest } = options;
  return {
    executionId: random.uuid(),
    plugin: { id: plugin, version: '1.0.0', root },
    handler,
    host: 'cli',
    hostContext: {},
    input: undefined,
    params: {},
    user: null,
    tenantId: 'default',
    requestId: 'request-1',
    traceId: 'trace-1',
    config: {},
    schemas: {},
    timeoutMs: 10_000,
    ...rest,
    permissions: Permissions.parse(permissions),
  };
}

/** Registers what runs when a test, or a group of tests, has ended. */
type Cleanup = (close: () => Promise<void>) => void;

async function folderUntil(cleanup: Cleanup): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-test-'));
  cleanup(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

/** `ctx.state` on the real store, without the daemon between. */
export async function storeState(cleanup: Cleanup = onTestFinished): Promise<StateAccess> {
  const store = await sqliteStateStore({
    dataDir: await folderUntil(cleanup),
    clock: systemClock,
    logger: createLogger({ serviceId: 'test', output: captureLogs(), clock: systemClock }),
  });
  cleanup(() => store.close());
  const scope = ({ tenantId, namespace }: StateScope) => `${tenantId}/${namespace}`;
  const { entries } = store;
  return {
    get: (at, key) => entries.get(scope(at), key),
    set: (at, key, value, ttlMs) => entries.set(scope(at), key, value, ttlMs),
    setIfAbsent: (at, key, value, ttlMs) => entries.setIfAbsent(scope(at), key, value, ttlMs),
    delete: (at, key) => entries.delete(scope(at), key),
    increment: async (at, key, by, windowMs) =>
      (await entries.increment(scope(at), key, windowMs === undefined ? { by } : { by, windowMs })).value,
    async list(at, { prefix, limit }) {
      return { items: await entries.scan(scope(at), { prefix, limit }), nextCursor: null };
    },
  };
}

export interface TestBackend {
  backend: WorkerBackend;
  logs: LogCapture;
  dataDir: string;
  /** Runs a fixture's handler and returns its `result`. */
  call(handler: string, options?: CallOptions): Promise<unknown>;
}

export interface TestBackendOptions extends Partial<Omit<WorkerBackendDeps, 'config'>> {
  config?: Partial<WorkerBackendDeps['config']>;
  sandbox?: Sandbox;
}

/**
 * Backends by sandbox that the tests of a file share, so that most of them meet a warm runner. Called while the file is
 * collected; for tests whose subject is neither the start nor the end of a process.
 */
export function sharedBackends(
  options: TestBackendOptions = {},
): (sandbox?: Sandbox) => Promise<TestBackend> {
  const started = new Map<Sandbox, Promise<TestBackend>>();
  const closers: Array<() => Promise<void>> = [];
  afterAll(async () => {
    for (const close of closers.reverse()) await close();
  });
  return (sandbox = 'permission') => {
    const backend =
      started.get(sandbox) ?? startBackend({ ...options, sandbox }, (close) => void closers.push(close));
    started.set(sandbox, backend);
    return backend;
  };
}

/** A worker backend of its own, closed when the test ends. */
export async function startBackend(
  options: TestBackendOptions = {},
  cleanup: Cleanup = onTestFinished,
): Promise<TestBackend> {
  const { config, sandbox = 'permission', ...deps } = options;
  const logs = captureLogs();
  const logger = createLogger({ serviceId: 'test', output: logs, clock: systemClock, level: 'debug' });
  const dataDir = deps.dataDir ?? (await folderUntil(cleanup));
  const services: PlatformServices =
    deps.services ??
    createPlatformServices({ state: await storeState(cleanup), logger, clock: deps.clock ?? systemClock });
  const backend = new WorkerBackend({
    logger,
    clock: systemClock,
    dataDir,
    ...deps,
    services,
    config: { ...PlatformConfig.parse({}).execution.worker, sandbox, ...config },
  });
  cleanup(() => backend.close());
  return {
    backend,
    logs,
    dataDir,
    call: async (handler, callOptions) => (await backend.run(requestFor(handler, callOptions))).result,
  };
}

/** What a call that must fail failed with. */
export async function failureOf(call: Promise<unknown>): Promise<PlatformError> {
  const outcome = await call.then(
    (result) => ({ result }),
    (error: PlatformError) => ({ error }),
  );
  if ('error' in outcome) return outcome.error;
  throw new Error(
    `The call was expected to fail, but returned ${JSON.stringify(outcome.result)?.slice(0, 200)}`,
  );
}

/** Waits until a claim holds, for what happens in other processes. */
export async function eventually(claim: () => boolean, timeoutMs = 5000): Promise<void> {
  const until = Date.now() + timeoutMs;
  while (!claim()) {
    if (Date.now() > until) throw new Error(`not true within ${timeoutMs} ms: ${claim}`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
