import { CancelledError } from '../../../contracts/cancelled-error.ts';
import type { EnterStep, ReadySteps, StepAnswer } from '../../../contracts/index.ts';
import { type Branch, newBranch, sideBySide } from './branches.ts';
import { Recalled } from './recalled.ts';
import { type Halt, NEVER } from './replay-end.ts';
import type { ReplayLink, StepRequest } from './replay-link.ts';
import { RunCalls } from './run-calls.ts';
import { StepCalls } from './step-calls.ts';
import { failureOf } from './step-ends.ts';
import { Turns } from './turns.ts';

/** Delay before the next poll of the workflow run if the last poll reported no change. */
const WATCH_PAUSE_MS = 100;
const NOTHING_READY: ReadySteps = { ready: [], stop: [] };

/** One replay of a workflow function. The replay is suspended when all of its branches wait. */
export class Replay {
  readonly trunk: Branch;
  readonly #link: ReplayLink;
  readonly #run = new RunCalls();
  readonly #steps: StepCalls;
  readonly #recalled = new Recalled();
  readonly #turns = new Turns();
  /** Callbacks that continue waiting branches, keyed by the id of the step that the branch waits for. */
  readonly #waiting = new Map<string, () => void>();
  readonly #branches = new Set<Branch>();
  /** Number of running branches. Branches that wait for a step or for child branches are not counted. */
  #active = 1;
  /** Number of finished steps that this replay has reached. */
  #reached = 0;
  #isWatching = false;

  constructor(link: ReplayLink) {
    this.#link = link;
    this.#steps = new StepCalls(link, this.#run, () => this.#watchOn());
    this.trunk = this.#openBranch('', link.replay.startedAt, { isCancelled: false, shields: 0 });
  }

  /** Resolves if the replay ends before its workflow function returns. */
  get halted(): Promise<Halt> {
    return this.#run.halted;
  }

  /** Whether the workflow function has not yet reached all steps that were recorded before this replay. */
  get isReplaying(): boolean {
    return this.#reached < this.#link.replay.remembered;
  }

  /** Id of a recorded step that the workflow function has not reached in this replay. */
  get missed(): string | undefined {
    return this.#recalled.missed();
  }

  /** Id of a step that was started and whose end the workflow function has not awaited. */
  get unfinished(): string | undefined {
    return [...this.#branches].find(({ busyWith }) => busyWith !== null)?.busyWith ?? undefined;
  }

  /** Fetches the steps of earlier replays in pages, which saves one request per step. */
  async recall(): Promise<void> {
    for (let after: number | null = 0; after !== null; ) {
      const from: number = after;
      const page = await this.#run.ask(() => this.#link.recall(from));
      this.#recalled.add(page.steps);
      after = page.next;
    }
  }

  async take(branch: Branch, id: string, { run, decode, ...request }: StepRequest): Promise<unknown> {
    if (branch.busyWith !== null) throw sideBySide(branch.busyWith, id);
    branch.busyWith = id;
    this.#turns.arrive(branch);
    try {
      const isCleanUp = branch.isCancelled || branch.shields > 0;
      const step = {
        ...{ id, branch: branch.id, place: branch.place++, ...request },
        ...(isCleanUp ? { cleanUp: true } : {}),
      } as EnterStep;
      const answer = await this.#outlast(branch, step, run);
      await this.#awaitTurn(answer.order, branch);
      this.#reached++;
      branch.now = answer.at;
      if (answer.state === 'failed') throw failureOf(branch, id, answer);
      return decode ? await decode(answer.output) : answer.output;
    } finally {
      branch.busyWith = null;
    }
  }

  /**
   * Runs branches concurrently until all branches have ended. Rejects with a CancelledError if a branch was cancelled.
   * Otherwise, rejects with the first failure in branch order.
   */
  async fork(
    parent: Branch,
    bodies: ReadonlyArray<(branch: Branch) => Promise<unknown>>,
  ): Promise<unknown[]> {
    if (parent.busyWith !== null) throw sideBySide(parent.busyWith, 'ctx.all');
    if (bodies.length === 0) return [];
    const fork = ++parent.forks;
    parent.busyWith = 'ctx.all';
    this.#turns.arrive(parent);
    let open = bodies.length;
    this.#active += open - 1;
    const ends = await Promise.allSettled(
      bodies.map(async (body, index) => {
        const id = `${parent.id === '' ? '' : `${parent.id}.`}${fork}-${index}`;
        const branch = this.#openBranch(id, parent.now, parent);
        try {
          return await body(branch);
        } finally {
          parent.now = Math.max(parent.now, branch.now);
          // When the last child branch ends, the parent branch continues in place of that child branch.
          this.#turns.end(branch, --open === 0 ? parent : null);
          if (open > 0) this.#leave();
        }
      }),
    );
    parent.busyWith = null;
    return valuesOf(parent, ends);
  }

  close(): void {
    this.#run.close();
    this.#turns.stop();
  }

  #openBranch(id: string, now: number, parent: Pick<Branch, 'isCancelled' | 'shields'>): Branch {
    const branch = newBranch(id, now, parent);
    this.#branches.add(branch);
    return branch;
  }

