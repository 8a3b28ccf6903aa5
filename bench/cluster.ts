import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger } from '../src/kit/telemetry/logger.ts';
import { PostgresDatabase } from '../src/store/postgres/database.ts';
import { migratePostgres } from '../src/store/postgres/migrate.ts';
import {
  ACCEPT_CONNECTIONS,
  ACCEPT_ROUNDS,
  type AcceptReport,
  measureAccepts,
} from './support/cluster/accepts.ts';
import { CleanUps } from './support/cluster/clean-ups.ts';
import { ControlGroups } from './support/cluster/control-groups.ts';
import { ENGINE_ROUNDS, type EngineFigures, measureEngines } from './support/cluster/engine-rates.ts';
import { completedPerSecond, startBacklog } from './support/cluster/handlers.ts';
import { startHaproxy } from './support/cluster/haproxy.ts';
import { HANDLER_MS, type Node, pausedWebhook, startNode, type Webhook } from './support/cluster/nodes.ts';
import { CLIENTS } from './support/cluster/postgres-engines.ts';
import { PostgresServer, postgresPrograms } from './support/cluster/postgres-server.ts';
import {
  measurePromotion,
  measureRestart,
  RECOVERY_ROUNDS,
  type RecoveryFigures,
} from './support/cluster/recovery.ts';
import {
  GATEWAY_CORES,
  measureScaling,
  POSTGRES_CORES,
  SCALING_ROUNDS,
  type ScalingFigures,
} from './support/cluster/scaling.ts';
import { Senders } from './support/cluster/senders.ts';
import { measureServices, SLOTS } from './support/cluster/workflow-scaling.ts';
import { freePort, isInstalled } from './support/proxies/front-ends.ts';
import { type BenchResult, round } from './support/result.ts';

const NODES = 3;
const NAME = 'Cluster: nodes that share one PostgreSQL';

type Rows = BenchResult['rows'];

/**
 * What several nodes on one PostgreSQL gain and cost, and how long they refuse deliveries when it fails.
 *
 * `--workflows` measures only runs of workflows: runs of three steps by one engine after the other in each round, on the
 * same server, and the services that share it. Commits wait for the disk (`fsync` and `synchronous_commit` are on) and
 * each engine makes a step durable before the next one. The engines run in the benchmark's process with steps that do
 * nothing, so calls of handlers, queries by clients, recovery and large inputs are not measured. pg-boss ends a run in
 * its last handler, before it has stored the end of that job.
 */
export async function benchmark(flags: ReadonlySet<string> = new Set()): Promise<BenchResult> {
  if (!postgresPrograms()) return skipped('PostgreSQL', 'postgresql');
  if (flags.has('--workflows')) return withCleanUps(measureWorkflows);
  if (!isInstalled('haproxy', '-v', 'haproxy')) return skipped('HAProxy', 'haproxy');
  const nodes = await withCleanUps(measureNodes);
  const workflows = await withCleanUps(measureWorkflows);
  return {
    ...nodes,
    rows: [...nodes.rows, ...workflows.rows],
    note: `${nodes.note} ${workflows.note}`,
  };
}

async function withCleanUps(measure: (cleanUps: CleanUps) => Promise<BenchResult>): Promise<BenchResult> {
  const cleanUps = new CleanUps();
  try {
    return await measure(cleanUps);
  } finally {
    await cleanUps.run();
  }
}

async function measureWorkflows(cleanUps: CleanUps): Promise<BenchResult> {
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  cleanUps.add(() => rm(folder, { recursive: true, force: true, maxRetries: 3 }));
  const postgres = await PostgresServer.start();
  cleanUps.add(() => postgres.remove());
  const database = new PostgresDatabase({
    url: postgres.url(),
    logger: silentLogger,
    applicationName: 'svc-bench',
  });
  await migratePostgres(database).finally(() => database.close());
  const services = await measureServices(postgres, folder);
  const engines = await measureEngines(postgres, folder, cleanUps);
  return {
    name: NAME,
    rows: [...serviceRows(services), ...engineRows(engines)],
    note: WORKFLOW_NOTE,
  };
}

function skipped(program: string, debianPackage: string): BenchResult {
  return {
    name: NAME,
    rows: [{ what: 'skipped', measured: `${program} is not installed: apt install ${debianPackage}` }],
  };
}

