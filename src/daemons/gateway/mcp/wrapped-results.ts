import { ContentBlock, type ContentResult } from '../../../contracts/index.ts';
import { isRecord } from '../../../kit/data/is-record.ts';

const MAX_BLOCKS = 100;
/** Scheme of the platform's own resources, which other servers cannot claim. */
const OWN_SCHEME = /^\s*svc:/i;

/**
 * Returns a result of a wrapped server with its images, sound and resources as content blocks. Results of text only stay
 * JSON. @spec docs/mcp-servers.md "Use its tools"
 */
export function wrappedResult(result: unknown): unknown {
  if (!isRecord(result) || !Array.isArray(result.content)) return result;
  const { content, structuredContent } = result;
  if (content.length >= MAX_BLOCKS || !content.some((block) => isRecord(block) && block.type !== 'text'))
    return result;
  const data: ContentBlock[] =
    structuredContent === undefined ? [] : [{ type: 'text', text: JSON.stringify(structuredContent) }];
  return { $content: [...content.map(blockOf), ...data] } satisfies ContentResult;
}

/** Keeps the fields that content blocks have. A block that is not valid becomes a note. */
function blockOf(block: unknown): ContentBlock {
  const given: Record<string, unknown> = isRecord(block) ? block : {};
  const { type, text, data, mimeType, uri, name, title, description } = given;
  const resource = isRecord(given.resource) ? given.resource : {};
  const fields: Record<string, object> = {
    text: { text },
    image: { data, mimeType },
    audio: { data, mimeType },
    resource: { resource: defined(pick(resource)) },
    resource_link: { uri, name, title, description, mimeType },
  };
  const parsed = ContentBlock.safeParse(defined({ type, ...fields[String(type)] }));
  const claimed = type === 'resource' ? resource.uri : uri;
  if (parsed.success && !(typeof claimed === 'string' && OWN_SCHEME.test(claimed))) return parsed.data;
  return {
    type: 'text',
    text: `(A block of the type ${String(type).slice(0, 20)} is not valid and was left out.)`,
  };
}

const pick = ({ uri, mimeType, text, blob }: Record<string, unknown>) => ({ uri, mimeType, text, blob });

function defined(fields: object): Record<string, unknown> {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined));
}
