import { messageOf } from '../../../../kit/errors/errors.ts';
import { seconds } from '../../../../kit/time/duration.ts';
import type { Cluster, EngineDeps, EngineHost } from './ports.ts';
import { recover } from './recovery.ts';

const SWEEP_MS = seconds(3);

/** Recovers the runs of dead processes while this process works. Every process of the store does so. */
export class Sweeper {
  readonly #deps: EngineDeps;
  readonly #cluster: Cluster;
  readonly #host: Pick<EngineHost, 'isWorking' | 'requestTick' | 'cancelById'>;
  #cancelTimer: () => void = () => {};
  #sweeping: Promise<void> | undefined;

  constructor(
    deps: EngineDeps,
    cluster: Cluster,
    host: Pick<EngineHost, 'isWorking' | 'requestTick' | 'cancelById'>,
  ) {
    this.#deps = deps;
    this.#cluster = cluster;
    this.#host = host;
  }

  start(): void {
    // The members report an ended member at once. The timer repeats sweeps that failed or that a dead process began.
    this.#cluster.onEnded(() => this.#sweep());
    this.#sweepLater();
  }

  async stop(): Promise<void> {
    this.#cancelTimer();
    await this.#sweeping;
  }

  #sweepLater(): void {
    this.#cancelTimer = this.#deps.clock.after(SWEEP_MS, () => {
      void this.#sweep().then(() => {
        if (this.#host.isWorking) this.#sweepLater();
      });
    });
  }

  /** Never rejects, because the next sweep repeats a failed one. */
  #sweep(): Promise<void> {
    this.#sweeping ??= this.#sweepNow()
      .catch((error) => {
        const message = `The runs of ended services could not be recovered: ${messageOf(error)}`;
        this.#deps.logger.error(message, { error });
      })
      .finally(() => {
        this.#sweeping = undefined;
      });
    return this.#sweeping;
  }

  async #sweepNow(): Promise<void> {
    const { store, clock } = this.#deps;
    if (!this.#host.isWorking) return;
    const ended = await this.#cluster.store.endDead(clock.now());
    const isAnyRecovered = await recover(this.#deps);
    if (isAnyRecovered) this.#host.requestTick();
    if (ended === 0) return;
    // The dead processes may not have completed these cancellations.
    for (const id of await store.boots.leftToCancel()) void this.#host.cancelById(id);
  }
}
