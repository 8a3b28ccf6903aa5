import pg from 'pg';
import { expect } from 'vitest';
import { ClusterGateway, type ClusterGatewayOptions } from './cluster-gateway.ts';
import { startHaproxy, untilServedBy } from './haproxy.ts';
import { createLedgerProject, type LedgerProject } from './ledger.ts';
import { judgeLedger, LedgerLoad, ledgerSecrets } from './ledger-load.ts';
import { migrateDatabase } from './migrated-postgres.ts';

const SENDERS = 16;
const SETTLE_MS = 120_000;

export interface LoadedCluster {
  /** In the order of their start, so that the first one schedules the deliveries. */
  gateways: ClusterGateway[];
  proxy: string;
  load: LedgerLoad;
  ledger: LedgerProject;
  /** Ends the load and waits until every accepted delivery has ended. Requires that each has run, as one delivery. */
  requireNothingLost(): Promise<void>;
}

export interface LoadedClusterOptions {
  databaseUrl: string;
  /** Name of each gateway, with what differs from the others: the URL at which it reaches the database, variables. */
  gateways?: Record<string, { databaseUrl?: string } & Pick<ClusterGatewayOptions, 'env'>>;
  senders?: number;
}

/** Starts gateways on one database behind HAProxy, under the load of webhook senders. */
export async function startLoadedCluster({
  databaseUrl,
  gateways: named = { a: {}, b: {} },
  senders = SENDERS,
}: LoadedClusterOptions): Promise<LoadedCluster> {
  await migrateDatabase(databaseUrl);
  const ledger = await createLedgerProject();
  const gateways: ClusterGateway[] = [];
  for (const [name, own] of Object.entries(named)) {
    const config = { store: { url: own.databaseUrl ?? databaseUrl } };
    const gateway = await ClusterGateway.create({
      name,
      projectDir: ledger.folder,
      config,
      env: own.env ?? {},
    });
    await gateway.start();
    gateways.push(gateway);
  }
  const proxy = await startHaproxy(
    gateways.map(({ url }) => url),
    { isPatient: false },
  );
  await untilServedBy(proxy, gateways.length);
  const load = new LedgerLoad(proxy, await ledgerSecrets(proxy), senders);
  const requireNothingLost = () => requireAllOnce({ databaseUrl, ledger, load });
  return { gateways, proxy, load, ledger, requireNothingLost };
}

async function requireAllOnce({
  databaseUrl,
  ledger,
  load,
}: {
  databaseUrl: string;
  ledger: LedgerProject;
  load: LedgerLoad;
}): Promise<void> {
  await load.stop();
  const database = new pg.Client(databaseUrl);
  await database.connect();
  const statuses = async () => {
    const { rows } = await database.query(
      "select status, count(*)::int from svc.delivery where mode = 'async' group by status",
    );
    return Object.fromEntries(rows.map(({ status, count }) => [status, count]));
  };
  try {
    const poll = { timeout: SETTLE_MS, interval: 500 };
    await expect.poll(statuses, poll).toEqual({ succeeded: expect.any(Number) });
  } finally {
    await database.end();
  }
  const judgement = judgeLedger(load.acknowledged, await ledger.runs());
  console.info(
    `${load.acknowledged.size} acknowledged, ${judgement.lost.length} lost, ${judgement.repeated} run again after an interruption; answers: ${JSON.stringify(load.outcomes)}`,
  );
  expect(judgement).toMatchObject({ lost: [], acceptedTwice: [], ranTwiceInOneProcess: [] });
  expect([load.acceptedTwice, load.withoutRetryAfter]).toEqual([0, 0]);
}
