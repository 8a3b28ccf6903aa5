import { PlatformCallError } from '../failure.ts';
import { type Halt, NEVER } from './replay-end.ts';
import { Semaphore } from './semaphore.ts';

/** Maximum number of in-flight requests to the workflow run. */
const MAX_CALLS = 16;
/** Codes of errors that the workflow function causes and can catch. All other errors end the replay. */
const FUNCTION_FAULTS = new Set(['PERMISSION_DENIED', 'VALIDATION_ERROR', 'PAYLOAD_TOO_LARGE']);
/** Error codes from the workflow run that stop the replay. */
const RUN_ENDED = new Set(['CONFLICT', 'WORKFLOW_DEFINITION_CHANGED']);

/** Sends the calls of one replay to its workflow run. After the end of the replay, calls never resolve. */
export class RunCalls {
  readonly #permits = new Semaphore(MAX_CALLS);
  readonly #halted = Promise.withResolvers<Halt>();
  #isOver = false;

  /** Resolves if the replay is halted before its workflow function returns. */
  get halted(): Promise<Halt> {
    return this.#halted.promise;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Ends the replay. The returned promise never resolves, so that the workflow function does not continue. */
  halt(why: Halt): Promise<never> {
    this.close();
    this.#halted.resolve(why);
    return NEVER;
  }

  close(): void {
    this.#isOver = true;
  }

  /**
   * Performs a call to the workflow run. Throws only errors that the workflow function can catch. All other errors end
   * the replay.
   */
  async ask<T>(call: () => Promise<T>): Promise<T> {
    if (this.#isOver) return NEVER;
    try {
      const answer = await this.#permits.run(call);
      return this.#isOver ? await NEVER : answer;
    } catch (error) {
      if (this.#isOver) return NEVER;
      const code = error instanceof PlatformCallError ? error.code : '';
      if (FUNCTION_FAULTS.has(code)) throw error;
      if (RUN_ENDED.has(code)) return this.halt({ end: 'suspended' });
      return this.halt({ end: 'broke', message: `The workflow's run cannot be reached: ${String(error)}` });
    }
  }
}
