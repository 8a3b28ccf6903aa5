import { setTimeout as sleep } from 'node:timers/promises';
import { cpuUsOf, cpuUsWithEndedOf } from '../process-usage.ts';
import { freePort } from '../proxies/front-ends.ts';
import { median } from '../result.ts';
import type { ControlGroups } from './control-groups.ts';
import { deliver } from './deliveries.ts';
import { startHaproxy } from './haproxy.ts';
import type { Node, Webhook } from './nodes.ts';
import type { PostgresServer } from './postgres-server.ts';

export const GATEWAY_CORES = 0.2;
export const POSTGRES_CORES = 0.8;
export const SCALING_ROUNDS = 5;
const ROUND_MS = 3000;
const WARM_UP_MS = 1500;
const CONNECTIONS_PER_GATEWAY = 40;
/** Time for which limited processes settle between two rounds. */
const PAUSE_MS = 500;

/** Medians of the rounds with one number of gateways. */
export interface ScalingFigures {
  gateways: number;
  perSecond: number;
  /** Accepts that the last gateway added, as a share of those of one gateway. */
  efficiency: number;
  gatewayCores: number;
  postgresCores: number;
}

/** Accepts of 1, 2, … gateways behind HAProxy, each limited to a slice of a core. */
export async function measureScaling(
  postgres: PostgresServer,
  nodes: readonly Node[],
  { groups, webhook, folder }: { groups: ControlGroups; webhook: Webhook; folder: string },
): Promise<ScalingFigures[]> {
  const routes = await Promise.all(
    nodes.map(async (_, n) => ({
      mode: 'http' as const,
      port: await freePort(),
      servers: nodes.slice(0, n + 1).map(({ port }) => port),
    })),
  );
  const stopHaproxy = await startHaproxy(folder, routes);
  try {
    groups.limit(await postgres.pid(), POSTGRES_CORES);
    for (const { pid } of nodes) groups.limit(pid, GATEWAY_CORES);
    const rounds: Round[][] = [];
    for (let round = -1; round < SCALING_ROUNDS; round++) {
      const row: Round[] = [];
      for (const { port } of routes) {
        row.push(await measure(postgres, nodes.slice(0, row.length + 1), { port, webhook }, round < 0));
        await sleep(PAUSE_MS);
      }
      // The first round warms up.
      if (round >= 0) rounds.push(row);
    }
    return figuresOf(rounds);
  } finally {
    groups.liftLimits();
    await stopHaproxy();
  }
}

interface Round {
  perSecond: number;
  gatewayCores: number;
  postgresCores: number;
}

async function measure(
  postgres: PostgresServer,
  active: readonly Node[],
  { port, webhook }: { port: number; webhook: Webhook },
  isWarmUp: boolean,
): Promise<Round> {
  const postgresPid = await postgres.pid();
  const usage = () => ({
    at: performance.now(),
    gateways: active.reduce((total, { pid }) => total + cpuUsOf(pid), 0),
    postgres: cpuUsWithEndedOf(postgresPid),
  });
  const before = usage();
  const { perSecond } = await deliver({
    port,
    webhook,
    connections: CONNECTIONS_PER_GATEWAY * active.length,
    durationMs: isWarmUp ? WARM_UP_MS : ROUND_MS,
  });
  const after = usage();
  const us = (after.at - before.at) * 1000;
  return {
    perSecond,
    gatewayCores: (after.gateways - before.gateways) / us,
    postgresCores: (after.postgres - before.postgres) / us,
  };
}

function figuresOf(rounds: readonly Round[][]): ScalingFigures[] {
  return rounds[0]!.map((_, n) => {
    const of = (value: (row: Round[]) => number): number => median(rounds.map(value));
    return {
      gateways: n + 1,
      perSecond: of((row) => row[n]!.perSecond),
      efficiency: of((row) => (row[n]!.perSecond - (row[n - 1]?.perSecond ?? 0)) / row[0]!.perSecond),
      gatewayCores: of((row) => row[n]!.gatewayCores),
      postgresCores: of((row) => row[n]!.postgresCores),
    };
  });
}
