import { createHash } from 'node:crypto';
import { setImmediate as nextTurn } from 'node:timers/promises';
import type {
  PluginSchedule,
  Schedule,
  ScheduleDefinition,
  WorkflowRun,
} from '../../../../contracts/index.ts';
import { messageOf, PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type {
  NewAlertFact,
  RunRecord,
  RunStore,
  ScheduleNode,
  ScheduleRecord,
  ScheduleStore,
  ServedSchedule,
} from '../../../../store/ports/index.ts';
import { scheduleIds } from '../cron/schedule-ids.ts';
import { nextTime } from '../cron/schedule-times.ts';
import type { Definitions } from '../definition/definitions.ts';
import { viewRun } from '../run/views.ts';
import { isFinal } from '../states.ts';
import { MAX_CATCH_UP_RUNS, slotsToServe } from './due-slots.ts';
import type { Starter } from './run-admission.ts';
import type { RunStarter } from './run-starter.ts';

/** Tenant of schedules that files and plugins declare. */
const TENANT = 'default';
/**
 * Minimum backward jump of the wall clock that triggers a new sync of all schedules. Smaller jumps are ordinary clock
 * corrections.
 */
const SET_BACK_MS = seconds(1);
/** Schedules from the manifests of loaded plugins. */
export interface PluginSchedules {
  found: readonly FoundSchedule[];
  /** Loaded plugins by id. The value is false for a plugin with a faulty schedule. */
  loaded: ReadonlyMap<string, boolean>;
}

/** A schedule that a plugin's manifest declares. */
export interface FoundSchedule {
  /** Id of the schedule, in the form `<plugin>:<name>`. */
  id: string;
  plan: PluginSchedule;
}

export interface SchedulesDeps {
  store: ScheduleStore;
  runs: Pick<RunStore, 'find'>;
  starter: RunStarter;
  definitions: Definitions;
  /** This node, or undefined if no other node uses the same store. */
  node: ScheduleNode | undefined;
  clock: Clock;
  random: Random;
  logger: Logger;
}

/** Cron schedules, which are stored with the time of their next run. The `croner` library handles time zones. */
export class Schedules {
  readonly #deps: SchedulesDeps;
  #ofPlugins: PluginSchedules = { found: [], loaded: new Map() };
  #syncing: Promise<void> = Promise.resolve();
  #lookedAt = 0;

  constructor(deps: SchedulesDeps) {
    this.#deps = deps;
  }

  /**
   * Replaces the active schedules with the schedules of registered workflows and plugins. Calls run in order, so the
   * latest call determines the result.
   */
  sync(given: PluginSchedules): Promise<void> {
    this.#ofPlugins = given;
    const syncGiven = (): Promise<void> => this.#syncNow(given);
    this.#syncing = this.#syncing.then(syncGiven, syncGiven);
    return this.#syncing;
  }

  /** Starts the runs of due schedules. Resolves with the next due time of any schedule. */
  async serve(now: number): Promise<number | null> {
    const { store, node, definitions } = this.#deps;
    const wasSetBack = now < this.#lookedAt - SET_BACK_MS;
    this.#lookedAt = now;
    if (wasSetBack) await this.sync(this.#ofPlugins);
    // Only a node that has registered the workflow starts the scheduled runs of the workflow.
    const claim = node && { fence: node.fence, workflows: [...definitions.registered.keys()] };
    for (const schedule of await store.due(now, claim)) {
      // SQLite does not support claims.
      if (node && !definitions.registered.has(schedule.workflowId)) continue;
      await this.#serveOne(schedule, now);
    }
    // A schedule that waits for its previous run stays due. The next tick tries the schedule again.
    return store.nextAt(now);
  }

  async list(tenantId: string): Promise<Schedule[]> {
    const { store } = this.#deps;
    return (await store.list(tenantId)).map(viewSchedule);
  }

  /** Pauses a schedule. `pause`, `resume` and `trigger` throw NOT_FOUND for an unknown schedule. */
  async pause(tenantId: string, id: string): Promise<Schedule> {
    const { store } = this.#deps;
    await this.#find(tenantId, id);
    await store.setPaused(id, true, null);
    return viewSchedule(await this.#find(tenantId, id));
  }

  async resume(tenantId: string, id: string): Promise<Schedule> {
    const { store, clock } = this.#deps;
    const schedule = await this.#find(tenantId, id);
    if (schedule.paused) await store.setPaused(id, false, nextTime(schedule, clock.now()));
    return viewSchedule(await this.#find(tenantId, id));
  }

  async trigger(tenantId: string, id: string, who: Starter): Promise<WorkflowRun> {
    return viewRun(await this.#start(await this.#find(tenantId, id), null, who));
  }

  async #find(tenantId: string, id: string): Promise<ScheduleRecord> {
    const { store } = this.#deps;
    const schedule = await store.find(tenantId, id);
    if (schedule) return schedule;
    throw new PlatformError(
      'NOT_FOUND',
      `There is no schedule "${id}"; \`svc schedules list\` shows the existing schedules.`,
    );
  }

  async #start(schedule: ScheduleRecord, slot: number | null, who: Starter): Promise<RunRecord> {
    const { starter, definitions } = this.#deps;
    return starter.start(
      {
        kind: 'workflow',
        workflow: definitions.require(schedule.workflowId),
        input: JSON.parse(schedule.input),
        trigger: 'schedule',
        // The idempotency key allows at most one run per planned time, even after a crash between the start and its
        // record.
        ...(slot === null ? {} : { idempotency: { key: `schedule ${schedule.id} ${slot}`, request: null } }),
      },
      who,
    );
  }

  async #serveOne(schedule: ScheduleRecord, now: number): Promise<void> {
    const { store, random, node } = this.#deps;
    const { id, nextAt, catchUp, overlap, lastRunId } = schedule;
    const mayBeHeld = overlap === 'queue' && catchUp === 'none';
    const slots = slotsToServe(schedule, now, mayBeHeld ? await this.#blockedUntil(lastRunId, now) : 0);
    let served: Omit<ServedSchedule, 'nextAt'> = { lastAt: nextAt, lastRunId: null };
    for (const slot of slots) {
      const previous = served.lastRunId ?? lastRunId;
      if (overlap !== 'allow' && previous !== null && (await this.#isUnfinished(previous))) {
        if (overlap === 'skip') {
          this.#note(schedule, slot, 'OVERLAP', 'the previous run has not ended');
          served = { ...served, lastAt: slot };
          continue;
        }
        // With `overlap: queue`, the schedule stays due until its previous run has ended.
        await store.served(id, { ...served, nextAt: slot, lastAt: null }, node?.fence);
        return;
      }
      try {
        const run = await this.#start(schedule, slot, system(random));
        served = { lastAt: slot, lastRunId: run.id };
      } catch (error) {
        this.#note(schedule, slot, 'START_FAILED', messageOf(error));
        served = { ...served, lastAt: slot, missed: missedFact(schedule, slot, now) };
      }
    }
    if (slots.length === 0) {
      this.#note(schedule, nextAt ?? now, 'MISSED', `it was missed, and catchUp is "${catchUp}"`);
      served = { ...served, missed: missedFact(schedule, nextAt ?? now, now) };
    }
    const left = slots.length === MAX_CATCH_UP_RUNS ? nextTime(schedule, slots.at(-1)!) : null;
    if (left !== null && left <= now) {
      this.#note(
        schedule,
        left,
        'MISSED',
        `catchUp starts ${MAX_CATCH_UP_RUNS} at most, and this is the next`,
      );
      served = { ...served, missed: missedFact(schedule, left, now) };
    }
    await store.served(id, { nextAt: nextTime(schedule, now), ...served }, node?.fence);
  }

  /**
   * Returns the time until which the previous run blocked the schedule. Returns 0 if no previous run exists. Planned
   * times during the block do not count as missed.
   */
  async #blockedUntil(runId: string | null, now: number): Promise<number> {
    const { runs } = this.#deps;
    const run = runId === null ? undefined : await runs.find(null, runId);
    return run ? (run.finishedAt ?? now) : 0;
  }

  async #isUnfinished(runId: string): Promise<boolean> {
    const { runs } = this.#deps;
    const run = await runs.find(null, runId);
    return run !== undefined && !isFinal(run.status);
  }

  #note(schedule: ScheduleRecord, slot: number, reasonCode: string, why: string): void {
    const { logger } = this.#deps;
    logger.diagnostic(
      {
        domain: 'workflow',
        event: 'schedule.not_started',
        level: 'warn',
        reasonCode,
        message: `The schedule ${schedule.id} did not start a run for ${new Date(slot).toISOString()}: ${why}`,
        outcome: 'refused',
        evidence: { scheduleId: schedule.id, workflowId: schedule.workflowId, slot },
      },
      { tenantId: schedule.tenantId },
    );
  }

  async #syncNow({ found, loaded }: PluginSchedules): Promise<void> {
    const { definitions, node, clock, store } = this.#deps;
    const wanted = [...definitions.registered.values()].flatMap(({ workflow: { definition } }) => {
      const plans = definition.on.schedule;
      const ids = scheduleIds(definition.id, plans);
      return plans.map((plan, place) => recordOf(plan, ids[place]!, definition.id));
    });
    const ofManifests = found.map(({ id, plan }) => recordOf(plan, id, plan.workflow));
    const owners = {
      workflows: new Set([...definitions.registered.keys()].filter((id) => loaded.get(id) !== false)),
      plugins: new Set([...loaded.keys()].filter((id) => loaded.get(id))),
    };
    const planned: Parameters<ScheduleStore['sync']>[0] = [];
    for (const record of [...wanted, ...ofManifests]) {
      planned.push({ ...record, nextAt: nextTime(record, clock.now()) });
      // Yields to the event loop between schedules. `croner` takes milliseconds for a schedule that fires once in
      // decades.
      await nextTurn();
    }
    await store.sync(planned, owners, clock.now(), node && { ...node, release: digestOf(planned) });
  }
}

