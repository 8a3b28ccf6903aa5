import type { ReadySteps, RecalledSteps, RunError, StepAnswer } from '../../../../contracts/index.ts';
import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { RunRecord } from '../../../../store/ports/index.ts';
import { replayIsOver } from '../code/replay-errors.ts';
import type { ReplayCalls, Replays } from '../code/replays.ts';
import type { CompiledCode } from '../definition/compiled-workflow.ts';
import type { AbortError, ReplayStart } from '../run/effects.ts';
import type { ReplayOutcome, RunEvent } from '../run/events.ts';
import { runSpan } from '../run/trace.ts';
import { StepFailure } from '../steps/retry-policy.ts';
import type { Inspections } from './inspections.ts';

export interface ReplayRunnerDeps {
  run: RunRecord;
  code: CompiledCode;
  replays: Replays;
  clock: Clock;
  random: Random;
  inspections: Inspections;
  dispatch(event: RunEvent): void;
  /** Callback that is called when the replay has ended, before the run receives the end event. */
  over(): void;
}

/**
 * Maximum duration of a `watch` request for changed steps, in ms. Afterwards, the request is answered even if no step
 * has changed.
 */
const WATCH_MS = seconds(20);

type Reply = StepAnswer | RecalledSteps | ReadySteps | { begun: true };
interface Settled {
  resolve(reply: Reply): void;
  reject(error: unknown): void;
}
interface Current {
  id: number;
  controller: AbortController;
  requests: Map<number, Settled>;
  isOpen: boolean;
}

/**
 * Runs the replays of a workflow function, one at a time. Each call of the function to the engine becomes an event and
 * waits for a reply.
 */
export class ReplayRunner {
  readonly #deps: ReplayRunnerDeps;
  #current: Current | null = null;
  #lastRequest = 0;

  constructor(deps: ReplayRunnerDeps) {
    this.#deps = deps;
  }

  get isInFlight(): boolean {
    return this.#current !== null;
  }

  async start(start: ReplayStart): Promise<void> {
    const { run, replays, random, dispatch, over } = this.#deps;
    const token = random.secret(16);
    const current: Current = {
      ...{ id: start.replay, controller: new AbortController(), requests: new Map(), isOpen: true },
    };
    this.#current = current;
    const close = replays.open(run.id, token, this.#callsOf(current, start));
    const outcome = await this.#run(current, start, token);
    close();
    current.isOpen = false;
    const error = replayIsOver();
    for (const request of current.requests.values()) request.reject(error);
    this.#current = null;
    over();
    dispatch({
      type: 'replay.ended',
      ...{ replay: start.replay, outcome, isAborted: current.controller.signal.aborted },
    });
  }

  abort(reason: AbortError | PlatformError): void {
    const error = reason instanceof PlatformError ? reason : new PlatformError(reason.code, reason.message);
    this.#current?.controller.abort(error);
  }

  reply(request: number, reply: Reply): void {
    this.#current?.requests.get(request)?.resolve(reply);
    this.#current?.requests.delete(request);
  }

  refuse(request: number, { code, message, details }: RunError): void {
    const error = new PlatformError(code as PlatformError['code'], message, { details });
    this.#current?.requests.get(request)?.reject(error);
    this.#current?.requests.delete(request);
  }

  /** Runs one replay. Returns a failure instead of throwing an error. */
  async #run({ controller: { signal } }: Current, start: ReplayStart, token: string): Promise<ReplayOutcome> {
    const { run, code, replays, random, inspections, dispatch } = this.#deps;
    const { jobKey, seed, startedAt, remembered, recalls, marksBegin, timeoutMs, isAlone } = start;
    try {
      signal.throwIfAborted();
      const end = await replays.run({
        ...{ code, run, signal, timeoutMs, alone: isAlone },
        requestId: `${run.id}/${jobKey}/${random.uuid().slice(0, 18)}`,
        spanId: runSpan(run.id),
        input: JSON.parse(run.input),
        context: {
          ...{ token, seed, startedAt, remembered },
          ...(recalls ? { recalls: true } : {}),
          ...(marksBegin ? { marksBegin: true } : {}),
        },
        log: (level, message) => dispatch({ type: 'logged', level, message, job: jobKey }),
      });
      if (end.end !== 'broke') return end;
      return { end: 'failed', failure: inspections.failureOf(brokenReplay(end.message)) };
    } catch (error) {
      return { end: 'failed', failure: inspections.failureOf(signal.aborted ? signal.reason : error) };
    }
  }

  #callsOf(current: Current, { replay, marksBegin }: ReplayStart): ReplayCalls {
    const { clock, dispatch } = this.#deps;
    const ask = <Answer extends Reply>(eventOf: (request: number) => RunEvent): Promise<Answer> =>
      this.#ask(current, eventOf) as Promise<Answer>;
    return {
      async begin() {
        if (!current.isOpen) throw replayIsOver();
        if (marksBegin) await ask((request) => ({ type: 'replay.begun', replay, request }));
        else dispatch({ type: 'replay.begun', replay, request: null });
      },
      recall: (after) => ask((request) => ({ type: 'replay.recalled', replay, request, after })),
      enter: (step) => ask((request) => ({ type: 'replay.entered', replay, request, step })),
      settle: (step) => ask((request) => ({ type: 'replay.settled', replay, request, step })),
      async watch() {
        let stop = (): void => {};
        try {
          return await ask<ReadySteps>((request) => {
            stop = clock.after(WATCH_MS, () => dispatch({ type: 'replay.unwatched', replay, request }));
            return { type: 'replay.watched', replay, request };
          });
        } finally {
          stop();
        }
      },
    };
  }

  async #ask(current: Current, eventOf: (request: number) => RunEvent): Promise<Reply> {
    if (!current.isOpen) throw replayIsOver();
    const request = ++this.#lastRequest;
    const { promise, resolve, reject } = Promise.withResolvers<Reply>();
    current.requests.set(request, { resolve, reject });
    this.#deps.dispatch(eventOf(request));
    return promise;
  }
}

/** Returns a retryable failure for a workflow function that lost the connection to its run. */
function brokenReplay(message: string): StepFailure {
  return new StepFailure('network', { code: 'UPSTREAM_UNAVAILABLE', message, details: {} });
}
