import { PlatformError } from '../../../../kit/errors/errors.ts';
import type { Member, PrimaryProcess, ProcessGroup, SiblingProcess } from '../../../group/process-group.ts';

const CLAIM = 'execution.claim';
const RELEASE = 'execution.release';

/** Claims on execution ids in all gateway processes, so that an id runs only once at a time. */
export interface ExecutionClaims {
  /** Returns a function that releases the claim. Throws CONFLICT while the id is claimed. */
  take(executionId: string): Promise<() => void>;
}

/**
 * Creates the registry of claims. The primary process holds all claims, and releases those of a process that has ended.
 */
export function createExecutionClaims(group: ProcessGroup): ExecutionClaims {
  return group.role === 'sibling' ? claimsOfSibling(group) : ownClaims(group);
}

function ownClaims(group: Exclude<ProcessGroup, SiblingProcess>): ExecutionClaims {
  const holders = new Map<string, Member | 'here'>();
  function take(executionId: string, holder: Member | 'here'): void {
    if (holders.has(executionId))
      throw new PlatformError('CONFLICT', `The execution ${executionId} is already running.`);
    holders.set(executionId, holder);
  }
  function release(executionId: string, holder: Member | 'here'): void {
    if (holders.get(executionId) === holder) holders.delete(executionId);
  }
  if (group.role === 'primary') answerSiblings(group, { take, release, holders });
  return {
    async take(executionId) {
      take(executionId, 'here');
      return () => release(executionId, 'here');
    },
  };
}

interface Book {
  take(executionId: string, holder: Member): void;
  release(executionId: string, holder: Member): void;
  holders: ReadonlyMap<string, Member | 'here'>;
}

function answerSiblings(group: PrimaryProcess, { take, release, holders }: Book): void {
  group.answer(CLAIM, (executionId, from) => take(executionId as string, from));
  group.answer(RELEASE, (executionId, from) => release(executionId as string, from));
  group.onLost((member) => {
    for (const [executionId, holder] of holders) if (holder === member) release(executionId, member);
  });
}

function claimsOfSibling({ primary }: SiblingProcess): ExecutionClaims {
  return {
    async take(executionId) {
      await primary.call(CLAIM, executionId);
      return () => primary.ask(RELEASE, executionId, () => {});
    },
  };
}
