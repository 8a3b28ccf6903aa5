import { DBOS } from '@dbos-inc/dbos-sdk';
import { Logger as GraphileLogger, run as runGraphile } from 'graphile-worker';
import { PgBoss } from 'pg-boss';
import { silentLogger } from '../../../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../../../src/store/postgres/database.ts';
import { migratePostgres } from '../../../src/store/postgres/migrate.ts';
import { postgresWorkflowStore } from '../../../src/store/postgres/workflow/store.ts';
import { startWorkflowDaemon } from '../workflow-daemon.ts';
import { openEngine } from '../workflow-engine.ts';

export const CLIENTS = 100;

/** A way to run three steps that do nothing. */
export interface PostgresEngine {
  name: string;
  /** Runs three steps. Resolves after the last one. */
  once(): Promise<void>;
  /** CPU time of its own processes in microseconds, beside the benchmark's process. */
  cpuUs?(): number;
  close(): Promise<void>;
}

type Open = (url: string, folder: string) => Promise<PostgresEngine>;

/** Each with its own database, and ten connections, which is the default of all of them. */
export const POSTGRES_ENGINES: readonly Open[] = [engine, service, pgBoss, graphileWorker, dbos];

async function migrated(url: string): Promise<PostgresDatabase> {
  const database = new PostgresDatabase({ url, logger: silentLogger, applicationName: 'svc-bench' });
  await migratePostgres(database);
  return database;
}

async function engine(url: string): Promise<PostgresEngine> {
  const bench = await openEngine(postgresWorkflowStore(await migrated(url)));
  const start = bench.starter('workflow', ['noop', 'noop', 'noop']);
  return {
    name: 'svc, in process',
    close: bench.close,
    async once() {
      const id = await start();
      // The run cannot end before this turn, because its end is written in a later one.
      await new Promise<void>((resolve) => bench.ended.set(id, resolve));
    },
  };
}

async function service(url: string, folder: string): Promise<PostgresEngine> {
  await (await migrated(url)).close();
  const daemon = await startWorkflowDaemon(folder, { uses: 'bench/noop' }, { store: { url } });
  return { name: 'svc, plugin handlers in warm workers, through HTTP', ...daemon };
}

/** Ends of runs by their ids. */
class Ends {
  readonly #resolvers = new Map<string, () => void>();
  #next = 0;

  /** Starts a run and waits for its end. */
  async of(start: (run: string) => Promise<unknown>): Promise<void> {
    const run = String(this.#next++);
    const end = new Promise<void>((resolve) => this.#resolvers.set(run, resolve));
    await start(run);
    await end;
  }

  end(run: string): void {
    this.#resolvers.get(run)?.();
    this.#resolvers.delete(run);
  }
}

interface Step {
  run: string;
  step: number;
}

/** Jobs in batches, with notifications in place of waits for the next poll. */
async function pgBoss(url: string): Promise<PostgresEngine> {
  const boss = new PgBoss({ connectionString: url, useListenNotify: true });
  boss.on('error', console.error);
  await boss.start();
  await boss.createQueue('bench', { notify: true });
  const ends = new Ends();
  const options = { batchSize: CLIENTS / 2, localConcurrency: 4, pollingIntervalSeconds: 0.5 };
  await boss.work<Step>('bench', { ...options, burstWhenBatchFull: true }, async (jobs) => {
    const next = jobs.filter(({ data }) => data.step < 3);
    if (next.length > 0)
      await boss.insert(
        'bench',
        next.map(({ data }) => ({ data: { ...data, step: data.step + 1 } })),
      );
    for (const { data } of jobs) if (data.step === 3) ends.end(data.run);
  });
  return {
    name: 'pg-boss, three jobs in a row',
    once: () => ends.of((run) => boss.send('bench', { run, step: 1 })),
    close: () => boss.stop({ graceful: false }),
  };
}

/** With its local queue and batches of completions, which its documentation recommends for throughput. */
async function graphileWorker(url: string): Promise<PostgresEngine> {
  const ends = new Ends();
  const runner = await runGraphile({
    connectionString: url,
    maxPoolSize: 10,
    concurrency: CLIENTS / 2,
    noHandleSignals: true,
    logger: new GraphileLogger(() => () => {}),
    preset: { worker: { localQueue: { size: CLIENTS }, completeJobBatchDelay: 0, failJobBatchDelay: 0 } },
    taskList: {
      async step(payload, { addJob }) {
        const { run, step } = payload as Step;
        if (step < 3) await addJob('step', { run, step: step + 1 });
        else ends.end(run);
      },
    },
  });
  return {
    name: 'graphile-worker, three jobs in a row',
    once: () => ends.of((run) => runner.addJob('step', { run, step: 1 })),
    close: () => runner.stop(),
  };
}

async function dbos(url: string): Promise<PostgresEngine> {
  DBOS.setConfig({ name: 'bench', systemDatabaseUrl: url, logLevel: 'error', runAdminServer: false });
  const workflow = DBOS.registerWorkflow(
    async () => {
      for (let step = 0; step < 3; step++) await DBOS.runStep(async () => null, { name: `step${step}` });
    },
    { name: 'threeSteps' },
  );
  await DBOS.launch();
  return {
    name: 'DBOS, three steps',
    async once() {
      const handle = await DBOS.startWorkflow(workflow)();
      await handle.getResult();
    },
    close: () => DBOS.shutdown(),
  };
}
