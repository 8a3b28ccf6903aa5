import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';

/** What HAProxy listens on, and to which ports it passes that. */
export interface Route {
  mode: 'http' | 'tcp';
  port: number;
  servers: readonly number[];
}

const START_TIMEOUT_MS = 10_000;
const POLL_MS = 20;

const httpSection = ({ port, servers }: Route): string => `
listen http${port}
  mode http
  bind 127.0.0.1:${port}
  option httpchk GET /ready
  http-check expect status 200
  http-reuse always
  balance leastconn
  default-server check inter 500ms fall 2 rise 1
${servers.map((server) => `  server s${server} 127.0.0.1:${server}`).join('\n')}`;

/** All connections go to the first server that accepts any; connections to a lost server are closed. */
const tcpSection = ({ port, servers }: Route): string => `
listen tcp${port}
  mode tcp
  bind 127.0.0.1:${port}
  default-server check inter 100ms fall 2 rise 1 on-marked-down shutdown-sessions
${servers.map((server, n) => `  server s${server} 127.0.0.1:${server}${n > 0 ? ' backup' : ''}`).join('\n')}`;

/** Starts HAProxy with one thread, and resolves when each route has a server. Call the result to stop it. */
export async function startHaproxy(folder: string, routes: readonly Route[]): Promise<() => Promise<void>> {
  const file = join(folder, `haproxy-${routes[0]!.port}.cfg`);
  const sections = routes.map((route) => (route.mode === 'http' ? httpSection(route) : tcpSection(route)));
  await writeFile(
    file,
    `global
  nbthread 1
defaults
  retries 0
  timeout connect 2s
  timeout client 1h
  timeout server 1h
  timeout check 2s
${sections.join('\n')}\n`,
  );
  const child = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  const stop = async (): Promise<void> => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  };
  try {
    for (const route of routes) await untilServing(child, route);
  } catch (error) {
    await stop();
    throw error;
  }
  return stop;
}

async function untilServing(child: ChildProcess, { mode, port }: Route): Promise<void> {
  const deadline = performance.now() + START_TIMEOUT_MS;
  while (!(mode === 'http' ? await isReady(port) : await accepts(port))) {
    if (child.exitCode !== null) throw new Error(`haproxy exited with ${child.exitCode}`);
    if (performance.now() > deadline) throw new Error(`haproxy did not serve port ${port} in time`);
    await sleep(POLL_MS);
  }
}

const isReady = (port: number): Promise<boolean> =>
  fetch(`http://127.0.0.1:${port}/ready`).then(
    async (response) => {
      await response.arrayBuffer();
      return response.status === 200;
    },
    () => false,
  );

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
