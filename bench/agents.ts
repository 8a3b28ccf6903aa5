import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { GatewayServices } from '../src/daemons/gateway/services.ts';
import { createHostKeys } from '../src/kit/security/host-proof.ts';
import { systemRandom } from '../src/kit/security/random.ts';
import { systemClock } from '../src/kit/time/clock.ts';
import { startBenchGateway } from './support/bench-gateway.ts';
import { type BenchResult, round } from './support/result.ts';

const AGENT_COUNT = 5000;
const BEAT_ROUNDS = 5;
const HEARTBEATS_PER_SECOND = AGENT_COUNT / 15;

/** Measures the cost of idle agents for the gateway: memory, and CPU time per heartbeat. */
export async function run(): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  const daemon = await startBenchGateway({ folder });
  try {
    return await measure(daemon.url, daemon.services, folder);
  } finally {
    await daemon.close();
    await rm(folder, { recursive: true, force: true });
  }
}

async function measure(url: string, services: GatewayServices, folder: string): Promise<BenchResult> {
  const file = join(folder, 'hosts.json');
  await writeFile(file, JSON.stringify(await createHosts(services)));
  const before = residentMb();
  const startedAt = performance.now();
  const script = fileURLToPath(new URL('support/idle-agents.ts', import.meta.url));
  const child = spawn(process.execPath, [script, url, file], { stdio: ['pipe', 'pipe', 'inherit'] });
  try {
    await once(child.stdout, 'data');
    const connectMs = performance.now() - startedAt;
    const after = residentMb();
    const cpuBefore = process.cpuUsage();
    const beatsAt = performance.now();
    for (let beat = 0; beat < BEAT_ROUNDS; beat++) {
      child.stdin.write('beat\n');
      await once(child.stdout, 'data');
    }
    const beatMs = (performance.now() - beatsAt) / BEAT_ROUNDS;
    const { user, system } = process.cpuUsage(cpuBefore);
    const microsPerBeat = (user + system) / (BEAT_ROUNDS * AGENT_COUNT);
    return {
      name: 'Idle agents',
      rows: [
        {
          agents: services.hostSessions.connected,
          'connect all, s': round(connectMs / 1000, 1),
          'KB an agent': round(((after - before) * 1024) / AGENT_COUNT, 1),
          'gateway, MB': round(after),
          'beat of all, ms': round(beatMs),
          'CPU a beat, us': round(microsPerBeat, 1),
          'CPU at 15 s beats, %': round((microsPerBeat * HEARTBEATS_PER_SECOND) / 10_000, 2),
        },
      ],
      note: 'Each agent proves its key when it connects. The agents run in a separate process on the same machine.',
    };
  } finally {
    child.kill('SIGKILL');
  }
}

async function createHosts({ hostStore, jwts }: GatewayServices) {
  const random = systemRandom();
  return Promise.all(
    Array.from({ length: AGENT_COUNT }, async () => {
      const keys = createHostKeys();
      const hostId = `host_${random.uuid()}`;
      const common = {
        clientId: `client_${hostId}`,
        hostId,
        namespaceId: 'default',
        name: 'bench',
        createdAt: systemClock.now(),
        revokedAt: null,
      };
      const offline = { sessionId: null, connectedAt: null, lastSeenAt: null };
      const host = {
        ...common,
        ...offline,
        publicKey: keys.publicKey,
        capabilities: [],
        labels: {},
        metadata: {},
      };
      await hostStore.register(host, { ...common, secretHash: '' });
      const { token } = await jwts.mint({ hostId, namespaceId: 'default', typ: 'access', ttlSeconds: 3600 });
      return { hostId, token, keys };
    }),
  );
}

function residentMb(): number {
  globalThis.gc?.();
  return process.memoryUsage.rss() / 1024 ** 2;
}

if (import.meta.main) {
  const { name, rows, note } = await run();
  console.log(name);
  console.table(rows);
  console.log(note);
  process.exit(0);
}
