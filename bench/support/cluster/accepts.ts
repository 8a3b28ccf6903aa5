import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { fileURLToPath } from 'node:url';
import { cpuUsOf, cpuUsWithEndedOf } from '../process-usage.ts';
import { median } from '../result.ts';
import { deliver } from './deliveries.ts';
import type { Node, Webhook } from './nodes.ts';
import type { PostgresServer } from './postgres-server.ts';

export const ACCEPT_ROUNDS = 3;
export const ACCEPT_CONNECTIONS = 50;
const ROUND_MS = 4000;
const WARM_UP_MS = 1500;

/** Medians of the rounds. CPU times are in microseconds per accepted delivery. */
export interface AcceptFigures {
  perSecond: number;
  p50Ms: number;
  p99Ms: number;
  serverCpuUs: number;
  postgresCpuUs: number;
}

interface Target {
  port: number;
  pid: number;
  webhook: Omit<Webhook, 'event'>;
}

export interface AcceptReport {
  plain: AcceptFigures;
  svc: AcceptFigures;
  /** Median of the rounds' ratios of `svc` to `plain`. */
  ratio: number;
}

/** Accepts of one gateway beside those of a bare server that inserts each delivery, in alternating rounds. */
export async function measureAccepts(
  postgres: PostgresServer,
  node: Node,
  webhook: Webhook,
): Promise<AcceptReport> {
  const plain = await startInsertServer(postgres);
  try {
    const targets: Target[] = [plain, { ...node, webhook }];
    const rounds: AcceptFigures[][] = [];
    for (let round = -1; round < ACCEPT_ROUNDS; round++) {
      const figures: AcceptFigures[] = [];
      for (const target of targets)
        figures.push(await measure(postgres, target, round < 0 ? WARM_UP_MS : ROUND_MS));
      // The first round warms up.
      if (round >= 0) rounds.push(figures);
    }
    const [ofPlain, ofSvc] = [rounds.map((figures) => figures[0]!), rounds.map((figures) => figures[1]!)];
    return {
      plain: medians(ofPlain),
      svc: medians(ofSvc),
      ratio: median(rounds.map(([first, second]) => second!.perSecond / first!.perSecond)),
    };
  } finally {
    plain.stop();
  }
}

async function measure(
  postgres: PostgresServer,
  { port, pid, webhook }: Target,
  durationMs: number,
): Promise<AcceptFigures> {
  const postgresPid = await postgres.pid();
  const before = { server: cpuUsOf(pid), postgres: cpuUsWithEndedOf(postgresPid) };
  const { perSecond, p50Ms, p99Ms, answered } = await deliver({
    port,
    webhook,
    connections: ACCEPT_CONNECTIONS,
    durationMs,
  });
  return {
    perSecond,
    p50Ms,
    p99Ms,
    serverCpuUs: (cpuUsOf(pid) - before.server) / answered,
    postgresCpuUs: (cpuUsWithEndedOf(postgresPid) - before.postgres) / answered,
  };
}

const medians = (rounds: readonly AcceptFigures[]): AcceptFigures => {
  const of = (name: keyof AcceptFigures): number => median(rounds.map((figures) => figures[name]));
  return {
    perSecond: of('perSecond'),
    p50Ms: of('p50Ms'),
    p99Ms: of('p99Ms'),
    serverCpuUs: of('serverCpuUs'),
    postgresCpuUs: of('postgresCpuUs'),
  };
};

async function startInsertServer(postgres: PostgresServer): Promise<Target & { stop(): void }> {
  const secret = 'bench-secret';
  const script = fileURLToPath(new URL('insert-server.ts', import.meta.url));
  const child = spawn(process.execPath, [script, postgres.url(), secret], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const ended = once(child, 'exit').then(([code]) => {
    throw new Error(`insert-server.ts exited with ${code}`);
  });
  const [port] = await Promise.race([once(child.stdout, 'data'), ended]);
  ended.catch(() => {});
  return {
    port: Number(port),
    pid: child.pid!,
    webhook: { path: '/', secret },
    stop: () => void child.kill(),
  };
}
