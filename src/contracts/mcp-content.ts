import { z } from 'zod';

/** Longest content of one result: texts, and data in base64. */
export const MAX_CONTENT_CHARS = 2_000_000;
const MAX_BLOCKS = 100;
const MAX_REQUESTS = 10;

const Base64 = z
  .string()
  .max(MAX_CONTENT_CHARS)
  .regex(/^[A-Za-z0-9+/]*={0,2}$/, 'must be base64');
const MimeType = z
  .string()
  .max(200)
  .regex(/^[\w.+-]+\/[\w.+-]+(?:;.*)?$/, 'must be a media type');
const Uri = z.string().min(1).max(2000);
const media = { data: Base64, mimeType: MimeType };

/** A part of a result for MCP clients. @spec docs/mcp.md "Images, sound and files" */
export const ContentBlock = z.discriminatedUnion('type', [
  z.strictObject({ type: z.literal('text'), text: z.string() }),
  z.strictObject({ type: z.literal('image'), ...media }),
  z.strictObject({ type: z.literal('audio'), ...media }),
  z.strictObject({
    type: z.literal('resource'),
    resource: z.union([
      z.strictObject({ uri: Uri, mimeType: MimeType.optional(), text: z.string() }),
      z.strictObject({ uri: Uri, mimeType: MimeType.optional(), blob: Base64 }),
    ]),
  }),
  z.strictObject({
    type: z.literal('resource_link'),
    uri: Uri,
    name: z.string().min(1).max(200),
    title: z.string().max(200).optional(),
    description: z.string().max(2000).optional(),
    mimeType: MimeType.optional(),
  }),
]);
export type ContentBlock = z.infer<typeof ContentBlock>;

/** Result of a command that MCP clients get as content blocks. `content` of the SDK creates it. */
export const ContentResult = z.strictObject({ $content: z.array(ContentBlock).min(1).max(MAX_BLOCKS) });
export type ContentResult = z.infer<typeof ContentResult>;

/** A request that the client of a command answers. Clients refuse kinds that they do not support. */
export const ClientRequest = z.discriminatedUnion('method', [
  z.strictObject({
    method: z.literal('elicitation/create'),
    params: z.strictObject({
      message: z.string().min(1).max(4096),
      requestedSchema: z.looseObject({
        type: z.literal('object'),
        properties: z.record(z.string(), z.json()),
      }),
    }),
  }),
  z.strictObject({
    method: z.literal('sampling/createMessage'),
    params: z.looseObject({ messages: z.array(z.json()).min(1), maxTokens: z.number().int().positive() }),
  }),
  z.strictObject({ method: z.literal('roots/list') }),
]);
export type ClientRequest = z.infer<typeof ClientRequest>;

/**
 * Result of a command that needs answers of its MCP client first. The command then runs again. `askClient` of the SDK
 * creates it.
 */
export const AskResult = z.strictObject({
  $ask: z.strictObject({
    requests: z
      .record(
        z.string().regex(/^[\w.-]{1,64}$/, 'must have 1 to 64 letters, digits and . _ -'),
        ClientRequest,
      )
      .refine((all) => Object.keys(all).length > 0 && Object.keys(all).length <= MAX_REQUESTS, {
        message: `must have 1 to ${MAX_REQUESTS} requests`,
      }),
    state: z.json().optional(),
  }),
});
export type AskResult = z.infer<typeof AskResult>;

/** Answers of an MCP client, in `ctx.hostContext.mcp`. They are untrusted. */
export interface ClientAnswers {
  /** Answer to each request, by its key. Empty in the first run of the command. */
  answers: Readonly<Record<string, unknown>>;
  /** The `state` of the result that asked. Only this is proof that the command has asked. */
  state?: unknown;
  /** Kinds of requests that the client supports: `elicitation`, `sampling`, `roots`. Empty for earlier revisions. */
  supported: readonly string[];
}
