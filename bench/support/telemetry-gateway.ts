import { mkdir, mkdtemp, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PlatformConfig } from '../../src/contracts/index.ts';
import { gateway } from '../../src/daemons/gateway/index.ts';
import { createPeers } from '../../src/daemons/peers.ts';
import { startDaemon } from '../../src/daemons/run-daemon.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { silentAnalytics } from '../../src/kit/telemetry/analytics.ts';
import { createMetrics } from '../../src/kit/telemetry/metrics.ts';
import { BufferedOutput } from '../../src/kit/telemetry/output.ts';
import { systemClock } from '../../src/kit/time/clock.ts';

/** The gateway before the upstream in `argv[2]`, with telemetry `on` or `off` (`argv[3]`); logs to stdout. */
const [, , upstream, mode, token] = process.argv as string[];
const projectDir = await mkdtemp(join(tmpdir(), 'svc-bench-'));
const plugin = join(projectDir, 'plugins', 'bench');
await mkdir(plugin, { recursive: true });
await writeFile(join(plugin, 'package.json'), JSON.stringify({ name: 'bench', type: 'module' }));
await writeFile(join(plugin, 'hooks.js'), 'export const noop = () => ({});\n');
await writeFile(
  join(plugin, 'svc.plugin.json'),
  JSON.stringify({
    schema: 'svc.plugin/3',
    id: 'bench',
    version: '1.0.0',
    webhooks: [
      {
        event: 'push',
        handler: 'hooks.js#noop',
        auth: { type: 'secret', header: 'x-token' },
        rateLimit: { requestsPerMinute: 1_000_000_000 },
      },
    ],
  }),
);
const off = mode === 'off';
const metrics = createMetrics('gateway', systemClock);
const { port } = await startDaemon(gateway, {
  config: PlatformConfig.parse({
    gateway: { staticTokens: { [token!]: { hostId: 'operator', namespaceId: 'default' } } },
    execution: { worker: { sandbox: 'permission' } },
  }),
  profile: 'development',
  projectDir,
  dataDir: join(projectDir, '.svc'),
  keys: {
    jwtSecret: 'a-benchmark-secret-of-more-than-32-bytes',
    previousJwtSecret: null,
    internalSecret: 'bench-internal-secret-of-enough-bytes',
    masterKey: Buffer.alloc(32).toString('base64url'),
  },
  operator: null,
  clock: systemClock,
  random: systemRandom(),
  peers: createPeers({ rest: upstream!, workflow: upstream!, state: upstream! }),
  output: new BufferedOutput(1, systemClock),
  ...(off
    ? {
        logLevel: 'fatal' as const,
        analytics: silentAnalytics,
        metrics: { ...metrics, observeRequest: () => {} },
      }
    : { metrics }),
  listen: { host: '127.0.0.1', port: 0 },
});
process.stderr.write(`${port}\n`);
