import type { AnyCommand } from '../define-command.ts';

/** Metadata for help and lookup, available without loading the command. */
export interface CommandEntry {
  name: string;
  summary: string;
  group: 'Platform' | 'Setup' | 'Access' | 'Webhooks' | 'Plugins' | 'Workflows' | 'Help';
  example: string;
  /** Internal: not listed in help. */
  hidden?: boolean;
  load: () => Promise<AnyCommand>;
}
