import { onTestFinished } from 'vitest';
import { compileDefinition } from '../../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import { createEvaluator } from '../../../../src/daemons/workflow/domain/definition/evaluator.ts';
import {
  EndHandlers,
  type EndHandlersDeps,
  type RunMessage,
} from '../../../../src/daemons/workflow/domain/ends/end-handlers.ts';
import { Program } from '../../../../src/daemons/workflow/domain/run/program.ts';
import { EvaluationThreads } from '../../../../src/daemons/workflow/evaluation/threads.ts';
import { checkingKinds } from '../../../../src/daemons/workflow/step-kinds.ts';
import { systemRandom } from '../../../../src/kit/security/random.ts';
import { createLogger } from '../../../../src/kit/telemetry/logger.ts';
import { manualClock, systemClock } from '../../../../src/kit/time/clock.ts';
import type { EndTask, EndTaskStore, EventRecord, RunRecord } from '../../../../src/store/ports/index.ts';
import { captureLogs } from '../../../support/daemon.ts';
import { claimedState } from './simulated-run.ts';

export interface EndTasksOptions {
  /** `on.failure` of the ended runs. */
  failure: object;
  runs?: number;
  run?: Partial<RunRecord>;
  send?: (message: RunMessage, signal: AbortSignal) => Promise<{ id: string }>;
  /** Default: deletes the task, as the trigger of the store does. */
  start?: (key: string) => Promise<Partial<RunRecord>>;
}

/** `EndHandlers` on tasks in memory, one for each handler of each ended run. */
export function endTasks({ failure, runs = 1, run = {}, send, start }: EndTasksOptions) {
  const clock = manualClock();
  const logs = captureLogs();
  const written = { id: 'ship', on: { failure }, jobs: { main: { steps: [{ uses: 'set' }] } } };
  const workflow = compileDefinition(written, checkingKinds());
  const ended = { ...claimedState(new Program(workflow)).run, status: 'failed' as const, ...run };
  const sent: RunMessage[] = [];
  const started: string[] = [];
  const events: EventRecord[] = [];
  const threads = new EvaluationThreads(systemClock);
  const tasks = new Map(
    Array.from({ length: runs }, (_, index) =>
      workflow.endHandlers.map((_each, handler) => newTask(`run_${index}`, handler, clock.now())),
    )
      .flat()
      .map((task) => [task.key, task]),
  );
  const deps: EndHandlersDeps = {
    tasks: memoryTasks(tasks, events),
    runs: { find: async (_, id) => ({ ...ended, id }) },
    definitions: { byHash: async () => workflow, require: () => workflow },
    starter: {
      async start({ handles = '' }) {
        started.push(handles);
        if (start) return { ...ended, ...(await start(handles)) };
        tasks.delete(handles);
        return { ...ended, handles };
      },
    },
    evaluator: createEvaluator(threads),
    async send(_, message, signal) {
      sent.push(message);
      return send ? send(message, signal) : { id: `msg_${sent.length}` };
    },
    logger: createLogger({ serviceId: 'workflow', output: logs, clock }),
    ...{ clock, random: systemRandom() },
  };
  const handlers = new EndHandlers(deps);
  onTestFinished(async () => {
    await handlers.stop();
    await threads.close();
  });
  /** Moves time on, and handles the tasks that are due then. */
  const wakeAfter = (ms: number): void => {
    clock.advance(ms);
    handlers.ended({ endTasks: '{"failed":[0]}', status: 'failed' });
  };
  return { handlers, clock, logs, tasks, sent, started, events, deps, wakeAfter };
}

type KeptTask = EndTask & { dueAt: number };

function newTask(runId: string, handler: number, at: number): KeptTask {
  return { key: `${runId}/${handler}`, runId, handler, attempts: 0, endedAt: at, dueAt: at };
}

function memoryTasks(tasks: Map<string, KeptTask>, events: EventRecord[]): EndTaskStore {
  const byTime = () => [...tasks.values()].toSorted((a, b) => a.dueAt - b.dueAt);
  return {
    async claim({ now, until }, limit) {
      const due = byTime().filter(({ dueAt }) => dueAt <= now);
      return due.slice(0, limit).map((task) => {
        task.dueAt = until;
        return { ...task, attempts: task.attempts + 1 };
      });
    },
    nextDue: async () => byTime()[0]?.dueAt ?? null,
    async postpone(key, dueAt) {
      const task = tasks.get(key);
      if (task) Object.assign(task, { dueAt, attempts: task.attempts + 1 });
    },
    async release(key, dueAt) {
      const task = tasks.get(key);
      if (task) task.dueAt = dueAt;
    },
    async finish(key, event) {
      if (tasks.delete(key) && event) events.push(event);
    },
  };
}
