import { isFinal } from '../states.ts';
import { isPoison } from './poison.ts';
import type { EngineDeps } from './ports.ts';

type RecoveryDeps = Pick<EngineDeps, 'store' | 'clock' | 'logger' | 'limits' | 'hooks'>;

const RECOVERY_CHUNK = 200;

/**
 * Marks runs of dead boots as interrupted, and queues them ahead of new work. Returns whether there were any. @spec
 * Workflow run: interrupted
 */
export async function recover({ store, clock, logger, limits, hooks }: RecoveryDeps): Promise<boolean> {
  const counts = { interrupted: 0, resumed: 0, poisoned: 0 };
  for (;;) {
    const runs = await store.boots.interrupt(clock.now(), RECOVERY_CHUNK, (run) =>
      isPoison(run, limits.poisonAfter),
    );
    counts.interrupted += runs.length;
    for (const run of runs.filter(({ status }) => isFinal(status))) {
      counts.poisoned++;
      hooks.ended(run);
    }
    if (runs.length < RECOVERY_CHUNK) break;
  }
  for (;;) {
    const runs = await store.boots.resume(clock.now(), RECOVERY_CHUNK, (run) =>
      isPoison(run, limits.poisonAfter),
    );
    for (const run of runs) {
      if (run.status !== 'failed') counts.resumed++;
      else {
        counts.poisoned++;
        hooks.ended(run);
      }
    }
    if (runs.length < RECOVERY_CHUNK) break;
  }
  if (counts.interrupted + counts.resumed + counts.poisoned === 0) return false;
  logger.diagnostic({
    domain: 'workflow',
    event: 'runs.recovered',
    level: counts.poisoned > 0 ? 'warn' : 'info',
    reasonCode: 'DAEMON_RESTARTED',
    message: `${counts.interrupted} runs were interrupted; ${counts.resumed} resumed, ${counts.poisoned} failed as poison`,
    outcome: counts.poisoned > 0 ? 'degraded' : 'succeeded',
    evidence: counts,
  });
  return true;
}
