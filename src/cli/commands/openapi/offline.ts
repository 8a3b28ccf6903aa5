import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PlatformConfig, type ServiceName } from '../../../contracts/index.ts';
import { createPeers } from '../../../daemons/peers.ts';
import type { RunningDaemon } from '../../../daemons/run-daemon.ts';
import { startByName } from '../../../daemons/start-by-name.ts';
import { systemRandom } from '../../../kit/security/random.ts';
import { systemClock } from '../../../kit/time/clock.ts';

/** Services whose OpenAPI descriptions the gateway merges into a single description. */
const MERGED: readonly ServiceName[] = ['rest', 'workflow', 'gateway'];

/**
 * Reads the OpenAPI description of a service. Starts the service in this process with a temporary data folder. Without
 * `service`, starts all services whose descriptions the gateway merges.
 */
export async function describeOffline<Document>(
  service: ServiceName | undefined,
  read: (url: string) => Promise<Document>,
): Promise<Document> {
  const dataDir = await mkdtemp(join(tmpdir(), 'svc-openapi-'));
  const random = systemRandom();
  const peers = createPeers();
  const running: RunningDaemon[] = [];
  try {
    for (const name of service ? [service] : MERGED) {
      const daemon = await startByName(name, {
        config: PlatformConfig.parse({ plugins: [], workflows: [] }),
        profile: 'development',
        projectDir: dataDir,
        dataDir,
        keys: {
          jwtSecret: random.secret(32),
          previousJwtSecret: null,
          internalSecret: random.secret(32),
          masterKey: random.secret(32),
        },
        operator: null,
        clock: systemClock,
        random,
        peers,
        output: { write: () => {}, flush: () => {} },
        listen: { host: '127.0.0.1', port: 0 },
      });
      running.push(daemon);
      peers.set({ [name]: daemon.url });
    }
    return await read(running.at(-1)!.url);
  } finally {
    for (const daemon of running.reverse()) await daemon.close();
    await rm(dataDir, { recursive: true, force: true, maxRetries: 3 });
  }
}
