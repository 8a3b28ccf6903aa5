import { type PlatformConfig, SERVICE_NAMES, type ServiceName } from '../../contracts/index.ts';
import { PlatformError } from '../errors/errors.ts';
import type { Environment } from './secret-ref.ts';
import { usesPostgres } from './store-url.ts';

/** Services that each service calls. Without an address of these, its requests fail. */
const CALLS: Record<ServiceName, readonly ServiceName[]> = {
  gateway: ['rest', 'workflow', 'state'],
  rest: ['gateway', 'workflow', 'marketplace', 'state'],
  workflow: ['gateway', 'state'],
  marketplace: ['gateway', 'rest', 'workflow', 'state'],
  state: [],
};

/**
 * Throws VALIDATION_ERROR if a node with only these services cannot work. With PostgreSQL, services find those of other
 * nodes in the store. With SQLite, the config must name their addresses.
 */
export function requireServiceSet(
  services: readonly ServiceName[],
  { config, env }: { config: PlatformConfig; env: Environment },
): void {
  const absent = SERVICE_NAMES.filter((name) => !services.includes(name));
  if (absent.length === 0) return;
  if (usesPostgres(config.store)) requireCluster(absent, config);
  else requireAddresses(services, absent, { config, env });
}

function requireCluster(absent: readonly ServiceName[], { cluster }: PlatformConfig): void {
  if (cluster.enabled) return;
  throw new PlatformError(
    'VALIDATION_ERROR',
    `This node does not run ${absent.join(', ')}, and cluster.enabled is false, so it would not find other nodes. Set cluster.enabled to true on all nodes, or run all services here with \`svc up\`.`,
    { details: { absent } },
  );
}

function requireAddresses(
  services: readonly ServiceName[],
  absent: readonly ServiceName[],
  { config, env }: { config: PlatformConfig; env: Environment },
): void {
  const missing = absent.filter(
    (name) =>
      config.services[name] === undefined && services.some((service) => CALLS[service].includes(name)),
  );
  const isSecretShared = Boolean(env.GATEWAY_INTERNAL_SECRET);
  if (missing.length === 0 && isSecretShared) return;
  const problems = [
    ...missing.map((name) => `  services.${name}.url is not set, and this node does not run ${name}.`),
    ...(isSecretShared ? [] : ['  GATEWAY_INTERNAL_SECRET is not set, with which services call each other.']),
  ];
  throw new PlatformError(
    'VALIDATION_ERROR',
    `${services.join(', ')} cannot work without the other services. store.url is SQLite, so services of other nodes are not found by themselves:\n${problems.join('\n')}\nSet these, run all services here with \`svc up\`, or use PostgreSQL (docs/scale-out.md).`,
    { details: { services, absent, missing } },
  );
}
