import { Budget, OverBudget } from '../../../../kit/expressions/budget.ts';
import { redactText } from '../../../../kit/telemetry/redact.ts';
import type {
  AttemptRecord,
  EventRecord,
  LogLineRecord,
  RunProgress,
  RunRecord,
} from '../../../../store/ports/index.ts';
import type { CompiledStep } from '../definition/compiled-workflow.ts';
import { UNITS_PER_EVALUATION } from '../definition/evaluator.ts';
import type { Scope } from '../definition/expressions.ts';
import type { Evaluable } from '../definition/templates.ts';
import type { Effect, EvaluationTarget } from '../run/effects.ts';
import type { Stamp } from '../run/events.ts';
import { evaluationFailure, type Failure } from '../run/failure.ts';
import type { Program } from '../run/program.ts';
import { type JobState, type RunState, type StepKey, type StepState, stepKeyOf } from '../run/state.ts';
import type { Transition, Write } from '../run/writes.ts';

/**
 * Maximum number of log lines that are stored for a run each time a service process claims the run. The limit prevents
 * a logging loop from filling the disk.
 */
const MAX_LOG_LINES = 10_000;
const MAX_DEADLINES = 10_000;
/** Maximum duration of a wait with a monotonic deadline. Longer waits use the wall clock only. */
const MAX_SHORT_WAIT_MS = 3_600_000;

export type Evaluated<Value> = { value: Value } | { failure: Failure };

/** A transition in progress, with its writes and effects so far. */
export class Turn {
  readonly state: RunState;
  readonly program: Program;
  readonly now: number;
  readonly monotonic: number;
  readonly fraction: number;
  readonly #effects: Effect[] = [];
  readonly #records: Write[] = [];
  readonly #jobs = new Set<JobState>();
  readonly #steps = new Set<StepState>();
  readonly #slots: Array<StepKey | 'replay'> = [];
  readonly #freeSlots: number;
  #isRunTouched = false;
  #unitsLeft: number;
  readonly #units: number;

  constructor(state: RunState, { now, monotonic, fraction, units, slots }: Stamp, program: Program) {
    this.state = state;
    this.program = program;
    this.now = now;
    this.monotonic = monotonic;
    this.fraction = fraction;
    this.#units = units;
    this.#unitsLeft = units;
    this.#freeSlots = slots;
  }

