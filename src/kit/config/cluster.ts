import type { PlatformConfig } from '../../contracts/index.ts';
import { PlatformError } from '../errors/errors.ts';
import type { Environment } from './secret-ref.ts';
import { usesPostgres } from './store-url.ts';

/** A missing or unsuitable setting of a node in a cluster. */
export interface ClusterProblem {
  /** Config key or environment variable. */
  path: string;
  message: string;
}

/** Secrets that all nodes must share, with the effect if nodes used different values. */
const SHARED_SECRETS: ReadonlyArray<[variable: string, effect: string]> = [
  ['SVC_MASTER_KEY', 'other nodes could not decrypt the secrets that this one stores'],
  ['GATEWAY_JWT_SECRET', 'other nodes would refuse the tokens of this one'],
  ['GATEWAY_INTERNAL_SECRET', 'other nodes would refuse the calls of this one'],
  ['SVC_OPERATOR_CLIENT_ID', 'each node would create an operator of its own'],
  ['SVC_OPERATOR_CLIENT_SECRET', 'each node would create an operator of its own'],
];

/**
 * Returns the problems that prevent this node from running in a cluster. The list is empty if `cluster.enabled` is
 * false.
 */
export function clusterProblems(config: PlatformConfig, env: Environment): ClusterProblem[] {
  if (!config.cluster.enabled) return [];
  const secrets = SHARED_SECRETS.filter(([variable]) => !env[variable]).map(([variable, effect]) => ({
    path: variable,
    message: `is not set: ${effect}. Set it to the same value on all nodes, or ${variable}_FILE to a file with it.`,
  }));
  return [...storeProblems(config), ...secrets, ...settingProblems(config)];
}

/** Throws VALIDATION_ERROR with all problems that prevent this node from running in a cluster. */
export function requireClusterSettings(config: PlatformConfig, env: Environment): void {
  const problems = clusterProblems(config, env);
  if (problems.length === 0) return;
  const list = problems.map(({ path, message }) => `  ${path} ${message}`).join('\n');
  throw new PlatformError(
    'VALIDATION_ERROR',
    `This node cannot run beside others (cluster.enabled):\n${list}`,
    {
      details: { problems },
    },
  );
}

function storeProblems({ store }: PlatformConfig): ClusterProblem[] {
  if (usesPostgres(store)) return [];
  const message = 'is SQLite, which only one node can use. Set it to the same postgres:// URL on all nodes.';
  return [{ path: 'store.url', message }];
}

/** Returns the problems of settings that would differ between nodes. */
function settingProblems({ gateway }: PlatformConfig): ClusterProblem[] {
  if (gateway.publicUrl !== null) return [];
  const message = 'is null: webhook URLs would name one node. Set it to the URL of the load balancer.';
  return [{ path: 'gateway.publicUrl', message }];
}
