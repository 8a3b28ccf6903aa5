import { version } from '../../kit/files/paths.ts';
import type { MemberStore, NewMember } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import type { ProcessGroup } from '../group/process-group.ts';
import { instanceId, processInstance } from './instance-id.ts';
import { Membership } from './membership.ts';

/** Joins the members of a store, and leaves them when the stack is disposed. */
export async function joinMembers(
  { dataDir, env, random, clock, logger, group, sharesStore, onFatal }: Resources,
  store: MemberStore,
  joining: Pick<NewMember, 'kind' | 'release' | 'keys'>,
  stack: AsyncDisposableStack,
): Promise<Membership> {
  const node = instanceId(dataDir, env, random);
  const member = {
    ...joining,
    version,
    instance: group.role === 'sibling' ? processInstance(node, group.place) : node,
    isSole: !sharesStore && group.role !== 'sibling',
  };
  const joined = await Membership.join({
    ...{ store, member, clock, logger },
    onLost(error) {
      logger.error(error.message, { error });
      onFatal?.(error);
    },
  });
  if (group.role === 'primary') endWithProcesses(joined, group);
  return stack.adopt(joined, (membership) => membership.leave());
}

/** Ends the membership of a sibling when its process ends, without waiting for its lease to expire. */
function endWithProcesses(membership: Membership, group: Extract<ProcessGroup, { role: 'primary' }>): void {
  group.onLost(({ place }) => void membership.end(processInstance(membership.instance, place)));
}
