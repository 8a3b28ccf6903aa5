import type { CallToolResult } from '@modelcontextprotocol/server';
import { type ContentBlock, ContentResult, MAX_CONTENT_CHARS } from '../../../contracts/index.ts';
import { firstIssue } from '../../../kit/data/first-issue.ts';
import { isRecord } from '../../../kit/data/is-record.ts';
import { PlatformError } from '../../../kit/errors/errors.ts';
import { NOTICE, UNTRUSTED_KEY } from './untrusted.ts';

const MAX_TEXT_CHARS = 100_000;

/** Returns the content blocks of a command's result, or undefined for any other result. Throws EXECUTION_ERROR. */
export function contentOf(value: unknown): ContentBlock[] | undefined {
  if (!isRecord(value) || !Object.hasOwn(value, '$content')) return undefined;
  const parsed = ContentResult.safeParse(value);
  if (!parsed.success)
    throw new PlatformError(
      'EXECUTION_ERROR',
      `The command returned content that is not valid: ${firstIssue(parsed.error, 'result')}`,
    );
  const blocks = parsed.data.$content;
  const chars = blocks.reduce((sum, block) => sum + charsOf(block), 0);
  if (chars > MAX_CONTENT_CHARS)
    throw new PlatformError(
      'PAYLOAD_TOO_LARGE',
      `The content has ${chars} characters; at most ${MAX_CONTENT_CHARS} are returned.`,
      { details: { chars, maxChars: MAX_CONTENT_CHARS } },
    );
  return blocks.map(shortened);
}

/** Returns the result of a tool for content blocks, after a notice that they are data. */
export function contentResult(blocks: ContentBlock[]): CallToolResult {
  return {
    content: [NOTICE, ...blocks],
    _meta: { [UNTRUSTED_KEY]: true },
  };
}

/** Returns the text, which says how much was cut. */
export function shortenedText(text: string, maxChars = MAX_TEXT_CHARS): string {
  if (text.length <= maxChars) return text;
  return `${text.slice(0, maxChars)}\n… (${text.length - maxChars} of ${text.length} characters left out)`;
}

function shortened(block: ContentBlock): ContentBlock {
  if (block.type === 'text') return { ...block, text: shortenedText(block.text) };
  if (block.type !== 'resource' || !('text' in block.resource)) return block;
  return { ...block, resource: { ...block.resource, text: shortenedText(block.resource.text) } };
}

function charsOf(block: ContentBlock): number {
  if (block.type === 'text') return block.text.length;
  if (block.type === 'image' || block.type === 'audio') return block.data.length;
  if (block.type === 'resource')
    return 'text' in block.resource ? block.resource.text.length : block.resource.blob.length;
  return block.uri.length;
}
