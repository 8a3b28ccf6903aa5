import { isDeepStrictEqual } from 'node:util';
import type { ErrorClass, PartStatus } from '../../src/contracts/index.ts';
import type { Kind } from './kinds/kinds.ts';
import type { EndedRun } from './read-runs.ts';

/** A run whose start was acknowledged. */
export interface Started {
  id: string;
  kind: Kind;
  isCancelled: boolean;
}

/** Workflows that nothing but others and the schedule start; each has one effect, of its own name. */
const HELPERS: ReadonlySet<string> = new Set(['member', 'leaf', 'tick']);
const LIMITS: Readonly<Record<string, number>> = { lane: 2, latest: 1 };
/** The only class of failures that a step of `flaky` has, beside what deaths do to a command. */
const CLASSES: Readonly<Record<string, readonly ErrorClass[]>> = {
  'main.server': ['server'],
  'main.limited': ['rate_limit'],
  'main.refused': ['validation'],
  'main.thrown': ['rate_limit', 'code', 'server'],
};
const OPEN: ReadonlySet<PartStatus> = new Set(['running', 'waiting', 'interrupted']);
const ENDS: ReadonlySet<string> = new Set(['run.succeeded', 'run.failed', 'run.timed_out', 'run.cancelled']);

/** What is wrong with what became of the runs; `all` newest first. */
export function faultsOf(started: readonly Started[], all: readonly EndedRun[]): string[] {
  const byId = new Map(all.map((ended) => [ended.run.id as string, ended]));
  const known = new Set(started.map(({ id }) => id));
  const twice = all
    .filter(({ run }) => run.parentRunId === null && run.trigger !== 'schedule' && !known.has(run.id))
    .map(({ run }) => `${run.workflowId} ${run.id} was started beside those that were acknowledged`);
  const ofStarted = started.flatMap((one) => {
    const ended = byId.get(one.id);
    if (!ended) return [`${one.kind.workflowId} ${one.id} is lost`];
    return startedFaults(one, ended, all).map((fault) => `${described(ended)} ${fault}`);
  });
  const ofAll = all.flatMap((ended) => runFaults(ended, byId).map((fault) => `${described(ended)} ${fault}`));
  return [...twice, ...ofStarted, ...ofAll, ...laneFaults(all), ...latestFaults(started, all)];
}

const described = ({ run }: EndedRun): string =>
  `${run.workflowId} ${run.id} (${run.status}, ${JSON.stringify(run.input)}, error ${JSON.stringify(run.error)})`;

/** Against what its kind comes to. */
function startedFaults({ kind, isCancelled }: Started, ended: EndedRun, all: readonly EndedRun[]): string[] {
  const { run, jobs, effects } = ended;
  const had = [...effects.keys()];
  if ((isCancelled || kind.isSuperseded) && run.status === 'cancelled')
    return kind.faultsOfCancelled(had, new Map(jobs.map(({ id, status }) => [id, status])));
  const { end } = kind;
  const faults: string[] = [];
  if (run.status !== end.status) return [`should be ${end.status}`];
  if (!isDeepStrictEqual(run.output, end.output)) faults.push(`came to ${JSON.stringify(run.output)}`);
  const inOrder = (names: readonly string[]) => (kind.isSequential ? names : names.toSorted()).join();
  if (inOrder(had) !== inOrder(end.effects)) faults.push(`had ${had} instead of ${end.effects}`);
  const descendants = countDescendants(run.id, all);
  if (descendants !== end.descendants) faults.push(`has ${descendants} descendants, not ${end.descendants}`);
  return faults;
}

function countDescendants(id: string, all: readonly EndedRun[]): number {
  const children = all.filter(({ run }) => run.parentRunId === id);
  return children.reduce((sum, { run }) => sum + 1 + countDescendants(run.id, all), 0);
}

