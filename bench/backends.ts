import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { registerAgent, startAgent } from '../src/agent/index.ts';
import { inviteHost } from '../src/contracts/index.ts';
import type { GatewayServices } from '../src/daemons/gateway/services.ts';
import type { RunningDaemon } from '../src/daemons/run-daemon.ts';
import { createClient } from '../src/http/index.ts';
import { systemRandom } from '../src/kit/security/random.ts';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import { engineMissing, startEngine } from '../test/plugins/engine.ts';
import { startBenchGateway } from './support/bench-gateway.ts';
import { type BenchResult, quantile, round } from './support/result.ts';

type Backend = 'worker' | 'host' | 'container';

const CALLS: Record<Backend, number> = { worker: 2000, host: 2000, container: 15 };
const TOKEN = 'bench-admin-token';
const PLUGIN = 'bench';
const INPUT = { text: 'x'.repeat(2000) };

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: PLUGIN,
  version: '1.0.0',
  commands: [{ id: 'echo', handler: 'h.js#echo' }],
};

/** Measures sequential calls of one handler from inside the gateway, by backend. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const plugin = join(folder, 'plugins', PLUGIN);
  await mkdir(plugin, { recursive: true });
  await writeFile(join(plugin, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(plugin, 'package.json'), '{"type": "module"}');
  await writeFile(join(plugin, 'h.js'), 'export const echo = (_ctx, input) => input;');
  const engine = engineMissing === undefined ? await startEngine() : undefined;
  const rows: BenchResult['rows'] = [];
  try {
    rows.push(await withGateway(folder, 'worker', {}, (daemon) => measure(daemon, 'worker')));
    rows.push(await withGateway(folder, 'host', {}, (daemon) => withAgent(daemon, folder)));
    if (engine) {
      const container = { socket: engine.socket };
      rows.push(
        await withGateway(folder, 'container', { container }, (daemon) => measure(daemon, 'container')),
      );
    }
  } finally {
    await engine?.stop();
    await rm(folder, { recursive: true, force: true });
  }
  const note =
    'Input 2 KB, p50 and p99 in ms. worker and host: warm processes; host: an agent on loopback; container: a new container per call (Podman, runc).';
  return {
    name: 'Handler calls by backend',
    rows,
    note: engineMissing ? `${note} No containers: ${engineMissing}.` : note,
  };
}

async function withGateway<Result>(
  folder: string,
  backend: Backend,
  execution: object,
  work: (daemon: RunningDaemon<GatewayServices>) => Promise<Result>,
): Promise<Result> {
  const daemon = await startBenchGateway({
    folder,
    dataDir: join(folder, `.svc-${backend}`),
    config: { execution: { default: backend, ...execution } },
    token: TOKEN,
  });
  try {
    return await work(daemon);
  } finally {
    await daemon.close();
  }
}

async function withAgent(daemon: RunningDaemon<GatewayServices>, folder: string) {
  const client = createClient({ url: daemon.url, peer: 'gateway' });
  const headers = { authorization: `Bearer ${TOKEN}` };
  const { token } = await client.call(inviteHost, { body: {} }, { headers });
  const home = join(folder, 'agent');
  const registration = { gateway: daemon.url, token, name: 'bench', labels: {}, capabilities: [], home };
  const identity = await registerAgent(registration);
  const connected = Promise.withResolvers<string>();
  const agent = await startAgent({
    identity,
    home,
    pluginFolders: [],
    worker: {},
    drainMs: 1000,
    clock: systemClock,
    random: systemRandom(),
    logger: silentLogger,
    onConnected: connected.resolve,
  });
  try {
    await connected.promise;
    return await measure(daemon, 'host');
  } finally {
    agent.stop();
    await agent.finished;
  }
}

async function measure({ services }: RunningDaemon<GatewayServices>, backend: Backend) {
  const call = () =>
    services.plugins.execute({
      plugin: PLUGIN,
      handler: 'h.js#echo',
      host: 'cli',
      hostContext: {},
      input: INPUT,
      params: {},
      user: null,
      tenantId: 'default',
      requestId: 'bench',
      traceId: 'bench',
    });
  const startedAt = performance.now();
  await call();
  const firstMs = performance.now() - startedAt;
  const times: number[] = [];
  for (let i = 0; i < CALLS[backend]; i++) {
    const before = performance.now();
    await call();
    times.push(performance.now() - before);
  }
  return {
    backend,
    'first call': round(firstMs),
    p50: round(quantile(times, 0.5), 2),
    p99: round(quantile(times, 0.99), 2),
  };
}

if (import.meta.main) {
  const { name, rows, note } = await run();
  console.log(name);
  console.table(rows);
  console.log(note);
  process.exit(0);
}
