import type { ServiceName } from '../contracts/index.ts';
import { type RunningDaemon, startDaemon } from './run-daemon.ts';
import type { StartOptions } from './start-options.ts';

type Start = (options: StartOptions) => Promise<RunningDaemon>;

/** Start functions by service. Each process imports only its own service. */
const START: Record<ServiceName, Start> = {
  state: async (options) => startDaemon((await import('./state/index.ts')).state, options),
  marketplace: async (options) => startDaemon((await import('./marketplace/index.ts')).marketplace, options),
  workflow: async (options) => startDaemon((await import('./workflow/index.ts')).workflow, options),
  rest: async (options) => startDaemon((await import('./rest/index.ts')).rest, options),
  gateway: async (options) => startDaemon((await import('./gateway/index.ts')).gateway, options),
};

export function startByName(name: ServiceName, options: StartOptions): Promise<RunningDaemon> {
  return START[name](options);
}
