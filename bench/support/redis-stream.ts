import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { LeasedQueue } from './leased-queue.ts';

const STREAM = 'bench';
const GROUP = 'programs';
const FILL_BATCH = 1000;

/** A stream with a consumer group on a Redis server of its own, which syncs every write. Acknowledged entries stay. */
export async function redisStream(port: number, body: string): Promise<LeasedQueue> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-redis-'));
  const settings = ['--port', String(port), '--bind', '127.0.0.1', '--save', ''];
  const server = spawn('redis-server', [...settings, '--appendonly', 'yes', '--appendfsync', 'always'], {
    cwd: folder,
    stdio: 'ignore',
  });
  const clients = new Map<number, Redis>();
  const clientOf = (program: number): Redis => {
    const client = clients.get(program) ?? new Redis({ port, retryStrategy: () => 50 });
    clients.set(program, client);
    return client;
  };
  await clientOf(-1).xgroup('CREATE', STREAM, GROUP, '$', 'MKSTREAM');
  return {
    name: 'Redis Streams',
    async fill(count) {
      for (let left = count; left > 0; left -= FILL_BATCH) {
        const batch = clientOf(-1).pipeline();
        for (let n = 0; n < Math.min(left, FILL_BATCH); n++) batch.xadd(STREAM, '*', 'body', body);
        await batch.exec();
      }
    },
    async handle(max, program) {
      const client = clientOf(program);
      const found = (await client.xreadgroup(
        ...(['GROUP', GROUP, `program-${program}`, 'COUNT', max, 'STREAMS', STREAM, '>'] as const),
      )) as Array<[string, Array<[string, string[]]>]> | null;
      const ids = found?.[0]?.[1].map(([id]) => id) ?? [];
      if (ids.length > 0) await client.xack(STREAM, GROUP, ...ids);
      return ids.length;
    },
    async close() {
      for (const client of clients.values()) client.disconnect();
      server.kill();
      await once(server, 'exit');
      await rm(folder, { recursive: true, force: true });
    },
  };
}