  #halt(why: Halt): Promise<never> {
    this.#turns.stop();
    return this.#run.halt(why);
  }

  /** Resolves when all step completions with a lower `order` have been delivered to their branches. */
  async #awaitTurn(order: number, branch: Branch): Promise<void> {
    const turn = this.#turns.wait(order, branch);
    void this.#turns.give().then(() => this.#waiting.size === 0 && this.#endStray());
    await turn;
    if (this.#run.isOver) await NEVER;
  }

  /**
   * Halts the replay if all active branches wait for a step that the function no longer reaches. This happens if the
   * code of the workflow function has changed.
   */
  #endStray(): void {
    if (this.#run.isOver || this.#turns.held === 0 || this.#turns.held !== this.#active) return;
    void this.#halt({ end: 'strayed', missed: this.#recalled.missedByEnd() });
  }

  /** Marks an ended branch as inactive. Halts the replay if no other branch can continue. */
  #leave(): void {
    if (--this.#active === 0) void this.#halt({ end: 'suspended' });
    else if (this.#waiting.size === 0) this.#endStray();
  }

  /** Resolves when the branch can continue. If no other branch is active, suspends the replay and never resolves. */
  #blocked(id: string): Promise<void> {
    if (this.#active === 1) return this.#halt({ end: 'suspended' });
    this.#active--;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.set(id, resolve);
    this.#watchOn();
    return promise;
  }

  #watchOn(): void {
    if (!this.#isWatching && !this.#run.isOver) void this.#watch();
  }

  async #watch(): Promise<void> {
    this.#isWatching = true;
    while (this.#waiting.size + this.#steps.running > 0 && !this.#run.isOver) {
      const { ready, stop } = await this.#link.watch().catch(() => NOTHING_READY);
      if (ready.length + stop.length === 0 && ready !== NOTHING_READY.ready) this.#endStray();
      for (const id of stop) this.#steps.cancel(id);
      for (const id of ready) this.#wake(id);
      const hasNews = ready.length + stop.length > 0;
      await new Promise((resolve) => setTimeout(resolve, hasNews ? 0 : WATCH_PAUSE_MS));
    }
    this.#isWatching = false;
  }

  #wake(id: string): void {
    const wake = this.#waiting.get(id);
    if (!wake || this.#run.isOver) return;
    this.#waiting.delete(id);
    this.#active++;
    wake();
  }

  /**
   * Returns the final answer for a step. Requests the step from the run again after each wait, until the step has
   * ended.
   */
  async #outlast(
    branch: Branch,
    step: EnterStep,
    run: StepRequest['run'],
  ): Promise<Extract<StepAnswer, { at: number }>> {
    let answer = this.#recalled.take(step) ?? (await this.#steps.enter(branch, step, run));
    while (!('at' in answer)) {
      await this.#blocked(step.id);
      answer = await this.#steps.enter(branch, step, run);
    }
    return answer;
  }
}

function valuesOf(parent: Branch, ends: ReadonlyArray<PromiseSettledResult<unknown>>): unknown[] {
  const failures = ends.flatMap((end) => (end.status === 'rejected' ? [end.reason as unknown] : []));
  const cancelled = failures.find((failure) => failure instanceof CancelledError);
  if (cancelled) parent.isCancelled = true;
  if (failures.length > 0) throw cancelled ?? failures[0];
  return ends.map((end) => (end as PromiseFulfilledResult<unknown>).value);
}
