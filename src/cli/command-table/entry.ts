import type { AnyCommand } from '../define-command.ts';
import type { Group } from './order.ts';

/** Metadata for help and lookup, which is available without loading the command. */
export interface CommandEntry extends Pick<AnyCommand, 'name' | 'summary' | 'example' | 'hidden'> {
  group: Group;
  load: () => Promise<AnyCommand>;
}
