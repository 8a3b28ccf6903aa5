import type { Clock } from '../../../../kit/clock.ts';
import type { Random } from '../../../../kit/random.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';
import type { FairSlots } from '../engine/slots.ts';
import type { RunJournal } from '../run/run-journal.ts';
import type { RunRecorder } from '../run/run-recorder.ts';
import type { RunState } from '../run/run-state.ts';
import { runSpan } from '../run/run-trace.ts';
import { type StepFailure, toStepFailure } from '../steps/retry-policy.ts';
import { BEGUN_FLUSH_MS } from '../steps/step-kind.ts';
import type { CodePass } from './code-pass.ts';
import { brokenPass, type Came } from './code-verdict.ts';
import type { PassDesk } from './pass-desk.ts';

export interface PassRunnerDeps {
  run: RunRecord;
  code: CompiledCode;
  journal: RunJournal;
  recorder: RunRecorder;
  state: RunState;
  slots: FairSlots;
  passes: PassDesk;
  clock: Clock;
  random: Random;
  /** It was ready before this boot. */
  isFromBefore: boolean;
}

/** What a pass is given beside the run's input. */
export interface PassStart {
  jobKey: string;
  seed: string;
  startedAt: number;
  /** Steps that have ended. */
  remembered: number;
  /** There are steps of earlier passes. */
  knows: boolean;
  timeoutMs: number;
  /** Its process runs no other call. */
  alone: boolean;
}

/** Runs the function of a run, one pass at a time: with a slot, and in flight once its handler begins. */
export class PassRunner {
  readonly #deps: PassRunnerDeps;
  #withdraw: (() => void) | null = null;
  #holdsSlot = false;
  #isInFlight = false;
  #stopFlush = (): void => {};

  constructor(deps: PassRunnerDeps) {
    this.#deps = deps;
  }

  /** It waits for a slot. */
  get isQueued(): boolean {
    return this.#withdraw !== null;
  }

  /** False until the run has a slot; it advances once it does. */
  takeSlot(): boolean {
    if (this.#withdraw) return false;
    const { run, slots, state } = this.#deps;
    if (!this.#holdsSlot && !slots.tryTake(run.tenantId)) {
      this.#withdraw = slots.ask(run.tenantId, () => {
        this.#withdraw = null;
        this.#holdsSlot = true;
        if (state.departure) this.freeSlot();
        else state.advance();
      });
      return false;
    }
    this.#holdsSlot = true;
    return true;
  }

  freeSlot(): void {
    this.#withdraw?.();
    this.#withdraw = null;
    if (this.#holdsSlot) this.#deps.slots.release(this.#deps.run.tenantId);
    this.#holdsSlot = false;
  }

  /** The handler begins: the run may be to blame for a crash from now on. False when another boot holds the run by now. */
  async begun(): Promise<boolean> {
    const { recorder, journal, clock } = this.#deps;
    if (this.#isInFlight) return true;
    this.#isInFlight = true;
    recorder.enterFlight();
    if (this.#mustMarkFirst) return journal.flush();
    this.#stopFlush = clock.after(BEGUN_FLUSH_MS, () => void journal.flush());
    return true;
  }

  /** Runs the pass. Failures are returned, not thrown. */
  async run(own: CodePass, start: PassStart): Promise<Came | StepFailure> {
    const { run, code, journal, passes, random } = this.#deps;
    const { jobKey, timeoutMs, alone, seed, startedAt, remembered, knows } = start;
    const close = passes.open(run.id, own.token, own.calls);
    try {
      if (journal.isClaiming) await journal.flush();
      own.signal.throwIfAborted();
      const came = await passes.run({
        code,
        run,
        requestId: `${run.id}/${jobKey}/${random.uuid().slice(0, 18)}`,
        spanId: runSpan(run.id),
        input: JSON.parse(run.input),
        pass: {
          ...{ token: own.token, seed, startedAt, remembered },
          ...(knows ? { recalls: true } : {}),
          ...(this.#mustMarkFirst ? { marksBegin: true } : {}),
        },
        timeoutMs,
        signal: own.signal,
        alone,
        log: (level, message) => {
          journal.log({ level, message, job: jobKey });
          void journal.flush();
        },
      });
      return came.end === 'broke' ? brokenPass(came.message) : came;
    } catch (error) {
      return toStepFailure(own.signal.aborted ? own.signal.reason : error);
    } finally {
      close();
    }
  }

  /** The pass is over. */
  end(): void {
    this.#stopFlush();
    if (this.#isInFlight) this.#deps.recorder.leaveFlight();
    this.#isInFlight = false;
    this.freeSlot();
  }

  /** An earlier boot may have died of the function, so it begins once that mark is on disk. */
  get #mustMarkFirst(): boolean {
    const { run, isFromBefore } = this.#deps;
    return isFromBefore || run.crashes + run.kills > 0;
  }
}
