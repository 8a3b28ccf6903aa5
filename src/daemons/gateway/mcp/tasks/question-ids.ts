import { createHmac } from 'node:crypto';
import { isRecord } from '../../../../kit/data/is-record.ts';
import { safeEqual } from '../../../../kit/security/keys.ts';
import type { Random } from '../../../../kit/security/random.ts';
import type { McpCall } from '../platform-calls.ts';

const PREFIX = 'svc-question.';

/** The question that a message of the client answers. */
export interface AskedQuestion {
  runId: string;
  key: string;
}

/**
 * Ids of questions that the gateway sends to clients of the revision 2025-11-25. An id holds the question and a signature
 * for its caller. So every gateway can take the answer, also after a restart, and refuses answers of other callers and
 * to invented questions.
 */
export class QuestionIds {
  readonly #secret: string;
  readonly #random: Pick<Random, 'secret'>;

  constructor(secret: string, random: Pick<Random, 'secret'>) {
    this.#secret = secret;
    this.#random = random;
  }

  idOf({ runId, key }: AskedQuestion, call: McpCall): string {
    const text = Buffer.from(JSON.stringify([runId, key, this.#random.secret(6)])).toString('base64url');
    return `${PREFIX}${text}.${this.#signature(text, call)}`;
  }

  /** Returns the question, or undefined for an id of another kind, or of a question to another caller. */
  read(id: string, call: McpCall): AskedQuestion | undefined {
    const [text, signature] = id.slice(PREFIX.length).split('.');
    if (!text || !signature || !safeEqual(signature, this.#signature(text, call))) return undefined;
    const [runId, key] = JSON.parse(Buffer.from(text, 'base64url').toString()) as [string, string];
    return { runId, key };
  }

  #signature(text: string, { caller: { namespaceId, hostId } }: McpCall): string {
    const signed = JSON.stringify(['mcp-question', namespaceId, hostId, text]);
    return createHmac('sha256', this.#secret).update(signed).digest('base64url');
  }
}

/** Returns the id and the result of a message if it answers a question. Errors have no result. */
export function answerIn(message: unknown): { id: string; result: unknown } | undefined {
  if (!isRecord(message) || message.method !== undefined) return undefined;
  const { id, result } = message;
  return typeof id === 'string' && id.startsWith(PREFIX) ? { id, result } : undefined;
}
