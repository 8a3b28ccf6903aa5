import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
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
  /** Whether the run was ready before this boot. */
  isFromBefore: boolean;
}

/** Parameters of a replay beside the run's input. */
export interface PassStart {
  jobKey: string;
  seed: string;
  startedAt: number;
  /** Number of finished steps. */
  remembered: number;
  /** Whether earlier replays recorded steps. */
  knows: boolean;
  timeoutMs: number;
  /** Reserves the process for this call. */
  alone: boolean;
}

/** Runs the replays of a run one at a time. Each holds a slot, and is in flight once its handler begins. */
export class PassRunner {
  readonly #deps: PassRunnerDeps;
  #withdraw: (() => void) | null = null;
  #holdsSlot = false;
  #isInFlight = false;
  #stopFlush = (): void => {};

  constructor(deps: PassRunnerDeps) {
    this.#deps = deps;
  }

  /** Whether the run waits for a slot. */
  get isQueued(): boolean {
    return this.#withdraw !== null;
  }

  /** Returns false while the run waits for a slot; the run advances when it gets one. */
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

  /** Marks the run as in flight, so that a crash counts against it. False when another boot has claimed it. */
  async begun(): Promise<boolean> {
    const { recorder, journal, clock } = this.#deps;
    if (this.#isInFlight) return true;
    this.#isInFlight = true;
    recorder.enterFlight();
    if (this.#mustMarkFirst) return journal.flush();
    this.#stopFlush = clock.after(BEGUN_FLUSH_MS, () => void journal.flush());
    return true;
  }

  /** Runs the replay. Returns failures instead of throwing them. */
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

  /** Ends the replay and releases its slot. */
  end(): void {
    this.#stopFlush();
    if (this.#isInFlight) this.#deps.recorder.leaveFlight();
    this.#isInFlight = false;
    this.freeSlot();
  }

  /** The function may have crashed an earlier boot, so it begins only after its in-flight mark is on disk. */
  get #mustMarkFirst(): boolean {
    const { run, isFromBefore } = this.#deps;
    return isFromBefore || run.crashes + run.kills > 0;
  }
}
