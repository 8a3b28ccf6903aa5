import type { InputRequiredResult } from '@modelcontextprotocol/server';
import type { ClientAnswers } from '../../../contracts/index.ts';

/** A result that asks the client before the tool can end. */
export class ClientQuestion {
  readonly result: InputRequiredResult;

  constructor(result: InputRequiredResult) {
    this.result = result;
  }
}

/** The client of one call: what a tool tells it and asks it. */
export interface ToolClient {
  /** Reports progress if the client has asked for it. */
  progress(done: number, total?: number, message?: string): Promise<void>;
  /** Sends a log line if the client has asked for this level. `level` is one of the platform. */
  log(level: string, message: string, source: string): void;
  /** Answers to an earlier question of this tool to this client. */
  answers: ClientAnswers;
  /** Returns the question that a command's result contains, or undefined. Throws EXECUTION_ERROR if it is invalid. */
  questionOf(value: unknown): Promise<ClientQuestion | undefined>;
}

/** Client of calls that end before their work does, such as the start of a task. */
export const ABSENT_CLIENT: ToolClient = {
  progress: async () => {},
  log: () => {},
  answers: { answers: {}, supported: [] },
  questionOf: async () => undefined,
};
