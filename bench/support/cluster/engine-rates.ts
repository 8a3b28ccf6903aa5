import { cpuUsWithEndedOf } from '../process-usage.ts';
import { median, quantile } from '../result.ts';
import type { CleanUps } from './clean-ups.ts';
import { CLIENTS, POSTGRES_ENGINES, type PostgresEngine } from './postgres-engines.ts';
import type { PostgresServer } from './postgres-server.ts';

export const ENGINE_ROUNDS = 5;
const ROUND_MS = 4000;
const WARM_UP_MS = 2500;

/** Medians of the rounds. CPU times are in microseconds per run. */
export interface EngineFigures {
  name: string;
  perSecond: number;
  /** Median of the rounds' ratios to the first engine. */
  ratio: number;
  p50Ms: number;
  p99Ms: number;
  cpuUs: number;
  postgresCpuUs: number;
  /** Transactions of PostgreSQL per run. Each is at least one round trip. */
  transactions: number;
}

type Round = Omit<EngineFigures, 'name' | 'ratio'>;

/** Runs of three steps on one PostgreSQL server, by one engine after the other in each round. */
export async function measureEngines(
  postgres: PostgresServer,
  folder: string,
  cleanUps: CleanUps,
): Promise<EngineFigures[]> {
  const engines: Array<{ engine: PostgresEngine; database: string }> = [];
  for (const [n, open] of POSTGRES_ENGINES.entries()) {
    const database = `engine_${n}`;
    await postgres.run(`create database ${database}`);
    const engine = await open(postgres.url().replace(/[^/]+$/, database), folder);
    cleanUps.add(() => engine.close());
    engines.push({ engine, database });
  }
  const rounds: Round[][] = [];
  for (let round = -1; round < ENGINE_ROUNDS; round++) {
    const row: Round[] = [];
    for (const { engine, database } of engines)
      row.push(await measure(postgres, engine, database, round < 0 ? WARM_UP_MS : ROUND_MS));
    // The first round warms up.
    if (round >= 0) rounds.push(row);
  }
  return engines.map(({ engine }, n) => {
    const of = (value: (round: Round, first: Round) => number): number =>
      median(rounds.map((row) => value(row[n]!, row[0]!)));
    return {
      name: engine.name,
      perSecond: of((round) => round.perSecond),
      ratio: of((round, first) => round.perSecond / first.perSecond),
      p50Ms: of((round) => round.p50Ms),
      p99Ms: of((round) => round.p99Ms),
      cpuUs: of((round) => round.cpuUs),
      postgresCpuUs: of((round) => round.postgresCpuUs),
      transactions: of((round) => round.transactions),
    };
  });
}

async function measure(
  postgres: PostgresServer,
  { once, cpuUs }: PostgresEngine,
  database: string,
  durationMs: number,
): Promise<Round> {
  const postgresPid = await postgres.pid();
  const usage = async () => ({
    own: cpuOf(process.cpuUsage()) + (cpuUs?.() ?? 0),
    postgres: cpuUsWithEndedOf(postgresPid),
    transactions: await transactionsOf(postgres, database),
  });
  const times: number[] = [];
  const before = await usage();
  const startedAt = performance.now();
  const until = startedAt + durationMs;
  const clients = Array.from({ length: CLIENTS }, async () => {
    for (let begunAt = startedAt; begunAt < until; begunAt = performance.now()) {
      await once();
      times.push(performance.now() - begunAt);
    }
  });
  await Promise.all(clients);
  const elapsedMs = performance.now() - startedAt;
  const after = await usage();
  return {
    perSecond: times.length / (elapsedMs / 1000),
    p50Ms: quantile(times, 0.5),
    p99Ms: quantile(times, 0.99),
    cpuUs: (after.own - before.own) / times.length,
    postgresCpuUs: (after.postgres - before.postgres) / times.length,
    transactions: (after.transactions - before.transactions) / times.length,
  };
}

const cpuOf = ({ user, system }: ReturnType<NodeJS.Process['cpuUsage']>): number => user + system;

async function transactionsOf(postgres: PostgresServer, database: string): Promise<number> {
  const { rows } = await postgres.run(
    'select xact_commit::int + xact_rollback::int as count from pg_stat_database where datname = $1',
    [database],
  );
  return (rows[0] as { count: number }).count;
}
