import type { Permissions, ServiceName } from '../../../../contracts/index.ts';

/** The services whose absence makes a handler fail as a whole. */
export type NeededService = Extract<ServiceName, 'state' | 'workflow'>;

/** Which of them stands behind which part of `ctx`. */
const BEHIND: Readonly<Record<string, NeededService>> = {
  state: 'state',
  cache: 'state',
  storage: 'state',
  vectorStore: 'state',
  workflows: 'workflow',
  jobs: 'workflow',
};

/** So many handlers in a row that do not use a service show that the plugin does without it. */
const QUIET_RUNS = 50;

/**
 * What plugins use of what their manifests permit: `state` and `cache` are permitted by default, so the permission alone says
 * little. @spec docs/decisions/0004
 */
export class ServiceUse {
  /** Runs of handlers since the last use, by plugin and service. */
  readonly #quietRuns = new Map<string, Record<NeededService, number>>();

  /** A handler called `ctx.<part>`. */
  noteCall(pluginId: string, part: string): void {
    const service = Object.hasOwn(BEHIND, part) ? BEHIND[part] : undefined;
    if (service) this.#runsOf(pluginId)[service] = 0;
  }

  /** A handler of the plugin ended well. */
  noteRun(pluginId: string): void {
    const runs = this.#runsOf(pluginId);
    runs.state++;
    runs.workflow++;
  }

  /** Other code may use other services. */
  forget(): void {
    this.#quietRuns.clear();
  }

  /** What the plugin may call and has not shown to do without. */
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
