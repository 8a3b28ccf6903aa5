import type { InboxRecord } from './ports/index.ts';

/** Whether the input of a run is a signal, of a person, a plugin or an agent. */
export const isSignal = (kind: InboxRecord['kind']): boolean => kind === 'signal' || kind === 'agent_signal';
