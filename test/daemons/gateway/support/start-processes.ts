import { once } from 'node:events';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import { Agent, request } from 'node:http';
import { connect, type Socket } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { expect, onTestFinished } from 'vitest';
import { PlatformConfig } from '../../../../src/contracts/index.ts';
import type { PeerUrls } from '../../../../src/daemons/process-protocol.ts';
import { systemRandom } from '../../../../src/kit/security/random.ts';
import { systemClock } from '../../../../src/kit/time/clock.ts';
import type { SupervisorEvent } from '../../../../src/supervisor/control-protocol.ts';
import { waitHealthy } from '../../../../src/supervisor/health.ts';
import { spawnService } from '../../../../src/supervisor/service-process.ts';
import { ServiceProcesses } from '../../../../src/supervisor/service-processes.ts';
import type { AnyJson } from '../../../support/any-json.ts';
import { TEST_KEYS, TEST_OPERATOR, tempDir } from '../../../support/daemon.ts';
import { ADMIN_TOKEN } from '../../../support/gateway.ts';

const WEBHOOK_PROJECT = fileURLToPath(new URL('../../../fixtures/projects/webhooks', import.meta.url));
const POLL = { timeout: 20_000, interval: 50 };

export interface GatewayProcesses {
  url: string;
  port: number;
  dataDir: string;
  service: ServiceProcesses;
  events: SupervisorEvent[];
  /** Log records of all processes. */
  logs: Array<Record<string, unknown>>;
  /** Process 1. */
  primaryPid(): number;
  /** The further processes that listen, as the system lists them. */
  siblingPids(): number[];
  /** Resolves when the port is shared by as many processes as were asked for. */
  allUp(): Promise<void>;
  /** A connection of one's own to process 1, and one to a further process. */
  connections(): Promise<{ primary: Connection; sibling: Connection }>;
  /** An open connection to that process, on which nothing was sent yet. */
  socketTo(pid: number): Promise<Socket>;
}

/** The gateway as real processes, under the part of the supervisor that restarts them; stopped when the test ends. */
export async function startProcesses(
  options: {
    gateway?: Record<string, unknown>;
    config?: Record<string, unknown>;
    peers?: PeerUrls;
    listen?: { host: string; port: number };
    projectDir?: string;
  } = {},
): Promise<GatewayProcesses> {
  const dataDir = await tempDir();
  const logs: GatewayProcesses['logs'] = [];
  const config = PlatformConfig.parse({
    ...options.config,
    gateway: {
      processes: 2,
      staticTokens: { [ADMIN_TOKEN]: { hostId: 'operator', namespaceId: 'default' } },
      ...options.gateway,
    },
  });
  let url = '';
  const events: SupervisorEvent[] = [];
  const service = new ServiceProcesses({
    spawn: spawnService,
    waitHealthy,
    name: 'gateway',
    clock: systemClock,
    random: systemRandom(),
    describe: () => ({
      start: {
        config,
        profile: 'development',
        projectDir: options.projectDir ?? WEBHOOK_PROJECT,
        configFile: null,
        dataDir,
        keys: TEST_KEYS,
        operator: TEST_OPERATOR,
        peers: options.peers ?? {},
        listen: options.listen ?? { host: '127.0.0.1', port: 0 },
        logLevel: 'info',
      },
      env: process.env,
    }),
    onLines(lines) {
      // A record that does not parse fails the test: lines of two processes must not mix.
      for (const line of lines.toString().split('\n')) if (line !== '') logs.push(JSON.parse(line));
    },
    count: () => config.gateway.processes,
    onEvent: (event) => events.push(event),
    onListening(bound) {
      url = bound;
    },
    onProcess: () => {},
  });
  onTestFinished(() => service.stop());
  await service.start();
  const port = Number(new URL(url).port);
  const primaryPid = (): number => service.status().pid ?? 0;
  const siblingPids = (): number[] =>
    (service.status().furtherProcesses ?? []).flatMap(({ pid }) =>
      pid !== null && listens(pid, port) ? [pid] : [],
    );
  const gateway: GatewayProcesses = {
    url,
    port,
    dataDir,
    service,
    events,
    logs,
    primaryPid,
    siblingPids,
    async allUp() {
      await expect.poll(siblingPids, POLL).toHaveLength(config.gateway.processes - 1);
    },
    async socketTo(pid) {
      for (let tries = 0; tries < 200; tries++) {
        const socket = connect(port, '127.0.0.1');
        onTestFinished(() => void socket.destroy());
        await once(socket, 'connect');
        // The kernel chose whose it is; that process takes it up in its own time.
        const owner = (): boolean => ownsPeerOf(pid, port, socket.localPort!);
        for (let looks = 0; looks < 20 && !owner(); looks++) await sleep(5);
        if (owner()) return socket;
        socket.destroy();
      }
      throw new Error(`No connection reached the process ${pid}.`);
    },
    async connections() {
      const found = new Map<number, Connection>();
      const wanted = [primaryPid(), ...siblingPids()];
      for (let tries = 0; found.size < wanted.length && tries < 100; tries++) {
        const connection = await connectTo(port);
        const owner = wanted.find((pid) => ownsPeerOf(pid, port, connection.localPort));
        if (owner === undefined || found.has(owner)) connection.close();
        else found.set(owner, connection);
      }
      return { primary: found.get(wanted[0]!)!, sibling: found.get(wanted[1]!)! };
    },
  };
  return gateway;
}

