import type { CallToolResult, InputRequiredResult } from '@modelcontextprotocol/server';
import { isRecord } from '../../../kit/data/is-record.ts';
import { errorBody, PlatformError, toRemoteError } from '../../../kit/errors/errors.ts';
import { contentOf, contentResult } from './content-results.ts';
import type { Tool } from './tool.ts';
import { ClientQuestion } from './tool-client.ts';
import { NOTICE, UNTRUSTED_KEY } from './untrusted.ts';

/** Longest text of a result. A model cannot read more, and clients keep results in memory. */
export const MAX_RESULT_CHARS = 100_000;
const MAX_STRING_CHARS = 8_000;

/** Result of a tool, or its question to the client. */
export type ToolResult = CallToolResult | InputRequiredResult;

/** Key in `_meta` of the error of a failed call. */
export const ERROR_KEY = 'svc-platform/error';

type ResultShape = Pick<Tool, 'outputSchema' | 'hasOutsideData' | 'mayReturnContent'>;

/** Returns the result of a tool, or the question that it asks. */
export function answerOf(tool: ResultShape, value: unknown): ToolResult {
  return value instanceof ClientQuestion ? value.result : resultOf(tool, value);
}

/** Returns the result of a tool. Throws PAYLOAD_TOO_LARGE if it is too large even with shortened texts. */
export function resultOf(tool: ResultShape, value: unknown): CallToolResult {
  const content = tool.mayReturnContent ? contentOf(value) : undefined;
  if (content) return contentResult(content);
  const isAsDeclared = tool.outputSchema !== undefined;
  const shown = isAsDeclared ? value : shortened(value);
  const text = JSON.stringify(shown ?? null);
  if (text.length > MAX_RESULT_CHARS) throw tooLarge(text.length);
  const { hasOutsideData: untrusted } = tool;
  return {
    content: contentFor(text, untrusted),
    structuredContent: isAsDeclared && isRecord(shown) ? shown : { untrusted, result: shown ?? null },
    _meta: { [UNTRUSTED_KEY]: untrusted },
  };
}

/**
 * Returns the result of a failed call, with the code, message and details of the platform. `untrusted` says whether they
 * can contain data from outside.
 */
export function failureOf(thrown: unknown, untrusted: boolean): CallToolResult {
  const body = shortened(errorBody(toRemoteError(thrown))) as Record<string, unknown>;
  const text = JSON.stringify(body);
  const error = text.length <= MAX_RESULT_CHARS ? { [ERROR_KEY]: body.error } : {};
  return {
    isError: true,
    content: contentFor(text.slice(0, MAX_RESULT_CHARS), untrusted),
    _meta: { [UNTRUSTED_KEY]: untrusted, ...error },
  };
}

function contentFor(text: string, untrusted: boolean): CallToolResult['content'] {
  return [...(untrusted ? [NOTICE] : []), { type: 'text', text }];
}

function tooLarge(chars: number): PlatformError {
  return new PlatformError(
    'PAYLOAD_TOO_LARGE',
    `The result has ${chars} characters; at most ${MAX_RESULT_CHARS} are returned. Ask for fewer items, or add a filter.`,
    { details: { chars, maxChars: MAX_RESULT_CHARS } },
  );
}

/** Shortens long texts, such as bodies of deliveries. */
function shortened(value: unknown): unknown {
  if (typeof value === 'string') {
    if (value.length <= MAX_STRING_CHARS) return value;
    return `${value.slice(0, MAX_STRING_CHARS)}… (${value.length - MAX_STRING_CHARS} more characters left out)`;
  }
  if (Array.isArray(value)) return value.map(shortened);
  if (!isRecord(value)) return value;
  return Object.fromEntries(Object.entries(value).map(([name, part]) => [name, shortened(part)]));
}
