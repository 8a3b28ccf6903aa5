import { type ChildProcess, spawn } from 'node:child_process';
import type { AddressInfo } from 'node:net';
import { connect as connectTcp, createServer, type Socket } from 'node:net';
import { fileURLToPath } from 'node:url';
import { onTestFinished } from 'vitest';
import { type AgentIdentity, type AgentOptions, startAgent, writeIdentity } from '../../src/agent/index.ts';
import type { CommandResult } from '../../src/contracts/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { state } from '../../src/daemons/state/index.ts';
import { entryFile } from '../../src/kit/files/paths.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { createLogger } from '../../src/kit/telemetry/logger.ts';
import { systemClock } from '../../src/kit/time/clock.ts';
import { atEnd } from '../support/at-end.ts';
import {
  captureLogs,
  startTestDaemon,
  TEST_KEYS,
  type TestDaemonOptions,
  tempDir,
} from '../support/daemon.ts';
import { ADMIN_TOKEN, startGateway, type TestGateway } from '../support/gateway.ts';
import { type RegisteredHost, registerTestHost } from '../support/host-agent.ts';

export const PROJECT = fileURLToPath(new URL('../fixtures/projects/hosts', import.meta.url));
export const ON_HOSTS = { execution: { plugins: { '@acme/tools': { backend: 'host' } } } };

/** A gateway whose fixture plugin runs on hosts, with a real state daemon beside it. */
export async function startHostGateway(options: TestDaemonOptions = {}): Promise<TestGateway> {
  const stateDaemon = await startTestDaemon(state);
  return startGateway({
    projectDir: PROJECT,
    peers: createPeers({ state: stateDaemon.url }),
    ...options,
    config: { ...ON_HOSTS, pluginConfig: { '@acme/tools': { level: 3 } }, ...options.config },
  });
}

export interface DispatchReply {
  status: number;
  body: { executionId: string; result: CommandResult; error: { code: string; message: string } };
}

/** Runs a handler of the fixture plugin as another daemon would. */
export async function dispatch(
  gateway: { url: string },
  handler: string,
  body: Record<string, unknown> = {},
): Promise<DispatchReply> {
  const response = await fetch(`${gateway.url}/internal/dispatch`, {
    method: 'POST',
    headers: { 'x-internal-secret': TEST_KEYS.internalSecret, 'content-type': 'application/json' },
    body: JSON.stringify({ plugin: { id: '@acme/tools' }, handler: `handlers.js#${handler}`, ...body }),
  });
  return { status: response.status, body: (await response.json()) as DispatchReply['body'] };
}

export function identityOf(host: RegisteredHost, gatewayUrl: string): AgentIdentity {
  const { hostId, namespaceId, clientId, clientSecret, keys } = host;
  return {
    hostId,
    namespaceId,
    clientId,
    clientSecret,
    keys,
    gateway: gatewayUrl,
    name: 'machine',
    capabilities: [],
  };
}

export interface TestAgent {
  host: RegisteredHost;
  home: string;
  logs: ReturnType<typeof captureLogs>;
  agent: Awaited<ReturnType<typeof startAgent>>;
  /** How often it was welcomed. */
  welcomes(): number;
  ended: Promise<unknown>;
}

/** A real agent in this process, connected; stopped when the test ends. */
export async function startTestAgent(
  gateway: TestGateway,
  options: Partial<AgentOptions> & { url?: string; host?: RegisteredHost } = {},
): Promise<TestAgent> {
  const { url = gateway.url, host = await registerTestHost(gateway, ADMIN_TOKEN), ...rest } = options;
  const home = rest.home ?? (await tempDir());
  const logs = captureLogs();
  let welcomes = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  const agent = await startAgent({
    identity: identityOf(host, url),
    pluginFolders: [],
    worker: { sandbox: 'permission' },
    drainMs: 5000,
    clock: systemClock,
    random: systemRandom(),
    logger: createLogger({ serviceId: 'agent', output: logs, clock: systemClock, level: 'debug' }),
    ...rest,
    home,
    onConnected() {
      welcomes++;
      resolve();
    },
  });
  const ended = agent.finished.then(
    () => undefined,
    (error) => error,
  );
  atEnd(async () => {
    agent.stop();
    await ended;
  });
  await Promise.race([promise, ended]);
  return { host, home, logs, agent, welcomes: () => welcomes, ended };
}

/** `svc agent run` as a process of its own; `within`: the command that starts it somewhere else. */
export async function spawnAgent(
  gateway: Pick<TestGateway, 'url'>,
  host: RegisteredHost,
  within: readonly string[] = [],
  { home: given, onOutput = () => {} }: { home?: string; onOutput?: (text: string) => void } = {},
): Promise<ChildProcess> {
  const home = given ?? (await tempDir());
  await writeIdentity(home, identityOf(host, gateway.url));
  const run = ['agent', 'run', '--home', home, '--sandbox', 'permission'];
  const [program, ...args] = [...within, process.execPath, entryFile('cli'), ...run];
  const child = spawn(program!, args, { stdio: ['ignore', 'pipe', 'pipe'] });
  onTestFinished(() => void child.kill('SIGKILL'));
  child.stderr!.on('data', (chunk: Buffer) => {
    onOutput(String(chunk));
    process.stderr.write(chunk);
  });
  let text = '';
  await new Promise<void>((resolve, reject) => {
    child.stdout!.on('data', (chunk) => {
      text += chunk;
      onOutput(String(chunk));
      if (text.includes('Connected to')) resolve();
    });
    child.on('exit', (code) => reject(new Error(`the agent ended with ${code}: ${text}`)));
  });
  return child;
}

/** What a proxy that holds its clients lets through. */
const HELD_BYTES = 128 * 1024;

/** A TCP proxy that can stall: connections stay open and nothing passes. */
export async function startStallingProxy(targetUrl: string) {
  const target = new URL(targetUrl);
  const sockets = new Set<Socket>();
  let stalled = false;
  let isHolding = false;
  /** From clients, since it holds. */
  let passed = 0;
  const server = createServer((client) => {
    const upstream = connectTcp(Number(target.port), target.hostname);
    for (const [from, to] of [
      [client, upstream],
      [upstream, client],
    ] as const) {
      sockets.add(from);
      from.on('error', () => {});
      from.on('data', (chunk) => {
        if (stalled) return;
        to.write(chunk);
        if (from !== client) return;
        passed += chunk.length;
        if (isHolding && passed >= HELD_BYTES) client.pause();
      });
      // A half-open connection: the end of one side is kept from the other while stalled.
      from.on('close', () => {
        if (!stalled) to.destroy();
      });
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    stall: () => {
      stalled = true;
    },
    resume: () => {
      stalled = false;
    },
    drop: () => {
      for (const socket of sockets) socket.destroy();
    },
    /** From now on little of what clients send is let through; the rest waits with them. */
    hold: () => {
      isHolding = true;
      passed = 0;
    },
    held: () => passed,
    release: () => {
      isHolding = false;
      for (const socket of sockets) socket.resume();
    },
  };
}
