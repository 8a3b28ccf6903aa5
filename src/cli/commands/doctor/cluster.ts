import { clusterProblems } from '../../../kit/config/cluster.ts';
import { formatDuration } from '../../../kit/time/duration.ts';
import { type MemberView, readMembers } from '../../members.ts';
import { type CheckTarget, type Fact, failure, fine, warning } from './check.ts';

/**
 * Checks the settings that nodes must share, and the state of each node. Returns an empty list if `cluster.enabled` is
 * false and the store is not PostgreSQL.
 */
export async function checkCluster(target: CheckTarget): Promise<Fact[]> {
  return [...checkSettings(target), ...(await checkMembers(target))];
}

/**
 * Reports the nodes of the cluster. Reports no nodes if the store does not answer, because other checks report store
 * failures.
 */
async function checkMembers({ loaded }: CheckTarget): Promise<Fact[]> {
  const members = await readMembers(loaded).catch(() => []);
  const versions = new Set(members.map(({ version }) => version));
  const facts = members.map((member) => {
    const { instance, kind, version, url, isExpired, feedLagMs } = member;
    const age = formatDuration(member.leaseAgeMs ?? 0);
    const lag = feedLagMs === null ? '' : `, feed lag ${formatDuration(feedLagMs)}`;
    const text = `${instance} ${kind} ${version} at ${url ?? 'no address yet'}: lease renewed ${age} ago${lag}`;
    return isExpired
      ? warning(
          text,
          'Start the node, or check its connection to the database. Other nodes take over its work.',
        )
      : fine(text);
  });
  if (versions.size > 1)
    facts.push(
      warning(
        `nodes run different versions: ${[...versions].sort().join(', ')}`,
        'Upgrade the other nodes, then run svc migrate --yes.',
      ),
    );
  return [...facts, ...differingProjects(members)];
}

/** Compares the project plugins with which the nodes have started. */
function differingProjects(members: readonly MemberView[]): Fact[] {
  const releases = members
    .filter(({ kind, isExpired }) => kind === 'marketplace' && !isExpired)
    .map(({ release }) => release);
  if (new Set(releases).size < 2) return [];
  return [
    warning(
      'the plugin folders of the project differ between nodes',
      'Copy the same project to all nodes, and restart them.',
    ),
  ];
}

function checkSettings({ loaded, env }: CheckTarget): Fact[] {
  if (!loaded.config.cluster.enabled) return [];
  const problems = clusterProblems(loaded.config, env);
  if (problems.length === 0) return [fine('all settings that nodes share are set')];
  return problems.map(({ path, message }) =>
    failure(`${path} ${message}`, 'Set it on all nodes, or set cluster.enabled to false.'),
  );
}
