import type { AgentFrame } from '../contracts/index.ts';

/** A connection to the gateway, as used by executions. */
export interface Link {
  /** Returns false if the connection is closed or the frame too large. */
  send(frame: AgentFrame): boolean;
}
