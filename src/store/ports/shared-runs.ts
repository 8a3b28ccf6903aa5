import type { MemberRecord } from './members.ts';
import type { InboxRecord, RunRecord, SuspectLimit } from './workflow-records.ts';

/** Number of runs of a tenant that a process may claim now. */
export interface TenantShare {
  tenantId: string;
  limit: number;
}

/** A claimed run. `isFresh` means that the store holds only the run's own row, without jobs, steps or inbox entries. */
export interface ClaimedRun {
  run: RunRecord;
  isFresh: boolean;
}

/** Changes of a run that other processes have stored for its owner. */
export interface RunNotice {
  seq: number;
  id: string;
  /** Number of notices that the run has had so far, including this one. */
  count: number;
  /** Inbox entries that no step has consumed, oldest first. */
  entries: InboxRecord[];
  /** Ids of the children that ended in the last hour. */
  endedChildren: string[];
}

/** Process that executes a run, as a member of the store. */
export interface RunOwner extends Pick<MemberRecord, 'instance' | 'url'> {
  /** Fence token of the member, which differs from the fence token of its runs. */
  member: number;
}

/**
 * Runs of a store that several processes share. Each run is claimed on its own row, so that only one process executes
 * it. @spec docs/decisions/0224
 */
export interface SharedRunStore {
  /** Returns the tenants with ready runs, or with runs that have a wake time. Runs with an owner are not counted. */
  tenants(queue: 'ready' | 'due'): Promise<string[]>;
  /**
   * Claims ready or due runs for the process with the fence, and returns them. Runs that another process is claiming
   * are skipped. Claims nothing for a process that was declared dead.
   */
  claim(
    fence: number,
    queue: 'ready' | 'due',
    options: { shares: readonly TenantShare[]; limit: number; now: number; suspects: SuspectLimit },
  ): Promise<ClaimedRun[]>;
  /** Gives claimed runs back that the process has not started. */
  unclaim(fence: number, seqs: readonly number[]): Promise<void>;
  /**
   * Gives back runs that the store assigns to the process but that are not in `ids`. Such runs exist if the reply to a
   * claim or first write was lost. Those that have started are interrupted by the next sweep instead.
   */
  unclaimExcept(fence: number, ids: readonly string[], now: number): Promise<void>;
  /** Returns scheduled runs whose start time has passed. */
  planned(now: number, limit: number): Promise<RunRecord[]>;
  /** Records that a run with an owner is to be cancelled. */
  requestCancel(seq: number): Promise<void>;
  /**
   * Returns the cancel requests for runs of the process, and the pauses and unread notices for its runs with the numbers
   * `active`.
   */
  unread(
    fence: number,
    active: readonly number[],
    now: number,
  ): Promise<{ cancelled: string[]; paused: ReadonlySet<string>; notices: RunNotice[] }>;
  /** Marks notices as read. A run that is parked with unread notices becomes due at once. */
  read(fence: number, notices: ReadonlyArray<Pick<RunNotice, 'seq' | 'count'>>): Promise<void>;
  /** Returns the process whose runs have the fence token, or undefined if it has ended. */
  ownerOf(fence: number): Promise<RunOwner | undefined>;
  /**
   * Records whether the last process of a node crashed by itself, so that the crash counts for its runs. If another
   * process has already counted a kill instead, the kill becomes a crash. Must be called before the node joins the
   * members again, because from then on others may interrupt its runs.
   */
  recordCrash(crash: { instance: string; hadFault: boolean; oomKills: number | null }): Promise<void>;
  /**
   * Records the end of a process that its supervisor has seen, and ends its member, so that other processes take over
   * its runs at once. Does nothing if the node has a newer process.
   */
  endCrashed(crash: {
    instance: string;
    pid: number;
    hadFault: boolean;
    oomKills: number | null;
  }): Promise<void>;
  /** Declares the boots of ended members dead, so that their runs are interrupted. Returns the number of these boots. */
  endDead(now: number): Promise<number>;
}
