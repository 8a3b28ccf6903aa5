import type { LockFile, ServiceName } from '../../contracts/index.ts';

/**
 * List of installed plugins that all nodes of a store share. Each change replaces the list and increments its revision,
 * which every process that loads plugins polls.
 */
export interface PluginLockStore {
  /** Returns the list, or undefined if no node has stored one. */
  read(): Promise<LockFile | undefined>;
  /** Returns the revision of the list, or 0 if no node has stored one. */
  revision(): Promise<number>;
  /**
   * Stores the list if its revision follows the stored revision, or if no list is stored. Returns false if another node
   * has changed the list meanwhile.
   */
  replace(lock: LockFile): Promise<boolean>;
  /**
   * Runs a change while no other node runs one. The lock ends with this process or its connection, so `replace` checks
   * the revision as well. Throws CONFLICT if another node holds the lock for too long.
   */
  exclusive<Result>(change: () => Promise<Result>): Promise<Result>;
  /** Records the revision that the member with this fence token has loaded. */
  noteLoaded(fence: number, revision: number): Promise<void>;
  /**
   * Returns the instances of live members that have loaded an earlier revision, or only those of one service. Members
   * that have loaded none since their start are not ready, and are omitted.
   */
  behind(revision: number, kind?: ServiceName): Promise<string[]>;
}
