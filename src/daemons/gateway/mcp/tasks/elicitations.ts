import {
  type InputRequests,
  inputRequired,
  type Server,
  type ServerContext,
} from '@modelcontextprotocol/server';
import type { WorkflowRun } from '../../../../contracts/index.ts';
import type { McpCall } from '../platform-calls.ts';
import type { RunQuestions } from '../tool.ts';
import type { QuestionIds } from './question-ids.ts';
import type { Question } from './questions.ts';
import type { RunAnswers } from './run-answers.ts';

/** Returns the requests of the revision 2026-07-28 by key. */
export function inputRequests(questions: readonly Question[]): InputRequests {
  return Object.fromEntries(
    questions.map(({ key, message, form }) => [
      key,
      inputRequired.elicit({ message, requestedSchema: form as never }),
    ]),
  );
}

/** Questions of a tool call of the revision 2026-07-28: its result asks, and the client repeats the call. */
export class RepeatedCallQuestions implements RunQuestions {
  readonly #answers: RunAnswers;
  readonly #call: McpCall;
  readonly #given: Readonly<Record<string, unknown>>;
  #open: readonly Question[] = [];

  constructor(answers: RunAnswers, call: McpCall, given: Readonly<Record<string, unknown>> | undefined) {
    this.#answers = answers;
    this.#call = call;
    this.#given = given ?? {};
  }

  /** Requests for the result of the call. Empty if there is nothing to ask. */
  get requests(): InputRequests {
    return inputRequests(this.#open);
  }

  async take(runId: string): Promise<void> {
    for (const [key, answer] of Object.entries(this.#given))
      await this.#answers.apply({ runId, key }, answer, this.#call);
  }

  async ask(run: WorkflowRun): Promise<boolean> {
    const questions = await this.#answers.questions(run, this.#call);
    this.#open = questions.filter(({ key }) => !Object.hasOwn(this.#given, key));
    return this.#open.length === 0 && questions.length > 0;
  }
}

/** Sends questions to a client of the revision 2025-11-25, on the stream of a request that waits. */
export class StreamedQuestions implements RunQuestions {
  readonly #deps: { answers: RunAnswers; ids: QuestionIds; server: Server };
  readonly #call: McpCall;
  readonly #requestId: ServerContext['mcpReq']['id'];
  /** Faults that were shown with the questions sent so far, by key. */
  readonly #sent = new Map<string, string | undefined>();

  constructor(
    deps: { answers: RunAnswers; ids: QuestionIds; server: Server },
    call: McpCall,
    requestId: ServerContext['mcpReq']['id'],
  ) {
    this.#deps = deps;
    this.#call = call;
    this.#requestId = requestId;
  }

  /** Answers come as messages of their own. */
  async take(): Promise<void> {}

  async ask(run: WorkflowRun): Promise<boolean> {
    const { answers } = this.#deps;
    const questions = await answers.questions(run, this.#call);
    for (const question of questions) {
      const asked = { runId: run.id, key: question.key };
      // A later call of the same session must not show the form again.
      if (this.#sent.has(question.key) || answers.isNew(this.#call, asked))
        await this.send(run.id, [question]);
      else this.#sent.set(question.key, answers.faultOf(asked));
    }
    return questions.length > 0;
  }

  /** Sends questions that this stream has not shown, or whose answer was refused since. */
  async send(runId: string, questions: readonly Question[], meta?: Record<string, unknown>): Promise<void> {
    const { answers, ids, server } = this.#deps;
    for (const { key, message, form } of questions) {
      const asked = { runId, key };
      const fault = answers.faultOf(asked);
      if (this.#sent.has(key) && this.#sent.get(key) === fault) continue;
      this.#sent.set(key, fault);
      const shown = fault === undefined ? message : `${message}\nThe last answer was refused: ${fault}`;
      await server.transport?.send(
        {
          ...{ jsonrpc: '2.0', id: ids.idOf(asked, this.#call), method: 'elicitation/create' },
          params: { mode: 'form', message: shown, requestedSchema: form, ...(meta ? { _meta: meta } : {}) },
        },
        { relatedRequestId: this.#requestId },
      );
    }
  }
}
