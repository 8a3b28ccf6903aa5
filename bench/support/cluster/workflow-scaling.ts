import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startWorkflowDaemon, type WorkflowDaemon } from '../workflow-daemon.ts';
import { CleanUps } from './clean-ups.ts';
import { HANDLER_MS } from './nodes.ts';
import type { PostgresServer } from './postgres-server.ts';
import { medianRate } from './window-rates.ts';

export const SERVICES = 4;
export const SLOTS = 8;
const WINDOWS = 5;
const WINDOW_MS = 2000;
/** Time in which a new service claims its first runs, and all services reach a steady state. */
const WARM_UP_MS = 3000;
/** Outlasts the windows of all services. */
const BACKLOG = 10_000;

/** Completed steps per second of 1, 2, … workflow services. */
export async function measureServices(postgres: PostgresServer, folder: string): Promise<number[]> {
  const cleanUps = new CleanUps();
  try {
    return await measure(postgres, folder, cleanUps);
  } finally {
    await cleanUps.run();
  }
}

async function measure(postgres: PostgresServer, folder: string, cleanUps: CleanUps): Promise<number[]> {
  const target = await startSlowServer();
  cleanUps.add(target.stop);
  const config = {
    store: { url: postgres.url() },
    workflow: { maxRunningRuns: SLOTS, maxRunningSteps: SLOTS, httpAllow: ['127.0.0.1'] },
  };
  const step = { uses: 'http', with: { url: target.url } };
  const start = async (): Promise<WorkflowDaemon> => {
    const daemon = await startWorkflowDaemon(folder, step, config);
    cleanUps.add(() => daemon.close());
    return daemon;
  };
  await (await start()).once();
  await addBacklog(postgres);
  const rates = [await completedPerSecond(postgres)];
  while (rates.length < SERVICES) {
    await start();
    rates.push(await completedPerSecond(postgres));
  }
  return rates;
}

/** A server that answers each request after the duration of a step. */
async function startSlowServer(): Promise<{ url: string; stop(): void }> {
  const server = createServer((_, response) => void setTimeout(() => response.end(), HANDLER_MS));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}/`, stop: () => void server.close() };
}

/** Queues copies of the first run. Requests for as many starts would take longer than the measurement. */
async function addBacklog(postgres: PostgresServer): Promise<void> {
  await postgres.run(
    `insert into svc.run (id, kind, tenant_id, workflow_id, definition_hash, status, ready, reason, rank, priority,
       resume_count, crashes, kills, in_flight, trigger_kind, depth, host_id, request_id, trace_id, created_at, input)
     select id || '_' || n, kind, tenant_id, workflow_id, definition_hash, 'queued', true, 'capacity', rank, priority,
       0, 0, 0, false, trigger_kind, depth, host_id, request_id, trace_id, created_at, input
     from svc.run, generate_series(1, $1) as n`,
    [BACKLOG],
  );
}

/** Median of the completed steps per second in consecutive windows, while the backlog lasts. */
async function completedPerSecond(postgres: PostgresServer): Promise<number> {
  const read = async (): Promise<{ count: number; hasBacklog: boolean }> => {
    const { rows } = await postgres.run(
      `select (select count(*) from svc.step where status = 'succeeded')::int as count,
         exists (select from svc.run where status = 'queued' and fence is null) as "hasBacklog"`,
    );
    return rows[0] as { count: number; hasBacklog: boolean };
  };
  return medianRate(read, { warmUpMs: WARM_UP_MS, windows: WINDOWS, windowMs: WINDOW_MS });
}
