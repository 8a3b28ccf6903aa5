import { type SandboxPreference, type SandboxStatus, sandboxStatus } from '../../plugins/index.ts';

export interface SandboxOfService {
  /** As its process reported. */
  used: SandboxStatus | null;
  /** Of the config that its process runs with; null when it does not run. */
  preference: SandboxPreference | null;
}

/** From the weakest to the strongest; a sandbox that does not work is what an operator must see first. */
const ORDER: SandboxStatus['mode'][] = ['unavailable', 'permission', 'bwrap'];

/** A service that has started no plugin counts with the sandbox that its config leads to on this machine. */
export async function weakestSandbox(services: readonly SandboxOfService[]): Promise<SandboxStatus | null> {
  const running = services.flatMap(({ used, preference }) => (preference ? [{ used, preference }] : []));
  const all = await Promise.all(running.map(({ used, preference }) => used ?? sandboxStatus(preference)));
  return all.toSorted((a, b) => ORDER.indexOf(a.mode) - ORDER.indexOf(b.mode))[0] ?? null;
}
