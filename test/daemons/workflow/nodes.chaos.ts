import { setTimeout as pause } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, test } from 'vitest';
import { sendSignal, startRun } from '../../../src/contracts/index.ts';
import { atEnd } from '../../support/at-end.ts';
import { migrateDatabase } from '../../support/migrated-postgres.ts';
import { POSTGRES_MISSING, POSTGRES_PROGRAMS, PostgresServer } from '../../support/postgres.ts';
import { below, type Random, seededRandom, seedOf } from '../../support/random.ts';
import { callLedger } from './support/kept-ledger.ts';
import { type Ledger, startLedger } from './support/ledger.ts';
import { MortalCluster } from './support/mortal-cluster.ts';
import { asDefinition, cel } from './support/workflow.ts';

const SEED = seedOf(process.env);
const MINUTES = Number(process.env.SVC_TEST_NODE_MINUTES ?? 1);
const RUNS = Number(process.env.SVC_TEST_NODE_RUNS ?? 100);
const NODES = 3;
const LIMIT = 2;
const SETTLE_MS = 180_000;

/** Answers every call late. Returns the most calls of the runs with a limit that were open at once. */
function answerLate(ledger: Ledger, random: Random): { most: number } {
  const open = new Set<string>();
  const seen = { most: 0 };
  for (const name of ['one', 'two', 'limited'])
    ledger.answer(name, (request, response) => {
      if (name === 'limited') open.add(request.url!);
      seen.most = Math.max(seen.most, open.size);
      const done = setTimeout(() => response.end('{}'), random() * 300);
      response.on('close', () => {
        clearTimeout(done);
        open.delete(request.url!);
      });
    });
  return seen;
}

function definitions(ledger: Ledger) {
  const keyed = { idempotencyKey: cel('run.id') };
  return {
    signalled: asDefinition({
      steps: [
        callLedger(ledger, 'one', keyed),
        { id: 'go', uses: 'signal', with: { name: 'go' } },
        callLedger(ledger, 'two', keyed),
      ],
    }),
    limited: asDefinition({
      concurrency: { key: 'two', limit: LIMIT },
      steps: [callLedger(ledger, 'limited', keyed)],
    }),
  };
}

/** The runs that have not succeeded, by what keeps them. */
const unfinished = async (database: pg.Pool): Promise<unknown[]> => {
  try {
    const { rows } = await database.query(
      `select status, reason, error, fence, count(*)::int, min(id) as example from svc.run where status <> 'succeeded'
       group by 1, 2, 3, 4`,
    );
    return rows;
  } catch (error) {
    return [String(error)];
  }
};

/** The most runs that held the key at once, by their own times. */
async function mostHolders(database: pg.Pool): Promise<number> {
  const { rows } = await database.query(
    `select max(held)::int as most from (
       select sum(delta) over (order by at, delta rows unbounded preceding) as held from (
         select started_at as at, 1 as delta from svc.run where concurrency_key is not null
         union all select finished_at, -1 from svc.run where concurrency_key is not null) as changes) as counts`,
  );
  return rows[0].most;
}

describe.skipIf(!POSTGRES_PROGRAMS)(
  POSTGRES_PROGRAMS ? 'three nodes under random kills' : POSTGRES_MISSING,
  () => {
    test(
      `${RUNS} runs in ${MINUTES} minutes: none lost, none stuck, one effect per key, never more than ${LIMIT} at once`,
      async () => {
        console.info(`SVC_TEST_SEED=${SEED}`);
        const random = seededRandom(SEED);
        const server = await PostgresServer.start({ durable: true });
        atEnd(() => server.remove());
        await migrateDatabase(server.url());
        const database = new pg.Pool({ connectionString: server.url(), max: 1 });
        database.on('error', () => {});
        atEnd(() => database.end());
        const ledger = await startLedger();
        const seen = answerLate(ledger, random);
        const { signalled, limited } = definitions(ledger);
        const config = {
          store: { url: server.url() },
          cluster: { enabled: true },
          adapters: { vectorStore: null },
          workflow: { port: 0, httpAllow: ['127.0.0.1'] },
        };
        const cluster = await MortalCluster.start(NODES, server, config, random);
        const lengthMs = MINUTES * 60_000;
        const isLimited = (n: number) => n % 3 === 0;
        const start = async (n: number): Promise<string> => {
          await pause(below(random, lengthMs));
          const body = { definition: isLimited(n) ? limited : signalled, idempotencyKey: `run ${n}` };
          const begin = () => cluster.call((client) => client.call(startRun, { body }));
          const [first, second] = await Promise.all([begin(), begin()]);
          expect(second.run.id).toBe(first.run.id);
          if (isLimited(n)) return first.run.id;
          await pause(below(random, 1000));
          const params = { runId: first.run.id, name: 'go' };
          const signal = { params, body: { payload: n, idempotencyKey: 'go' } };
          await cluster.call((client) => client.call(sendSignal, signal));
          return first.run.id;
        };
        const starts = Promise.all(Array.from({ length: RUNS }, (_, n) => start(n)));
        const [ids] = await Promise.all([starts, cluster.dieFor(lengthMs)]);
        console.info(`deaths: ${JSON.stringify(cluster.deaths)}`);

        await expect.poll(() => unfinished(database), { timeout: SETTLE_MS, interval: 500 }).toEqual([]);
        const { rows } = await database.query('select id from svc.run');
        expect(rows.map(({ id }) => id).toSorted()).toEqual(ids.toSorted());
        expect(new Set(ids).size).toBe(RUNS);
        const keysOf = (name: string) => [
          ...new Set(ledger.entries.filter((entry) => entry.name.startsWith(name)).map(({ key }) => key)),
        ];
        const expected = (limit: boolean) => ids.filter((_, n) => isLimited(n) === limit).toSorted();
        expect(keysOf('one').toSorted()).toEqual(expected(false));
        expect(keysOf('two').toSorted()).toEqual(expected(false));
        expect(keysOf('limited').toSorted()).toEqual(expected(true));
        expect(await mostHolders(database)).toBeLessThanOrEqual(LIMIT);
        expect(seen.most).toBeLessThanOrEqual(LIMIT);
      },
      MINUTES * 60_000 + 2 * SETTLE_MS,
    );
  },
);