async function measureNodes(cleanUps: CleanUps): Promise<BenchResult> {
  const groups = ControlGroups.open();
  if (groups) cleanUps.add(() => groups.close());
  const folder = await mkdtemp(join(tmpdir(), 'svc-bench-'));
  cleanUps.add(() => rm(folder, { recursive: true, force: true }));
  const postgres = await PostgresServer.start();
  cleanUps.add(() => postgres.remove());
  // A proxy in front of PostgreSQL, because nodes have one address for the primary and the promoted standby.
  const route = { mode: 'tcp' as const, port: await freePort() };
  const stopHaproxy = await startHaproxy(folder, [{ ...route, servers: [postgres.port] }]);
  cleanUps.add(stopHaproxy);
  const start = async (url: string): Promise<Node> => {
    const node = await startNode(url);
    cleanUps.add(() => node.stop());
    return node;
  };

  // First alone on PostgreSQL's own port, as its competitor.
  const nodes = [await start(postgres.url())];
  const held = await pausedWebhook(nodes[0]!, 'held');
  const accepts = await measureAccepts(postgres, nodes[0]!, held);
  const handlerRates = await measureHandlers(postgres, nodes, () => start(postgres.url()));
  const scaling = groups && (await measureScaling(postgres, nodes, { groups, webhook: held, folder }));
  for (const node of nodes) await node.stop();

  const behind = [await start(postgres.url(route.port)), await start(postgres.url(route.port))];
  const recovery = await measureRecovery({ postgres, route, stopHaproxy, folder, cleanUps }, behind, held);
  return {
    name: NAME,
    rows: [...acceptRows(accepts), ...scalingRows(scaling), ...handlerRows(handlerRates), ...recovery],
    note: noteOn(groups),
  };
}

/** Rates of 1, 2, … gateways. Adds the further nodes to `nodes`. */
async function measureHandlers(
  postgres: PostgresServer,
  nodes: Node[],
  start: () => Promise<Node>,
): Promise<number[]> {
  const waiting = await pausedWebhook(nodes[0]!, 'waiting');
  await startBacklog(nodes[0]!, waiting);
  const rates = [await completedPerSecond(postgres, waiting)];
  while (nodes.length < NODES) {
    nodes.push(await start());
    rates.push(await completedPerSecond(postgres, waiting));
  }
  await nodes[0]!.svc('webhooks', 'pause', 'bench', waiting.event);
  return rates;
}

interface RecoverySetup {
  postgres: PostgresServer;
  route: { mode: 'tcp'; port: number };
  stopHaproxy: () => Promise<void>;
  folder: string;
  cleanUps: CleanUps;
}

async function measureRecovery(
  { postgres, route, stopHaproxy, folder, cleanUps }: RecoverySetup,
  nodes: readonly Node[],
  webhook: Webhook,
): Promise<Rows> {
  const http = { mode: 'http' as const, port: await freePort(), servers: nodes.map(({ port }) => port) };
  cleanUps.add(await startHaproxy(folder, [http]));
  const senders = new Senders(http.port, webhook);
  cleanUps.add(() => senders.end());
  const restart = await measureRestart(postgres, senders);
  const promotion = await measurePromotion(
    {
      primary: postgres,
      route,
      stopHaproxy,
      folder,
      onServer: (server) => cleanUps.add(() => server.remove()),
      onHaproxy: (stop) => cleanUps.add(stop),
    },
    senders,
  );
  const { acknowledged, lost } = await senders.stop(promotion.primary);
  return [
    recoveryRow('restart -m immediate', restart, '<= 2'),
    recoveryRow('promotion of the synchronous standby', promotion, '<= 5'),
    {
      what: `acknowledged deliveries lost in these ${2 * RECOVERY_ROUNDS} failures, of ${acknowledged}`,
      measured: lost,
      aim: '0',
    },
  ];
}

function acceptRows({ plain, svc, ratio }: AcceptReport): Rows {
  const row = (what: string, figures: AcceptReport['svc'], measured: string): Rows[number] => ({
    what: `accepts/s, ${what}`,
    measured,
    'p50 / p99 ms': `${round(figures.p50Ms, 1)} / ${round(figures.p99Ms, 1)}`,
    'CPU us, server': round(figures.serverCpuUs),
    'CPU us, PostgreSQL': round(figures.postgresCpuUs),
  });
  return [
    row('bare node:http, one INSERT each', plain, String(round(plain.perSecond))),
    {
      ...row('one gateway', svc, `${round(svc.perSecond)} (x ${round(ratio, 2)})`),
      aim: '>= 3,000',
    },
  ];
}

