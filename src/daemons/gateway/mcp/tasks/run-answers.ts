import {
  decideApproval,
  getRun,
  listRunSteps,
  RunId,
  sendSignal,
  type WorkflowRun,
} from '../../../../contracts/index.ts';
import { type BoundedCache, createBoundedCache } from '../../../../kit/data/bounded-cache.ts';
import { PlatformError, toPlatformError } from '../../../../kit/errors/errors.ts';
import type { Logger } from '../../../../kit/telemetry/logger.ts';
import { callerKey } from '../authenticated-call.ts';
import { type McpCall, type PlatformCalls, shownRole } from '../platform-calls.ts';
import type { ToolAccess } from '../tool-access.ts';
import type { ToolCalls } from '../tool-calls.ts';
import { Elicited } from './elicited.ts';
import type { AskedQuestion, QuestionIds } from './question-ids.ts';
import { answerData, type Question, questionsOf } from './questions.ts';

export interface RunAnswersDeps {
  platform: PlatformCalls;
  access: ToolAccess;
  toolCalls: ToolCalls;
  ids: QuestionIds;
  logger: Logger;
}

const REMEMBERED = 10_000;
const ACTIVE: ReadonlySet<WorkflowRun['status']> = new Set(['running', 'waiting', 'cancelling']);

/**
 * Questions of waiting steps for the person at an MCP client, and the answers. The answer counts as one of the caller,
 * who must be allowed to approve. Agents cannot answer for their person, unless they hold such a token. @spec
 * docs/mcp.md "Approvals"
 */
export class RunAnswers {
  readonly #deps: RunAnswersDeps;
  /** Faults of the last answer, by run and question. They are shown when this process asks again. */
  readonly #faults: BoundedCache<string> = createBoundedCache<string>(REMEMBERED);
  /** Questions that a session was asked already. */
  readonly #asked: BoundedCache<true> = createBoundedCache<true>(REMEMBERED);

  constructor(deps: RunAnswersDeps) {
    this.#deps = deps;
  }

  /** Returns whether the client can ask a person, and the person may answer. */
  canAsk(call: McpCall): boolean {
    return call.elicits && this.#deps.access.mayAnswer(call.caller);
  }

  /** Returns the open questions of a run for the person at the client. */
  async questions({ id, status }: Pick<WorkflowRun, 'id' | 'status'>, call: McpCall): Promise<Question[]> {
    if (!this.canAsk(call) || !ACTIVE.has(status)) return [];
    const { items } = await this.#deps.platform.call(listRunSteps, { params: { runId: id } }, call);
    return questionsOf(id, items, shownRole(call.caller));
  }

  /**
   * Applies an answer. Answers to questions that are no longer open have no effect. Throws FORBIDDEN if the caller may
   * not answer, and VALIDATION_ERROR if the data does not fit the form.
   */
  async apply({ runId, key }: AskedQuestion, answer: unknown, call: McpCall): Promise<void> {
    const { access, platform, toolCalls } = this.#deps;
    access.requireAnswer(call);
    const run = await platform.call(getRun, { params: { runId: RunId.parse(runId) } }, call);
    const question = (await this.questions(run, { ...call, elicits: true })).find((one) => one.key === key);
    if (!question) return;
    const elicited = Elicited.safeParse(answer);
    if (!elicited.success)
      throw new PlatformError('VALIDATION_ERROR', 'An answer needs an action: accept, decline or cancel.');
    const { action, content = {} } = elicited.data;
    await toolCalls.recorded('elicitation', { runId, key, action }, call, () =>
      this.#decide(run.id, question, { action, content }, call),
    );
  }

  /** Applies the message of a client that answers a question of `QuestionIds`. */
  async take({ id, result }: { id: string; result: unknown }, call: McpCall): Promise<void> {
    const { ids, logger, toolCalls } = this.#deps;
    const asked = ids.read(id, call);
    // Clients that cannot ask answer with an error, which has no result.
    if (!asked || result === undefined) return;
    try {
      await toolCalls.limited(call, () => this.apply(asked, result, call));
    } catch (thrown) {
      const error = toPlatformError(thrown);
      this.#faults.set(placeOf(asked), error.message);
      const { requestId, traceId } = call;
      logger.info(`The answer of an MCP client was refused: ${error.message}`, { requestId, traceId });
    }
  }

  /** Returns why the last answer to a question was refused, or undefined. */
  faultOf(asked: AskedQuestion): string | undefined {
    return this.#faults.get(placeOf(asked));
  }

  /** Returns whether the session is asked this question for the first time. */
  isNew(call: McpCall, asked: AskedQuestion): boolean {
    // Clients choose their session ids, so two callers can have the same.
    const place = callerKey(call, call.connection, placeOf(asked));
    if (this.#asked.get(place)) return false;
    this.#asked.set(place, true);
    return true;
  }

  async #decide(
    runId: RunId,
    question: Question,
    { action, content }: { action: 'accept' | 'decline' | 'cancel'; content: Record<string, unknown> },
    call: McpCall,
  ): Promise<void> {
    const { platform } = this.#deps;
    const { kind, stepId, name, key } = question;
    const approved = action === 'accept';
    // A dismissed question stays open. A declined signal too, because a signal can only be sent.
    if (action === 'cancel' || (kind === 'signal' && !approved)) return;
    const data = approved ? answerData(question, content) : undefined;
    const via = 'elicitation' as const;
    if (kind === 'approval') {
      const body = { approved, ...(data === undefined ? {} : { data }) };
      await platform.call(
        decideApproval,
        { params: { runId, stepId }, body: body as never },
        { ...call, via },
      );
      return;
    }
    const body = { payload: data ?? null, idempotencyKey: `elicitation ${key}` };
    await platform.call(sendSignal, { params: { runId, name }, body: body as never }, { ...call, via });
  }
}

const placeOf = ({ runId, key }: AskedQuestion): string => `${runId} ${key}`;
