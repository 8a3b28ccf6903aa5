import { type ChildProcess, execFileSync, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { atEnd } from './at-end.ts';
import { tempDir } from './daemon.ts';
import { freePort } from './ports.ts';

export const HAS_HAPROXY = spawnSync('haproxy', ['-v']).status === 0;

/** Title of a skipped test, for machines without HAProxy. */
export const HAPROXY_MISSING = 'HAProxy is not installed: apt install haproxy';

/** Response header that names the server which answered: `gateway0`, `gateway1` and so on. */
export const SERVED_BY = 'x-served-by';

export interface HaproxyOptions {
  /** Whether HAProxy waits long for answers. If not, a gateway that answers nothing gets no requests after a second. */
  isPatient?: boolean;
}

/** Without retries, each request that reaches a closed port fails. */
const configFor = (
  port: number,
  gateways: readonly string[],
  { isPatient = true }: HaproxyOptions,
): string => `
defaults
  mode http
  retries 0
  timeout connect 1s
  timeout client 60s
  timeout server ${isPatient ? '60s' : '30s'}
  timeout check ${isPatient ? '10s' : '1s'}
  timeout tunnel 300s
frontend all
  bind 127.0.0.1:${port}
  default_backend gateways
backend gateways
  balance roundrobin
  http-response set-header ${SERVED_BY} %s
  option httpchk GET /ready
  http-check expect status 200
  default-server check inter 200ms fall 2 rise 2
${gateways.map((url, n) => `  server gateway${n} ${new URL(url).host}`).join('\n')}
`;

/** Starts HAProxy, which sends requests round robin to gateways whose `/ready` answers 200. Resolves with its URL. */
export async function startHaproxy(
  gateways: readonly string[],
  options: HaproxyOptions = {},
): Promise<string> {
  const port = await freePort();
  return run(port, configFor(port, gateways, options));
}

/** Starts HAProxy with the settings of `docker/haproxy.cfg`. Resolves with its URL. */
export async function startShippedHaproxy(gateways: readonly string[]): Promise<string> {
  const port = await freePort();
  const shipped = await readFile(join(packageRoot, 'docker/haproxy.cfg'), 'utf8');
  const lines = shipped
    .replace('bind :4000', `bind 127.0.0.1:${port}`)
    .split('\n')
    .filter((line) => !line.startsWith('  server '));
  const servers = gateways.map((url, n) => `  server gateway${n} ${new URL(url).host}`);
  return run(port, [...lines, `  http-response set-header ${SERVED_BY} %s`, ...servers, ''].join('\n'));
}

async function run(port: number, config: string): Promise<string> {
  const file = join(await tempDir(), 'haproxy.cfg');
  await writeFile(file, config);
  execFileSync('haproxy', ['-c', '-q', '-f', file]);
  const child: ChildProcess = spawn('haproxy', ['-db', '-f', file], { stdio: 'ignore' });
  atEnd(async () => {
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return `http://127.0.0.1:${port}`;
}

/** Resolves when HAProxy sends requests to that many gateways. */
export async function untilServedBy(proxy: string, gateways: number): Promise<void> {
  for (;;) {
    const served = new Set<string | null>();
    for (let n = 0; n < gateways; n++) {
      const response = await fetch(`${proxy}/health`).catch(() => undefined);
      if (response?.status === 200) served.add(response.headers.get(SERVED_BY));
      await response?.arrayBuffer();
    }
    if (served.size === gateways) return;
    await sleep(50);
  }
}