function scalingRows(figures: readonly ScalingFigures[] | undefined): Rows {
  if (!figures) return [{ what: 'limited gateways', measured: 'skipped' }];
  return figures.map(({ gateways, perSecond, efficiency, gatewayCores, postgresCores }) => ({
    what: `accepts/s, ${gateways} x ${GATEWAY_CORES} core`,
    measured: `${round(perSecond)}${added(gateways, efficiency)}`,
    aim: gateways > 1 ? '>= 0.8 per gateway' : '',
    'cores, gateways': round(gatewayCores, 2),
    'cores, PostgreSQL': round(postgresCores, 2),
  }));
}

function handlerRows(rates: readonly number[]): Rows {
  return rates.map((rate, n) => ({
    what: `handlers of ${HANDLER_MS} ms/s, ${n + 1} gateway${n > 0 ? 's' : ''}`,
    measured: `${round(rate)}${added(n + 1, (rate - (rates[n - 1] ?? 0)) / rates[0]!)}`,
    aim: n > 0 ? '>= 0.8 per gateway' : '',
  }));
}

function serviceRows(rates: readonly number[]): Rows {
  return rates.map((rate, n) => ({
    what: `steps of ${HANDLER_MS} ms/s, ${n + 1} workflow service${n > 0 ? 's' : ''}`,
    measured: `${round(rate)}${n > 0 ? ` (${round(rate / rates[0]! / (n + 1), 2)} of linear)` : ''}`,
    aim: n > 0 ? '>= 0.95' : '',
  }));
}

function engineRows(figures: readonly EngineFigures[]): Rows {
  return figures.map((each, n) => ({
    what: `3-step runs/s, ${each.name}`,
    measured: `${round(each.perSecond)}${n > 0 ? ` (x ${round(each.ratio, 2)})` : ''}`,
    aim: n === 0 ? '>= 1,000' : '',
    'p50 / p99 ms': `${round(each.p50Ms, 1)} / ${round(each.p99Ms, 1)}`,
    'CPU us': round(each.cpuUs),
    'CPU us, PostgreSQL': round(each.postgresCpuUs),
    transactions: round(each.transactions, 2),
  }));
}

const WORKFLOW_NOTE = `Services with ${SLOTS} slots each, of which one tenant gets three quarters; steps are \`http\` requests that are answered after ${HANDLER_MS} ms. Engines: ${CLIENTS} clients, medians of ${ENGINE_ROUNDS} alternating rounds, everything on this machine; x: median ratio of the rounds to the first; CPU and transactions per run.`;

const added = (gateways: number, efficiency: number): string =>
  gateways > 1 ? ` (+${round(efficiency, 2)})` : '';

const recoveryRow = (
  what: string,
  { firstSeconds, lastFailureSeconds }: RecoveryFigures,
  aim: string,
): Rows[number] => ({
  what: `s until accepting, ${what}`,
  measured: `${round(firstSeconds, 2)} (last refusal ${round(lastFailureSeconds, 2)})`,
  aim,
});

const noteOn = (groups: ControlGroups | undefined): string =>
  [
    `Accepts: signed deliveries of 2 KB, each with its own id, handlers held, 202 = committed (fsync on), everything on this machine, ${ACCEPT_CONNECTIONS} connections; medians of ${ACCEPT_ROUNDS} alternating rounds; x: median ratio of the rounds; CPU per accept.`,
    groups &&
      `Limited gateways behind HAProxy: CPU quotas of control groups ${groups.version}, PostgreSQL ${POSTGRES_CORES} core, HAProxy and load on the rest; medians of ${SCALING_ROUNDS} interleaved rounds; +: what the last gateway added, as a share of the first one's rate.`,
    `Handlers only wait. Failures: under load on two nodes, medians of ${RECOVERY_ROUNDS} each, from the command to the first acceptance; PostgreSQL recovers from its log within this time.`,
  ]
    .filter(Boolean)
    .join(' ');

export { benchmark as run };

if (import.meta.main) {
  const flags = new Set(process.argv.slice(2));
  console.log(JSON.stringify(await benchmark(flags), null, 2));
  process.exit(0);
}
