import { type SandboxPreference, type SandboxStatus, sandboxStatus } from '../plugins/index.ts';

export interface SandboxOfService {
  /** The sandbox that the process of the service reported. Null if the process has started no plugin. */
  used: SandboxStatus | null;
  /** Sandbox setting of the running process. Null if the service is not running. */
  preference: SandboxPreference | null;
}

/**
 * Sandbox modes from the weakest to the strongest. An unavailable sandbox counts as the weakest, so that the status
 * shows it to operators.
 */
const BY_STRENGTH: SandboxStatus['mode'][] = ['unavailable', 'permission', 'bwrap'];

/**
 * Returns the weakest sandbox of the running services. For a service that has started no plugin, the sandbox is derived
 * from the settings of the service.
 */
export async function weakestSandbox(services: readonly SandboxOfService[]): Promise<SandboxStatus | null> {
  const running = services.flatMap(({ used, preference }) => (preference ? [{ used, preference }] : []));
  const all = await Promise.all(running.map(({ used, preference }) => used ?? sandboxStatus(preference)));
  return all.toSorted((a, b) => BY_STRENGTH.indexOf(a.mode) - BY_STRENGTH.indexOf(b.mode))[0] ?? null;
}
