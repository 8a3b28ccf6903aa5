import type { AgentFrame } from '../contracts/index.ts';

/** The sending side of a connection to the gateway. */
export interface Link {
  /** Returns false if the connection is closed or the frame is too large. */
  send(frame: AgentFrame): boolean;
}
