import type { HostTarget } from '../../contracts/index.ts';
import { PlatformError } from '../../kit/errors.ts';
import { createHostBackend, type ExecutionBackend, type PlatformServices } from '../../plugins/index.ts';
import type { GatewayStore } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ElsewhereBackends, PluginRuntime } from '../plugin-runtime.ts';
import { createContainerPasses } from './domain/container-passes.ts';
import { createDispatch } from './domain/dispatch.ts';
import { createHostSessions, type HostSessions } from './domain/host-sessions.ts';
import type { Jwts } from './domain/jwt.ts';
import type { Revocations } from './domain/revocations.ts';

/** What runs plugin code outside this machine's workers: made before the plugins are read, as these may run there. */
export interface Elsewhere {
  sessions: HostSessions;
  create(services: PlatformServices): ElsewhereBackends;
  close(): void;
}

export function createElsewhere({ config, clock }: Pick<Resources, 'config' | 'clock'>): Elsewhere {
  const sessions = createHostSessions(clock);
  const { plugins } = config.execution;

  function targetOf(pluginId: string): HostTarget {
    const { backend: _, ...target } = Object.hasOwn(plugins, pluginId)
      ? plugins[pluginId as keyof typeof plugins]!
      : { backend: 'host' };
    return target;
  }
  return {
    sessions,
    create: () => ({
      host: createHostBackend({ run: sessions.run, targetOf, clock }),
      container: unavailable,
    }),
    close: sessions.close,
  };
}

const unavailable: ExecutionBackend = {
  name: 'container',
  async run({ plugin }) {
    throw new PlatformError(
      'SANDBOX_ERROR',
      `The plugin ${plugin.id} is to run in a container, which is not available in this version; set its backend to "worker" or "host".`,
      { details: { pluginId: plugin.id, backend: 'container' } },
    );
  },
  async close() {},
};

export interface ElsewhereParts {
  store: GatewayStore;
  plugins: PluginRuntime;
  jwts: Jwts;
  revocations: Revocations;
}

/** What the host socket and the internal dispatch need. */
export function elsewhereServices(
  { config, keys, clock, random, logger }: Resources,
  { sessions }: Elsewhere,
  { store, plugins, jwts, revocations }: ElsewhereParts,
) {
  const { internalSecret } = keys;
  return {
    hostSessions: sessions,
    hostStore: store.hosts,
    plugins,
    execution: config.execution,
    platformServices: plugins.services,
    dispatch: createDispatch({ plugins, random }),
    passes: createContainerPasses({ jwts, revocations, internalSecret, clock, logger }),
    internalSecret,
  };
}
