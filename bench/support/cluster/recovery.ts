import { setTimeout as sleep } from 'node:timers/promises';
import { median } from '../result.ts';
import { type Route, startHaproxy } from './haproxy.ts';
import type { PostgresServer } from './postgres-server.ts';
import type { Senders } from './senders.ts';

export const RECOVERY_ROUNDS = 3;
/** Load before each failure, and time for which every request must succeed after it. */
const STEADY_MS = 1500;

/** Medians in seconds from the command to the first acceptance after it, and to the end of the last failed request. */
export interface RecoveryFigures {
  firstSeconds: number;
  lastFailureSeconds: number;
}

/** `pg_ctl restart -m immediate` under load. */
export async function measureRestart(postgres: PostgresServer, senders: Senders): Promise<RecoveryFigures> {
  const rounds: RecoveryFigures[] = [];
  for (let round = 0; round < RECOVERY_ROUNDS; round++) {
    await sleep(STEADY_MS);
    const since = performance.now();
    const restarted = postgres.restartImmediately();
    rounds.push(await untilAccepting(senders, since, restarted));
  }
  return mediansOf(rounds);
}

export interface Failover {
  primary: PostgresServer;
  /** Route of the gateways to the primary, and the HAProxy that serves it. */
  route: Omit<Route, 'servers'>;
  stopHaproxy: () => Promise<void>;
  folder: string;
  onServer(server: PostgresServer): void;
  onHaproxy(stop: () => Promise<void>): void;
}

/** Crash of the primary and promotion of its synchronous standby under load. Resolves with the last primary. */
export async function measurePromotion(
  { primary, route, stopHaproxy, folder, onServer, onHaproxy }: Failover,
  senders: Senders,
): Promise<RecoveryFigures & { primary: PostgresServer }> {
  const rounds: RecoveryFigures[] = [];
  let [current, stop] = [primary, stopHaproxy];
  for (let round = 0; round < RECOVERY_ROUNDS; round++) {
    const standby = await current.addSynchronousStandby();
    onServer(standby);
    await stop();
    stop = await startHaproxy(folder, [{ ...route, servers: [current.port, standby.port] }]);
    onHaproxy(stop);
    await senders.untilAccepted();
    await sleep(STEADY_MS);
    await current.stopImmediately();
    const since = performance.now();
    rounds.push(await untilAccepting(senders, since, standby.promote()));
    current = standby;
  }
  return { ...mediansOf(rounds), primary: current };
}

async function untilAccepting(
  senders: Senders,
  since: number,
  command: Promise<void>,
): Promise<RecoveryFigures> {
  const done = command.then(() => performance.now());
  await done;
  await senders.untilAccepted();
  const { firstAt, lastFailureAt } = await senders.untilSteady(since, STEADY_MS);
  return { firstSeconds: (firstAt - since) / 1000, lastFailureSeconds: (lastFailureAt - since) / 1000 };
}

const mediansOf = (rounds: readonly RecoveryFigures[]): RecoveryFigures => ({
  firstSeconds: median(rounds.map(({ firstSeconds }) => firstSeconds)),
  lastFailureSeconds: median(rounds.map(({ lastFailureSeconds }) => lastFailureSeconds)),
});
