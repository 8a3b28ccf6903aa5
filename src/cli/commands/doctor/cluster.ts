import { clusterProblems } from '../../../kit/config/cluster.ts';
import { type CheckTarget, type Fact, failure, fine } from './check.ts';

/** Checks the settings that nodes share. Platforms of one node have no finding. */
export function checkCluster({ loaded, env }: CheckTarget): Fact[] {
  if (!loaded.config.cluster.enabled) return [];
  const problems = clusterProblems(loaded.config, env);
  if (problems.length === 0) return [fine('all settings that nodes share are set')];
  return problems.map(({ path, message }) =>
    failure(`${path} ${message}`, 'Set it on all nodes, or set cluster.enabled to false.'),
  );
}
