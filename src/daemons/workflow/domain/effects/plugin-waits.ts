import type { Logger } from '../../../../kit/telemetry/logger.ts';
import type { Clock } from '../../../../kit/time/clock.ts';
import { minutes, seconds } from '../../../../kit/time/duration.ts';

/** Time without waiting runs, in ms. After this time, the next wait for a plugin counts as a new outage. */
const NEW_OUTAGE_AFTER_MS = minutes(1);
const MIN_PAUSE_MS = seconds(5);
const MAX_PAUSE_MS = minutes(10);

export interface PluginWaitsDeps {
  clock: Clock;
  logger: Logger;
  /** Time from the first wait to the first alert, and between two alerts, in ms. */
  alertMs: number;
  /** Callback that is called with the number of runs that wait for the plugin. */
  counted(pluginId: string, runs: number): void;
}

interface Away {
  since: number;
  runs: Set<string>;
  why: string;
  emptiedAt: number | null;
  stopAlert(): void;
}

/**
 * Tracks runs that wait for unavailable plugins. Logs a warning at the first wait for a plugin, and an alert after
 * `alertMs`.
 */
export class PluginWaits {
  readonly #deps: PluginWaitsDeps;
  readonly #away = new Map<string, Away>();

  constructor(deps: PluginWaitsDeps) {
    this.#deps = deps;
  }

  add(pluginId: string, runId: string, why: string): void {
    const known = this.#outageOf(pluginId);
    const away = known ?? this.#begin(pluginId, why);
    away.why = why;
    away.emptiedAt = null;
    away.runs.add(runId);
    this.#deps.counted(pluginId, away.runs.size);
  }

  /**
   * Returns the time until a run retries the unavailable plugin, in ms. The time grows with the duration of the outage.
   */
  pauseMs(pluginId: string): number {
    const away = this.#outageOf(pluginId);
    const outageMs = away ? this.#deps.clock.monotonic() - away.since : 0;
    return Math.min(MAX_PAUSE_MS, Math.max(MIN_PAUSE_MS, outageMs));
  }

  #outageOf(pluginId: string): Away | undefined {
    const away = this.#away.get(pluginId);
    const isPast =
      away?.emptiedAt != null && this.#deps.clock.monotonic() - away.emptiedAt > NEW_OUTAGE_AFTER_MS;
    return isPast ? undefined : away;
  }

  remove(runId: string): void {
    for (const [pluginId, away] of this.#away) {
      if (!away.runs.delete(runId)) continue;
      if (away.runs.size === 0) away.emptiedAt = this.#deps.clock.monotonic();
      this.#deps.counted(pluginId, away.runs.size);
    }
  }

  close(): void {
    for (const { stopAlert } of this.#away.values()) stopAlert();
    this.#away.clear();
  }

  #begin(pluginId: string, why: string): Away {
    this.#away.get(pluginId)?.stopAlert();
    const { clock, logger } = this.#deps;
    const away: Away = { since: clock.monotonic(), runs: new Set(), why, emptiedAt: null, stopAlert() {} };
    this.#away.set(pluginId, away);
    this.#arm(pluginId, away);
    logger.diagnostic({
      domain: 'workflow',
      event: 'plugin.away',
      level: 'warn',
      reasonCode: 'PLUGIN_AWAY',
      message: `Plugin ${pluginId} cannot run steps; runs that need it wait until it is loaded again: ${why}`,
      outcome: 'degraded',
      evidence: { pluginId },
    });
    return away;
  }

  #arm(pluginId: string, away: Away): void {
    away.stopAlert = this.#deps.clock.after(this.#deps.alertMs, () => this.#alert(pluginId, away));
  }

  #alert(pluginId: string, away: Away): void {
    if (away.runs.size === 0) {
      this.#away.delete(pluginId);
      return;
    }
    const awayMs = this.#deps.clock.monotonic() - away.since;
    this.#deps.logger.diagnostic({
      domain: 'workflow',
      event: 'plugin.away_long',
      level: 'error',
      reasonCode: 'PLUGIN_AWAY_LONG',
      message: `Plugin ${pluginId} has been away for ${Math.round(awayMs / 1000)} s, and ${away.runs.size} runs wait for it: ${away.why} Run \`svc plugins list\`, then enable or mend the plugin, or cancel the runs.`,
      outcome: 'failed',
      evidence: { pluginId, awayMs, runs: away.runs.size },
    });
    this.#arm(pluginId, away);
  }
}
