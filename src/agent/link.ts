import type { AgentFrame } from '../contracts/index.ts';

/** A connection to the gateway over which executions send their frames. */
export interface Link {
  /** Returns false if the connection is closed or the frame too large. */
  send(frame: AgentFrame): boolean;
}
