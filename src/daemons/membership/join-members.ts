import { version } from '../../kit/files/paths.ts';
import type { MemberStore, NewMember } from '../../store/ports/index.ts';
import type { Resources } from '../define-daemon.ts';
import { instanceId } from './instance-id.ts';
import { type Fence, Membership } from './membership.ts';

/**
 * The fence that a process writes into its rows, and its membership. A process that shares the membership of its
 * primary has no membership of its own.
 */
export interface StoreMember {
  fence: Fence;
  membership: Membership | undefined;
}

/** Joins the members of a store, and leaves them when the stack is disposed. */
export async function joinMembers(
  { dataDir, env, random, clock, logger, sharesStore, onFatal }: Resources,
  store: MemberStore,
  joining: Pick<NewMember, 'kind' | 'release' | 'keys'>,
  stack: AsyncDisposableStack,
): Promise<Membership> {
  const member = { ...joining, version, instance: instanceId(dataDir, env, random), isSole: !sharesStore };
  const joined = await Membership.join({
    ...{ store, member, clock, logger },
    onLost(error) {
      logger.error(error.message, { error });
      onFatal?.(error);
    },
  });
  return stack.adopt(joined, (membership) => membership.leave());
}

/** Returns the fence of the primary, for processes that the primary started and that end with it. */
export async function primaryFence(
  { dataDir, env, random }: Resources,
  store: MemberStore,
  kind: NewMember['kind'],
): Promise<Fence> {
  const instance = instanceId(dataDir, env, random);
  const primary = (await store.live(kind)).find((member) => member.instance === instance);
  if (!primary) throw new Error(`The primary ${kind} of node ${instance} is not a member of its store.`);
  return { require: () => primary.fence };
}
