import { instanceId, processInstance } from '../../kit/files/instance-id.ts';
import { version } from '../../kit/files/paths.ts';
import type { MemberStore, NewMember } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { Membership } from './membership.ts';

/** Registers this process as a member of the store. Removes the member when the stack is disposed. */
export async function joinMembers(
  { dataDir, env, random, clock, logger, portShare, sharesStore, onFatal }: Resources,
  store: MemberStore,
  joining: Pick<NewMember, 'kind' | 'release' | 'keys'>,
  stack: AsyncDisposableStack,
): Promise<Membership> {
  const node = instanceId(dataDir, env, random);
  const instance = portShare ? processInstance(node, portShare.number) : node;
  const member = {
    ...joining,
    version,
    instance,
    replaces: portShare?.joins ? instance : node,
    isSole: !sharesStore,
  };
  const joined = await Membership.join({
    ...{ store, member, clock, logger },
    onLost(error) {
      logger.error(error.message, { error });
      onFatal?.(error);
    },
  });
  return stack.adopt(joined, (membership) => membership.leave());
}