export interface Answer {
  status: number;
  headers: Record<string, string | string[] | undefined>;
  body: AnyJson;
}

/** One kept-alive connection: whatever it is asked, the same process answers. */
export interface Connection {
  localPort: number;
  send(
    method: string,
    path: string,
    options?: { headers?: Record<string, string>; body?: string },
  ): Promise<Answer>;
  close(): void;
}

async function connectTo(port: number): Promise<Connection> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  onTestFinished(() => agent.destroy());
  let localPort = 0;
  const send: Connection['send'] = (method, path, { headers = {}, body } = {}) =>
    new Promise((resolve, reject) => {
      const outgoing = request({ agent, host: '127.0.0.1', port, method, path, headers }, (incoming) => {
        let text = '';
        incoming.setEncoding('utf8').on('data', (part) => {
          text += part;
        });
        // An answer that is cut in the middle.
        incoming.on('error', reject);
        incoming.on('end', () =>
          resolve({ status: incoming.statusCode!, headers: incoming.headers, body: parse(text) }),
        );
      });
      outgoing.on('socket', (socket) => {
        if (socket.connecting) socket.once('connect', () => (localPort = socket.localPort!));
      });
      outgoing.on('error', reject);
      outgoing.end(body);
    });
  await send('GET', '/health');
  return { localPort, send, close: () => agent.destroy() };
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

export function childrenOf(pid: number): number[] {
  try {
    return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number);
  } catch {
    return [];
  }
}

const LISTENING = '0A';

/** Inodes of this machine's TCP sockets with this local port; with `remotePort`, of the connection from there. */
function inodes(port: number, state: (code: string, remotePort: number) => boolean): Set<string> {
  const rows = readFileSync('/proc/net/tcp', 'utf8').trim().split('\n').slice(1);
  const found = new Set<string>();
  for (const row of rows) {
    const [, local = '', remote = '', code = '', , , , , , inode = ''] = row.trim().split(/\s+/);
    const portOf = (address: string): number => Number.parseInt(address.split(':')[1]!, 16);
    if (portOf(local) === port && state(code, portOf(remote))) found.add(inode);
  }
  return found;
}

function holdsOneOf(pid: number, wanted: ReadonlySet<string>): boolean {
  try {
    return readdirSync(`/proc/${pid}/fd`).some((fd) => {
      try {
        return wanted.has(/^socket:\[(\d+)\]$/.exec(readlinkSync(`/proc/${pid}/fd/${fd}`))?.[1] ?? '');
      } catch {
        return false;
      }
    });
  } catch {
    return false;
  }
}

const listens = (pid: number, port: number): boolean =>
  holdsOneOf(
    pid,
    inodes(port, (code) => code === LISTENING),
  );

/** Whether the process holds the other end of our connection from `localPort`. */
const ownsPeerOf = (pid: number, port: number, localPort: number): boolean =>
  holdsOneOf(
    pid,
    inodes(port, (code, remote) => code !== LISTENING && remote === localPort),
  );
