import { CancelledError } from '../../../contracts/cancelled-error.ts';
import type { EnterStep, ReadySteps, SettleStep, StepAnswer } from '../../../contracts/index.ts';
import { PlatformCallError } from '../failure.ts';
import { type Branch, newBranch, runInStep, sideBySide } from './branches.ts';
import type { PassLink, StepRequest } from './pass-link.ts';
import { Recalled } from './recalled.ts';
import { Semaphore } from './semaphore.ts';
import { failureOf, outcomeOf } from './step-ends.ts';
import { faultOf } from './step-failure.ts';
import { Turns } from './turns.ts';

/** Maximum concurrent step functions: each may have platform calls in flight, which are limited too. */
const MOST_AT_ONCE = 32;
/** Maximum in-flight requests to the run. */
const MOST_QUESTIONS = 16;
/** The run's clock ends an attempt; the attempt's signal fires this much later. */
const SIGNAL_LAG_MS = 100;
/** Errors of the function itself, which it may catch; any other error is between the replay and the run. */
const ITS_OWN_FAULT = new Set(['PERMISSION_DENIED', 'VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE']);
/** The run has ended this replay: its function must not continue. */
const OVER = new Set(['CONFLICT', 'WORKFLOW_DEFINITION_CHANGED']);

export type Pass = ReturnType<typeof createPass>;

