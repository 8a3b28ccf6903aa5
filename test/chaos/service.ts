import { setTimeout as pause } from 'node:timers/promises';
import {
  type CallInput,
  type Endpoint,
  postCancelRun,
  type ReplyOf,
  sendSignal,
  startRun,
} from '../../src/contracts/index.ts';
import { PlatformError } from '../../src/kit/errors.ts';
import { type DaemonProcess, startProcess } from '../daemons/workflow/support/process.ts';

/** What a caller gets while the service is away, or on its way out. */
const AWAY = new Set(['UPSTREAM_UNAVAILABLE', 'UPSTREAM_TIMEOUT', 'SERVICE_UNAVAILABLE']);
const PAUSE_MS = 20;

/** A workflow service that is killed and started again under its callers, who try until they are answered. */
export class MortalService {
  readonly #dataDir: string;
  readonly #config: object;
  #current: Promise<DaemonProcess>;

  constructor(dataDir: string, config: object) {
    this.#dataDir = dataDir;
    this.#config = config;
    this.#current = startProcess(dataDir, config);
  }

  async ready(): Promise<void> {
    await this.#current;
  }

  /** Resolves once the next process listens. */
  async kill(): Promise<void> {
    const before = await this.#current;
    this.#current = before.kill('SIGKILL').then(() => startProcess(this.#dataDir, this.#config, before));
    await this.#current;
  }

  async call<E extends Endpoint>(endpoint: E, input: CallInput<E>): Promise<ReplyOf<E>> {
    for (;;) {
      try {
        return await (await this.#current).call(endpoint, input);
      } catch (error) {
        if (!(error instanceof PlatformError && AWAY.has(error.code))) throw error;
        await pause(PAUSE_MS);
      }
    }
  }

  /** The same run for the same key, however often its answer is lost. */
  async start(workflowId: string, input: object, idempotencyKey: string): Promise<string> {
    const body = { workflowId, input, idempotencyKey };
    return (await this.call(startRun, { body: body as never })).run.id;
  }

  /** A run that has ended takes none. */
  async signal(runId: string, name: string): Promise<void> {
    const params = { runId: runId as never, name };
    await this.#unless('CONFLICT', this.call(sendSignal, { params, body: { payload: null } as never }));
  }

  async cancel(runId: string): Promise<void> {
    const params = { runId: runId as never };
    await this.#unless('WORKFLOW_ALREADY_CANCELLED', this.call(postCancelRun, { params }));
  }

  async #unless(code: string, called: Promise<unknown>): Promise<void> {
    try {
      await called;
    } catch (error) {
      if (!(error instanceof PlatformError && error.code === code)) throw error;
    }
  }
}
