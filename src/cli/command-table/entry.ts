import type { AnyCommand } from '../define-command.ts';

/** What is known of a command before it is loaded: enough for help and for finding it. */
export interface CommandEntry {
  name: string;
  summary: string;
  group: 'Platform' | 'Setup' | 'Access' | 'Webhooks' | 'Plugins' | 'Workflows' | 'Help';
  example: string;
  /** Works, but is not for people. */
  hidden?: boolean;
  load: () => Promise<AnyCommand>;
}
