import type { Answer, Link } from './link.ts';

/** Another process of the same service. */
export interface Member extends Pick<Link, 'ask' | 'call'> {
  /**
   * Number of the process: 1 for the primary, from 2 for siblings. A restarted sibling keeps its number but is a new
   * member.
   */
  place: number;
  pid: number;
}

/** Methods available to every process of a service. */
interface Membership {
  /**
   * Announces a change of cached data to all other processes. Settles when the processes have handled the announcement,
   * or after a second. Caches that must not miss a change also poll.
   */
  announce(topic: string): Promise<void>;
  /** Handles an announcement. The announcing process waits for the handler. */
  onNews(topic: string, learn: () => void | Promise<void>): void;
}

/** A service with a single process. */
export interface LoneProcess extends Membership {
  role: 'alone';
}

/** The process that the supervisor started. It owns exclusive resources and starts the siblings. */
export interface PrimaryProcess extends Membership {
  role: 'primary';
  /** Total number of processes. */
  size: number;
  /** Running siblings. */
  members(): readonly Member[];
  answer(topic: string, answer: Answer<Member>): void;
  /** Called when a process has ended, for any reason. */
  onLost(listener: (member: Member) => void): void;
}

/** A process that the primary started to share its port. */
export interface SiblingProcess extends Membership {
  role: 'sibling';
  place: number;
  primary: Pick<Link, 'ask' | 'call'>;
  /** Handles requests of the primary. */
  answer(topic: string, answer: Answer<undefined>): void;
}

/** The role of a process within its service. @spec docs/decisions/0037 */
export type ProcessGroup = LoneProcess | PrimaryProcess | SiblingProcess;

export const loneProcess: LoneProcess = {
  role: 'alone',
  announce: async () => {},
  onNews: () => {},
};
