import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { getRun, startRun } from '../../src/contracts/index.ts';
import { createClient, serviceHeaders } from '../../src/http/index.ts';
import { startLedger } from '../daemons/workflow/support/ledger.ts';
import { asDefinition } from '../daemons/workflow/support/workflow.ts';
import { tempDir } from '../support/daemon.ts';
import { migratedPostgres } from '../support/migrated-postgres.ts';
import { FREE_PORTS } from '../support/ports.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS } from '../support/postgres.ts';
import { CLUSTER_SECRETS, singleProject, startSingle } from '../support/single-service.ts';

const POLL = { timeout: 30_000, interval: 20 };

/** A workflow service that `svc start` starts again and again on one data folder. */
async function openService() {
  const ledger = await startLedger();
  const project = await singleProject({
    ...FREE_PORTS,
    store: { url: await migratedPostgres() },
    cluster: { enabled: true },
    gateway: { port: 0, publicUrl: 'http://svc.example' },
    adapters: { vectorStore: null },
    workflow: { port: 0, httpAllow: ['127.0.0.1'], drainMs: 100 },
  });
  const env = { ...CLUSTER_SECRETS, SVC_HOME: join(await tempDir(), 'data') };
  const start = () => startSingle('workflow', { project, env });
  const clientOf = ({ url }: { url: string }) =>
    createClient({
      ...{ url, peer: 'workflow' },
      headers: () => serviceHeaders(CLUSTER_SECRETS.GATEWAY_INTERNAL_SECRET),
    });
  const definition = asDefinition({
    steps: [{ uses: 'http', idempotent: true, with: { url: `${ledger.url}/held` } }],
  });
  ledger.answer('held', () => {});
  return { ledger, start, clientOf, definition };
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'crashes of `svc start workflow`' : POSTGRES_MISSING,
  () => {
    test('a run fails as poison at the third crash, and stops in between do not count', async () => {
      const { ledger, start, clientOf, definition } = await openService();
      let service = await start();
      const { run } = await clientOf(service).call(startRun, { body: { definition } } as never);
      const params = { runId: run.id };
      for (const [nth, signal] of (['SIGABRT', 'SIGTERM', 'SIGABRT', 'SIGABRT'] as const).entries()) {
        await expect.poll(() => ledger.count('held'), POLL).toBe(nth + 1);
        service.child.kill(signal);
        await service.exited;
        service = await start();
      }
      const statusOf = async () => (await clientOf(service).call(getRun, { params })).status;
      await expect.poll(statusOf, POLL).toBe('failed');
      const { error } = await clientOf(service).call(getRun, { params });
      expect(error).toMatchObject({ details: { reason: 'poison', crashes: 3, kills: 0 } });
    }, 180_000);
  },
);