/** What holds for every run. */
function runFaults(
  { run, jobs, steps, events, effects }: EndedRun,
  byId: ReadonlyMap<string, EndedRun>,
): string[] {
  const faults: string[] = [];
  const ends = events.filter(({ type }) => ENDS.has(type)).map(({ type }) => type);
  if (ends.length !== 1) faults.push(`ended ${ends.length} times: ${ends}`);
  for (const [name, keys] of effects)
    if (keys.size !== 1 || keys.has(null))
      faults.push(`had the effect ${name} under ${[...keys].join(', ')}`);
  if (HELPERS.has(run.workflowId) && run.status === 'succeeded' && !effects.has(run.workflowId))
    faults.push('has not had its effect');
  if (run.runAt !== null && run.startedAt !== null && run.startedAt < run.runAt)
    faults.push('began too early');
  const parent = run.parentRunId === null ? undefined : byId.get(run.parentRunId)?.run;
  if (parent && run.finishedAt! > parent.finishedAt!) faults.push(`ended after its parent ${parent.id}`);
  const isOpen = ({ status }: { status: PartStatus }) => OPEN.has(status);
  const open = [...jobs.filter((job) => isOpen(job) || job.status === 'pending'), ...steps.filter(isOpen)];
  for (const { id, status } of open) faults.push(`has the open part ${id}, ${status}`);
  return [...faults, ...steps.flatMap((step) => attemptFaults(run.workflowId, step))];
}

/** A step whose end is on record is not run again, and fails only as its class says. */
function attemptFaults(workflowId: string, { id, history }: EndedRun['steps'][number]): string[] {
  const faults: string[] = [];
  const succeeded = history.filter(({ status }) => status === 'succeeded').length;
  if (succeeded > 1) faults.push(`ran ${id} to its end ${succeeded} times`);
  const classes = workflowId === 'flaky' ? CLASSES[id] : undefined;
  const failed = history.filter(({ status }) => status === 'failed');
  for (const { errorClass } of classes ? failed : [])
    if (!classes!.includes(errorClass!)) faults.push(`failed ${id} with the class ${errorClass}`);
  // Its class is not one of those that its `retry` names.
  if (id === 'main.refused' && workflowId === 'flaky' && failed.length > 1)
    faults.push(`tried ${id} again after a failure that is final`);
  return faults;
}

/** No more runs of a key at a time than its limit. */
function laneFaults(all: readonly EndedRun[]): string[] {
  return Object.entries(LIMITS).flatMap(([workflowId, limit]) => {
    const began = all.filter(({ run }) => run.workflowId === workflowId && run.startedAt !== null);
    const lanes = Map.groupBy(began, ({ run }) => laneOf(run.input));
    return [...lanes].flatMap(([lane, runs]) => {
      // Of the same millisecond the ends come first.
      const changes = runs
        .flatMap(({ run }) => [
          { at: run.startedAt!, by: 1 },
          { at: run.finishedAt!, by: -1 },
        ])
        .toSorted((a, b) => a.at - b.at || a.by - b.by);
      let [now, most] = [0, 0];
      for (const { by } of changes) {
        now += by;
        most = Math.max(most, now);
      }
      return most > limit ? [`${most} runs of ${workflowId} were in lane ${lane} at a time`] : [];
    });
  });
}

/** The newest of each key is cancelled by no other. */
function latestFaults(started: readonly Started[], all: readonly EndedRun[]): string[] {
  const cancelled = new Set(started.filter(({ isCancelled }) => isCancelled).map(({ id }) => id));
  const lanes = Map.groupBy(
    all.filter(({ run }) => run.workflowId === 'latest'),
    ({ run }) => laneOf(run.input),
  );
  return [...lanes.values()].flatMap(([newest]) =>
    newest!.run.status === 'cancelled' && !cancelled.has(newest!.run.id)
      ? [`${described(newest!)} was cancelled, and is the newest of its lane`]
      : [],
  );
}

const laneOf = (input: unknown): number => (input as { lane: number }).lane;