/** One replay of a function: branches advance while they can, and the replay is suspended when all of them wait. */
export function createPass(link: PassLink) {
  const { pass, signal } = link;
  const halted = Promise.withResolvers<
    { end: 'suspended' } | { end: 'strayed'; missed?: string | undefined } | { end: 'broke'; message: string }
  >();
  const recalled = new Recalled();
  const turns = new Turns();
  const stepsAtWork = new Semaphore(MOST_AT_ONCE);
  const questions = new Semaphore(MOST_QUESTIONS);
  /** Waiting branches, by the step that each waits for. */
  const waiting = new Map<string, () => void>();
  const branches = new Set<Branch>();
  /** Branches that neither wait nor have forked. */
  let active = 1;
  /** Finished steps seen so far, including those of earlier replays. */
  let met = 0;
  let isWatching = false;
  let isOver = false;

  /** Abort controllers of running step functions, by step id. */
  const atWork = new Map<string, AbortController>();
  const trunk = openBranch('', pass.startedAt, { isTold: false, shields: 0 });

  function openBranch(id: string, now: number, parent: Pick<Branch, 'isTold' | 'shields'>): Branch {
    const branch = newBranch(id, now, parent);
    branches.add(branch);
    return branch;
  }

  function halt(why: Parameters<typeof halted.resolve>[0]): Promise<never> {
    close();
    halted.resolve(why);
    return NEVER;
  }

  function close(): void {
    isOver = true;
    turns.stop();
  }

  /** Every runnable branch waits for the end of a step that the changed function no longer reaches. */
  function isStray(): boolean {
    return !isOver && turns.held > 0 && turns.held === active;
  }

  /** Resolves once all earlier completions were delivered. A waiting step may be among them; the watch reports it. */
  async function awaitTurn(order: number, branch: Branch): Promise<void> {
    const turn = turns.wait(order, branch);
    void turns.give().then(() => waiting.size === 0 && endStray());
    await turn;
    if (isOver) await NEVER;
  }

  function endStray(): void {
    if (isStray()) void halt({ end: 'strayed', missed: recalled.missedByEnd() });
  }

  /** Calls the run. Errors that the function must not see end the replay instead. */
  async function ask<T>(call: () => Promise<T>): Promise<T> {
    if (isOver) return NEVER;
    try {
      const answer = await questions.run(call);
      return isOver ? await NEVER : answer;
    } catch (error) {
      if (isOver) return NEVER;
      const code = error instanceof PlatformCallError ? error.code : '';
      if (ITS_OWN_FAULT.has(code)) throw error;
      if (OVER.has(code)) return halt({ end: 'suspended' });
      return halt({ end: 'broke', message: `The workflow's run cannot be reached: ${String(error)}` });
    }
  }

  /** Removes a branch that has ended or is suspended. */
  function leave(): void {
    if (--active === 0) void halt({ end: 'suspended' });
    else if (waiting.size === 0) endStray();
  }

  /** Resolves when the branch may continue; never when no branch can. */
  function blocked(id: string): Promise<void> {
    if (active === 1) return halt({ end: 'suspended' });
    active--;
    const { promise, resolve } = Promise.withResolvers<void>();
    waiting.set(id, resolve);
    watchOn();
    return promise;
  }

  function watchOn(): void {
    if (!isWatching && !isOver) void watch();
  }

  async function watch(): Promise<void> {
    isWatching = true;
    while (waiting.size + atWork.size > 0 && !isOver) {
      const { ready, stop } = await link.watch().catch(() => NOTHING_READY);
      if (ready.length + stop.length === 0 && ready !== NOTHING_READY.ready) endStray();
      for (const id of stop) atWork.get(id)?.abort(new DOMException('The run was cancelled.', 'AbortError'));
      for (const id of ready) {
        const wake = waiting.get(id);
        if (!wake || isOver) continue;
        waiting.delete(id);
        active++;
        wake();
      }
      await new Promise((resolve) =>
        setTimeout(resolve, ready.length + stop.length > 0 ? 0 : WATCH_PAUSE_MS),
      );
    }
    isWatching = false;
  }

  async function take(
    branch: Branch,
    id: string,
    { run, decode, ...request }: StepRequest,
  ): Promise<unknown> {
    if (branch.busyWith !== null) throw sideBySide(branch.busyWith, id);
    branch.busyWith = id;
    turns.arrive(branch);
    try {
      const isCleanUp = branch.isTold || branch.shields > 0;
      const step = {
        ...{ id, branch: branch.id, place: branch.place++, ...request },
        ...(isCleanUp ? { cleanUp: true } : {}),
      } as EnterStep;
      const answer = await outlast(branch, step, run);
      await awaitTurn(answer.order, branch);
      met++;
      branch.now = answer.at;
      if (answer.state === 'failed') throw failureOf(branch, id, answer);
      return decode ? await decode(answer.output) : answer.output;
    } finally {
      branch.busyWith = null;
    }
  }

  /** Requests the step until it has ended, and runs its function when the run's answer says so. */
  async function outlast(
    branch: Branch,
    step: EnterStep,
    run: StepRequest['run'],
  ): Promise<Extract<StepAnswer, { at: number }>> {
    // A local step waits for its slot before it is entered, since its timeout starts then.
    const go = (): Promise<StepAnswer> =>
      run ? stepsAtWork.run(() => goOn(branch, step, run)) : ask(() => link.enter(step));
    let answer = recalled.take(step) ?? (await go());
    while (!('at' in answer)) {
      await blocked(step.id);
      answer = await go();
    }
    return answer;
  }

  async function goOn(
    branch: Branch,
    step: EnterStep,
    run: NonNullable<StepRequest['run']>,
  ): Promise<StepAnswer> {
    let answer = await ask(() => link.enter(step));
    while (answer.state === 'run') answer = await perform(branch, step.id, answer, run);
    return answer;
  }

  async function perform(
    branch: Branch,
    id: string,
    { attempt, idempotencyKey, timeoutMs }: Extract<StepAnswer, { state: 'run' }>,
    run: NonNullable<StepRequest['run']>,
  ): Promise<StepAnswer> {
    if (isOver) return NEVER;
    const time = AbortSignal.timeout(timeoutMs + SIGNAL_LAG_MS);
    const stop = new AbortController();
    atWork.set(id, stop);
    const watchLater = setTimeout(watchOn, WATCH_AFTER_MS);
    const info = { id, attempt, idempotencyKey, signal: AbortSignal.any([signal, time, stop.signal]) };
    const outcome = await outcomeOf(id, () => runInStep(branch, id, () => run(info)));
    clearTimeout(watchLater);
    atWork.delete(id);
    try {
      return await ask(() => link.settle({ id, attempt, outcome } as SettleStep));
    } catch (error) {
      // An output too large to send fails the step, not the function.
      return ask(() => link.settle({ id, attempt, outcome: faultOf(error) } as SettleStep));
    }
  }

  return {
    trunk,
    halted: halted.promise,
    /** Fetches the steps of earlier replays in advance, before the function reaches them one by one. */
    async recall(): Promise<void> {
      for (let after: number | null = 0; after !== null; ) {
        const from: number = after;
        const page = await ask(() => link.recall(from));
        recalled.add(page.steps);
        after = page.next;
      }
    },
    /** A recalled step that the function has not reached. */
    missed: () => recalled.missed(),
    take,
    /** Runs branches concurrently until all have ended. Rejects with the first failure in branch order. */
    async fork(
      parent: Branch,
      bodies: ReadonlyArray<(branch: Branch) => Promise<unknown>>,
    ): Promise<unknown[]> {
      if (parent.busyWith !== null) throw sideBySide(parent.busyWith, 'ctx.all');
      if (bodies.length === 0) return [];
      const fork = ++parent.forks;
      parent.busyWith = 'ctx.all';
      turns.arrive(parent);
      let open = bodies.length;
      active += open - 1;
      const ends = await Promise.allSettled(
        bodies.map(async (body, index) => {
          const id = `${parent.id === '' ? '' : `${parent.id}.`}${fork}-${index}`;
          const branch = openBranch(id, parent.now, parent);
          try {
            return await body(branch);
          } finally {
            parent.now = Math.max(parent.now, branch.now);
            // The last branch passes its turn to the parent.
            turns.end(branch, --open === 0 ? parent : null);
            if (open > 0) leave();
          }
        }),
      );
      parent.busyWith = null;
      const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
      const cancelled = failures.find((failure) => failure instanceof CancelledError);
      if (cancelled) parent.isTold = true;
      if (failures.length > 0) throw cancelled ?? failures[0];
      return ends.map((end) => (end as PromiseFulfilledResult<unknown>).value);
    },
    /** Steps recorded before this replay are still being replayed. */
    get isReplaying() {
      return met < pass.remembered;
    },
    /** A step that was started but not awaited to its end. */
    unfinished: () => [...branches].find(({ busyWith }) => busyWith !== null)?.busyWith ?? undefined,
    /** Detaches the function from its run. */
    close,
  };
}

/** Minimum delay between polls, in case the run answers at once without news. */
const WATCH_PAUSE_MS = 100;
/** Most steps end before a cancellation could arrive. */
const WATCH_AFTER_MS = 50;
const NOTHING_READY: ReadySteps = { ready: [], stop: [] };
const NEVER = new Promise<never>(() => {});
