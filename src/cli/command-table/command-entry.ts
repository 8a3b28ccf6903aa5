import type { AnyCommand } from '../define-command.ts';
import type { Group } from './help-order.ts';

/** Metadata of a command, for help and lookup without loading the command itself. */
export interface CommandEntry extends Pick<AnyCommand, 'name' | 'summary' | 'example' | 'hidden'> {
  group: Group;
  load: () => Promise<AnyCommand>;
}
