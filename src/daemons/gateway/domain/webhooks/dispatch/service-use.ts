import type { Permissions, ServiceName } from '../../../../../contracts/index.ts';

/** Services whose unavailability makes a handler fail. */
export type NeededService = Extract<ServiceName, 'state' | 'workflow'>;

/** Maps properties of a plugin's `ctx` object to the services that implement them. */
const BEHIND: Readonly<Record<string, NeededService>> = {
  state: 'state',
  cache: 'state',
  storage: 'state',
  vectorStore: 'state',
  workflows: 'workflow',
  jobs: 'workflow',
};

/**
 * Number of successful runs in a row without a call to a service. After this number, the plugin counts as not needing
 * the service.
 */
const QUIET_RUNS = 50;

/**
 * Tracks which services each plugin uses. Permissions do not show this use, because `state` and `cache` are permitted
 * by default. @spec docs/decisions/0004
 */
export class ServiceUse {
  /** Number of successful runs since the last call to a service, by plugin and service. */
  readonly #quietRuns = new Map<string, Record<NeededService, number>>();

  noteCall(pluginId: string, part: string): void {
    const service = Object.hasOwn(BEHIND, part) ? BEHIND[part] : undefined;
    if (service) this.#runsOf(pluginId)[service] = 0;
  }

  noteRun(pluginId: string): void {
    const runs = this.#runsOf(pluginId);
    runs.state++;
    runs.workflow++;
  }

  /** Resets the counts. Called after a plugin reload, because the new code might use other services. */
  forget(): void {
    this.#quietRuns.clear();
  }

  /**
   * Returns the services that the plugin is allowed to call. Excludes services that the plugin has not called for
   * `QUIET_RUNS` runs.
   */
  neededBy(pluginId: string, { platform }: Permissions): NeededService[] {
    const needed: NeededService[] = [];
    if (!platform || platform.state || platform.cache || platform.storage || platform.vectorStore)
      needed.push('state');
    if (platform?.workflows || platform?.jobs) needed.push('workflow');
    const runs = this.#quietRuns.get(pluginId);
    return needed.filter((service) => (runs?.[service] ?? 0) < QUIET_RUNS);
  }

  #runsOf(pluginId: string): Record<NeededService, number> {
    let runs = this.#quietRuns.get(pluginId);
    if (!runs) {
      runs = { state: 0, workflow: 0 };
      this.#quietRuns.set(pluginId, runs);
    }
    return runs;
  }
}