/** The fact that a due time passed without a run. @spec docs/alerts.md */
function missedFact({ id, tenantId, workflowId }: ScheduleRecord, slot: number, at: number): NewAlertFact {
  const body = JSON.stringify({ workflow: workflowId, schedule: id, slot });
  return { kind: 'schedule.missed', namespaceId: tenantId, objectId: id, body, at };
}

/** Returns a digest of all plans, by which the store recognises the release of a node. */
function digestOf(planned: Parameters<ScheduleStore['sync']>[0]): string {
  const plans = planned.map(({ nextAt: _, ...plan }) => plan).toSorted((a, b) => (a.id < b.id ? -1 : 1));
  return createHash('sha256').update(JSON.stringify(plans)).digest('base64url');
}

function recordOf(plan: ScheduleDefinition, id: string, workflowId: string) {
  const { cron, timezone, overlap, catchUp } = plan;
  return {
    id,
    tenantId: TENANT,
    workflowId,
    cron,
    timezone,
    overlap,
    catchUp,
    input: JSON.stringify(plan.input),
  };
}

function system(random: Random): Starter {
  return {
    tenantId: TENANT,
    hostId: 'schedule',
    requestId: random.uuid(),
    traceId: random.uuid().replaceAll('-', ''),
  };
}

function viewSchedule({ input: _, tenantId: __, ...schedule }: ScheduleRecord): Schedule {
  return schedule;
}
