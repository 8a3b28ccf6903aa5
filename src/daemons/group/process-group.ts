import type { Answer, Link } from './link.ts';

/** One process of a daemon as another one of it sees it. */
export interface Member extends Pick<Link, 'ask' | 'call'> {
  /** 2 is the first that the primary starts. A process that takes the place of a dead one is another member. */
  place: number;
  pid: number;
}

/** What all processes of a daemon may do. */
interface Membership {
  /**
   * Tells all processes of the daemon but this one that something they hold a copy of has changed. Settles when they
   * know, or after a second: whoever needs certainty looks again by itself.
   */
  announce(topic: string): Promise<void>;
  /** What an announcement does here; the announcer waits for it. */
  onNews(topic: string, learn: () => void | Promise<void>): void;
}

/** A daemon that is one process: nothing is shared, nothing is told. */
export interface LoneProcess extends Membership {
  role: 'alone';
}

/** The process that the supervisor started: it owns what there is once, and started the others. */
export interface PrimaryProcess extends Membership {
  role: 'primary';
  /** Processes in all. */
  size: number;
  /** Those that are up, without this one. */
  members(): readonly Member[];
  answer(topic: string, answer: Answer<Member>): void;
  /** Called when a process ended, however it did. */
  onLost(listener: (member: Member) => void): void;
}

/** A process that the primary started to share its port. */
export interface SiblingProcess extends Membership {
  role: 'sibling';
  place: number;
  primary: Pick<Link, 'ask' | 'call'>;
  /** Answers the primary. */
  answer(topic: string, answer: Answer<undefined>): void;
}

/** The processes that are one daemon, as one of them sees it. @spec docs/decisions/0037 */
export type ProcessGroup = LoneProcess | PrimaryProcess | SiblingProcess;

export const loneProcess: LoneProcess = {
  role: 'alone',
  announce: async () => {},
  onNews: () => {},
};
