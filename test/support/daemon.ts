import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type CallInput,
  type Endpoint,
  PlatformConfig,
  type ReplyOf,
  type ServiceName,
} from '../../src/contracts/index.ts';
import type { DaemonDefinition, DaemonServices } from '../../src/daemons/define-daemon.ts';
import { createPeers, type Peers } from '../../src/daemons/peers.ts';
import type { OperatorCredentials } from '../../src/daemons/process-protocol.ts';
import { type RunningDaemon, startDaemon } from '../../src/daemons/run-daemon.ts';
import { createClient, serviceHeaders } from '../../src/http/index.ts';
import type { PlatformError } from '../../src/kit/errors/errors.ts';
import type { KeyMaterial } from '../../src/kit/security/keys.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import type { OtlpTarget } from '../../src/kit/telemetry/tracer.ts';
import { type ManualClock, manualClock } from '../../src/kit/time/clock.ts';
import { atEnd } from './at-end.ts';
import { placeEmptyDatabase } from './empty-database.ts';

/** A folder of one's own that goes with the test. */
export async function tempDir(): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-test-'));
  atEnd(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  return folder;
}

export const TEST_KEYS: KeyMaterial = {
  jwtSecret: 'a-test-secret-of-more-than-thirty-two-bytes',
  previousJwtSecret: null,
  internalSecret: 'an-internal-test-secret-of-enough-length',
  masterKey: Buffer.alloc(32, 7).toString('base64url'),
};

export const TEST_OPERATOR: OperatorCredentials = {
  clientId: 'client_operator',
  clientSecret: 'operator-secret',
  hostId: 'operator',
  namespaceId: 'default',
};

/** Log lines of a test's daemon, parsed. */
export interface LogCapture {
  lines: Array<Record<string, unknown>>;
  write(line: string): void;
  flush(): void;
}

export function captureLogs(): LogCapture {
  const lines: LogCapture['lines'] = [];
  return { lines, write: (line) => lines.push(JSON.parse(line)), flush: () => {} };
}

export interface TestDaemonOptions {
  /** Any part of the config file; the rest is default. */
  config?: Record<string, unknown>;
  profile?: string;
  /** A daemon started again on the folder of an earlier one. */
  dataDir?: string;
  projectDir?: string;
  configFile?: string;
  clock?: ManualClock;
  keys?: Partial<KeyMaterial>;
  operator?: OperatorCredentials;
  peers?: Peers;
  /** Services that other nodes run. Set if this node has a supervisor. */
  elsewhere?: readonly ServiceName[];
  /** Where secrets that the config names are found. */
  env?: Record<string, string>;
  otlp?: OtlpTarget;
  /** Runs beside others on the same `dataDir`; each needs an instance of its own in `env`. */
  sharesStore?: boolean;
  onFatal?: (error: PlatformError) => void;
  /** Default: a free port of 127.0.0.1. */
  listen?: { host: string; port: number };
}

export interface TestDaemon<Services> extends RunningDaemon<Services> {
  clock: ManualClock;
  dataDir: string;
  logs: LogCapture;
  /** Calls an endpoint as another daemon would, for tenant `default` unless told. */
  call<E extends Endpoint>(endpoint: E, input?: CallInput<E>, tenant?: string): Promise<ReplyOf<E>>;
  fetch(path: string, init?: RequestInit): Promise<Response>;
}

/** Starts the real daemon on a temporary folder and a free port, with a clock that stands still; closed when the test ends. */
export async function startTestDaemon<Services extends DaemonServices>(
  definition: DaemonDefinition<Services>,
  options: TestDaemonOptions = {},
): Promise<TestDaemon<Services>> {
  const clock = options.clock ?? manualClock();
  const dataDir = options.dataDir ?? (await tempDir());
  if (!options.dataDir) await placeEmptyDatabase(definition.name, dataDir);
  const logs = captureLogs();
  const keys = { ...TEST_KEYS, ...options.keys };
  const daemon = await startDaemon(definition, {
    config: PlatformConfig.parse(options.config ?? {}),
    profile: options.profile ?? 'development',
    projectDir: options.projectDir ?? dataDir,
    configFile: options.configFile ?? null,
    dataDir,
    keys,
    operator: options.operator ?? TEST_OPERATOR,
    clock,
    random: systemRandom(() => clock.now()),
    peers: options.peers ?? createPeers(),
    ...(options.elsewhere ? { elsewhere: options.elsewhere } : {}),
    output: logs,
    env: options.env ?? {},
    logLevel: 'debug',
    listen: options.listen ?? { host: '127.0.0.1', port: 0 },
    otlp: options.otlp,
    sharesStore: options.sharesStore,
    onFatal: options.onFatal,
  });
  let closing: Promise<void> | undefined;
  const close = (): Promise<void> => {
    closing ??= daemon.close();
    return closing;
  };
  atEnd(close);
  const client = createClient({ url: daemon.url, peer: daemon.name });
  return {
    ...daemon,
    close,
    clock,
    dataDir,
    logs,
    call: (endpoint, input, tenant = 'default') =>
      client.call(endpoint, input, { headers: serviceHeaders(keys.internalSecret, { namespaceId: tenant }) }),
    fetch: (path, init) => fetch(daemon.url + path, init),
  };
}
