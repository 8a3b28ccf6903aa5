import type { Degradation, ServiceName } from '../contracts/index.ts';
import { PlatformError } from '../kit/errors/errors.ts';
import type { Logger } from '../kit/telemetry/logger.ts';
import { type Clock, systemClock } from '../kit/time/clock.ts';
import { seconds } from '../kit/time/duration.ts';

/** Maximum time without a response from the store. After this time, the service is not ready. */
const MAX_STORE_SILENCE_MS = seconds(5);
/**
 * Maximum time that a readiness request waits for the store. The wait uses the system clock, even in tests with a fake
 * clock.
 */
const PROBE_WAIT_MS = 250;

export interface ReadinessDeps {
  service: ServiceName;
  clock: Clock;
  logger: Logger;
  isDraining: () => boolean;
  /** Resolves when the store has responded. Undefined for services without a store. */
  probeStore?: (() => Promise<unknown>) | undefined;
  /**
   * `isBehind` resolves to true if the lock file has changes that are not loaded. Undefined for services without
   * plugins.
   */
  plugins?: { isBehind(): Promise<boolean> } | undefined;
  /** Returns the services of this node whose calls this service forwards, and which have not started yet. */
  starting?: (() => readonly ServiceName[]) | undefined;
}

/** Determines whether a service is ready for requests from load balancers. */
export class Readiness {
  readonly #deps: ReadinessDeps;
  #probe: Promise<void> | undefined;
  /**
   * Start time of the first probe since the latest response from the store. Undefined if all probes have been answered.
   */
  #unansweredSince: number | undefined;
  /** Reason codes of the latest check, which have been logged. */
  #reported: ReadonlySet<string> = new Set();

  constructor(deps: ReadinessDeps) {
    this.#deps = deps;
  }

  /**
   * Returns the reasons why the service is not ready. The list is empty if the service is ready. Logs new reasons and
   * the return to readiness.
   */
  async reasons(): Promise<Degradation[]> {
    const reasons = [
      this.#drainReason(),
      this.#startReason(),
      await this.#storeReason(),
      await this.#pluginReason(),
    ].filter((reason) => reason !== undefined);
    this.#report(reasons);
    return reasons;
  }

  #drainReason(): Degradation | undefined {
    if (!this.#deps.isDraining()) return undefined;
    return { reasonCode: 'DRAINING', message: 'The service is stopping.' };
  }

  #startReason(): Degradation | undefined {
    const starting = this.#deps.starting?.() ?? [];
    if (starting.length === 0) return undefined;
    return { reasonCode: 'SERVICES_STARTING', message: `Not started yet: ${starting.join(', ')}.` };
  }

  async #storeReason(): Promise<Degradation | undefined> {
    const { clock, probeStore } = this.#deps;
    if (!probeStore) return undefined;
    this.#unansweredSince ??= clock.monotonic();
    this.#probe ??= this.#runProbe(probeStore);
    await settledWithin(this.#probe, PROBE_WAIT_MS);
    if (this.#unansweredSince === undefined) return undefined;
    const silentMs = clock.monotonic() - this.#unansweredSince;
    if (silentMs < MAX_STORE_SILENCE_MS) return undefined;
    return {
      reasonCode: 'STORE_SILENT',
      message: `The store has not answered for ${Math.floor(silentMs / 1000)} s.`,
    };
  }

  async #runProbe(probeStore: () => Promise<unknown>): Promise<void> {
    try {
      await probeStore();
      this.#unansweredSince = undefined;
    } catch {
      // The store logs its own failures. A failed probe counts as a missing response.
    } finally {
      this.#probe = undefined;
    }
  }

  async #pluginReason(): Promise<Degradation | undefined> {
    if (!(await this.#deps.plugins?.isBehind())) return undefined;
    return {
      reasonCode: 'PLUGINS_BEHIND',
      message: `The latest change of plugins is not loaded. If this persists, see: svc logs ${this.#deps.service}`,
    };
  }

  #report(reasons: readonly Degradation[]): void {
    const { service, logger } = this.#deps;
    const before = this.#reported;
    this.#reported = new Set(reasons.map(({ reasonCode }) => reasonCode));
    if (before.size > 0 && reasons.length === 0) logger.info(`${service} is ready again`);
    for (const reason of reasons.filter(({ reasonCode }) => !before.has(reasonCode))) {
      logger.diagnostic({
        domain: 'daemon',
        event: 'daemon.not_ready',
        level: 'warn',
        reasonCode: reason.reasonCode,
        message: `${service} is not ready. ${reason.message}`,
        outcome: 'degraded',
      });
    }
  }
}

export function notReady(service: ServiceName, reasons: readonly Degradation[]): PlatformError {
  const messages = reasons.map(({ message }) => message).join(' ');
  return new PlatformError('SERVICE_UNAVAILABLE', `${service} is not ready. ${messages}`, {
    details: { service, reasons },
  });
}

function settledWithin(work: Promise<void>, ms: number): Promise<void> {
  return new Promise((resolve) => {
    const cancel = systemClock.after(ms, resolve);
    void work.finally(() => {
      cancel();
      resolve();
    });
  });
}