  result(): Transition {
    const { run } = this.state;
    const writes: Write[] = this.#isRunTouched ? [{ type: 'run', progress: progressOf(run) }] : [];
    for (const { record } of this.#jobs) writes.push({ type: 'job', record: { ...record } });
    for (const step of this.#steps)
      writes.push({ type: 'step', key: stepKeyOf(step), record: { ...step.record } });
    writes.push(...this.#records);
    const units = this.#units - Math.max(0, this.#unitsLeft);
    return { writes, effects: this.#effects, slots: this.#slots, units };
  }

  step(step: StepState): CompiledStep {
    return this.program.step(step);
  }

  touchRun(): void {
    this.#isRunTouched = true;
  }

  touchJob(job: JobState): void {
    this.#jobs.add(job);
  }

  touchStep(step: StepState): void {
    this.#steps.add(step);
  }

  attempt(record: AttemptRecord): void {
    this.#records.push({ type: 'attempt', record });
  }

  event(event: Omit<EventRecord, 'at'>): void {
    this.#records.push({ type: 'event', record: { at: this.now, ...event } });
  }

  /** Stores a log line of the run. The message is redacted in the same way as messages of the platform log. */
  log(line: Omit<LogLineRecord, 'at'>): void {
    const lines = ++this.state.logLines;
    if (lines > MAX_LOG_LINES + 1) return;
    const last = { level: 'warn', message: `More than ${MAX_LOG_LINES} lines: the rest is in the log alone` };
    const shown = { ...line, message: redactText(line.message, this.state.run.tenantId) };
    const record = { at: this.now, ...shown, ...(lines > MAX_LOG_LINES ? last : {}) };
    this.#records.push({ type: 'log', record });
  }

  taken(n: number, by: string): void {
    this.#records.push({ type: 'taken', n, by });
  }

  effect(effect: Effect): void {
    this.#effects.push(effect);
  }

  /** Takes one of the free slots of this transition. Returns false if all slots are taken. */
  takeSlot(owner: StepKey | 'replay'): boolean {
    if (this.#slots.length >= this.#freeSlots) return false;
    this.#slots.push(owner);
    return true;
  }

  /** Marks work outside of steps as in flight. A service crash during this work then counts against the run. */
  mark(): void {
    this.state.marks++;
    this.#noteMarks();
  }

  unmark(): void {
    this.state.marks--;
    this.#noteMarks();
  }

  #noteMarks(): void {
    const { run, marks } = this.state;
    if (run.inFlight === marks > 0) return;
    run.inFlight = marks > 0;
    this.touchRun();
  }

  /**
   * Records a monotonic deadline for a wait that begins now and ends at `at`. A wait of at most `MAX_SHORT_WAIT_MS`
   * then ends on time even if the wall clock is set back. Returns `at`.
   */
  note(at: number): number {
    const { deadlines } = this.state;
    const ms = at - this.now;
    if (ms <= 0 || ms > MAX_SHORT_WAIT_MS) return at;
    deadlines.set(at, Math.max(this.monotonic + ms, deadlines.get(at) ?? 0));
    if (deadlines.size > MAX_DEADLINES) deadlines.delete(deadlines.keys().next().value!);
    return at;
  }

  isPast(at: number): boolean {
    return this.leftMs(at) === 0;
  }

  leftMs(at: number): number {
    const byWallClock = at - this.now;
    if (byWallClock <= 0) return 0;
    const end = this.state.deadlines.get(at);
    return end === undefined ? byWallClock : Math.max(0, Math.min(byWallClock, end - this.monotonic));
  }

  /**
   * Returns the value of an expression. If the evaluation needs a worker thread, returns undefined until the event
   * `evaluated` delivers the value.
   */
  ask<Value>(
    id: string,
    what: Evaluable<Value>,
    target: EvaluationTarget,
    scope: () => Scope,
  ): Evaluated<Value> | undefined {
    const answer = this.state.answers.get(id);
    if (answer === 'pending') return undefined;
    if (answer) return answer as Evaluated<Value>;
    const given = scope();
    const atOnce = this.evaluate(what, given);
    if (atOnce) return atOnce;
    this.state.answers.set(id, 'pending');
    this.mark();
    this.effect({ type: 'evaluate', id, target, scope: given });
    return undefined;
  }

  /**
   * Evaluates an expression synchronously. Returns undefined if a worker thread must evaluate the expression.
   * Expressions of a run from before the service start are always evaluated in a worker thread.
   */
  evaluate<Value>(what: Evaluable<Value>, scope: Scope): Evaluated<Value> | undefined {
    if (this.state.isFromBefore && what.expressions.length > 0) return undefined;
    const given = Math.min(UNITS_PER_EVALUATION, this.#unitsLeft);
    const budget = new Budget(given, false);
    try {
      return { value: this.program.evaluate(what, scope, budget) };
    } catch (error) {
      if (error instanceof OverBudget) return undefined;
      return { failure: evaluationFailure(error) };
    } finally {
      this.#unitsLeft -= given - Math.max(0, budget.left);
    }
  }
}

function progressOf(run: RunRecord): RunProgress {
  const { status, ready, reason, rank, wakeAt, deadlineAt, fence, resumeCount } = run;
  const { crashes, kills, inFlight, ending, endingAt, endingHeldAt } = run;
  const { output, error, startedAt, finishedAt } = run;
  return {
    ...{ status, ready, reason, rank, wakeAt, deadlineAt, fence, resumeCount },
    ...{ crashes, kills, inFlight, ending, endingAt, endingHeldAt },
    ...{ output, error, startedAt, finishedAt },
  };
}
