import { z } from 'zod';
import type { LlmRequest } from '../models/language-model.ts';
import { invalid, parsedArgument } from './arguments.ts';

/**
 * Schemas for the arguments of `ctx.llm`, which come from plugin code. Invalid arguments throw VALIDATION_ERROR with
 * the path of the invalid value.
 */

const ToolName = z
  .string()
  .regex(/^[\w-]{1,64}$/, 'must have at most 64 letters, digits, _ and - characters');

const Message = z.discriminatedUnion('role', [
  z.strictObject({ role: z.enum(['system', 'user']), content: z.string() }),
  z.strictObject({
    role: z.literal('assistant'),
    content: z.string(),
    toolCalls: z
      .array(
        z.strictObject({
          id: z.string().min(1),
          name: ToolName,
          arguments: z.record(z.string(), z.unknown()),
        }),
      )
      .optional(),
  }),
  z.strictObject({ role: z.literal('tool'), content: z.string(), toolCallId: z.string().min(1) }),
]);
const Messages = z.array(Message).min(1).max(1000);

const optionFields = {
  tier: z.string().min(1).max(64).optional(),
  temperature: z.number().min(0).max(2).optional(),
  maxTokens: z.number().int().positive().optional(),
  stop: z.array(z.string().min(1)).max(4).optional(),
  json: z.boolean().optional(),
};
const Options = z.strictObject(optionFields);

const ToolOptions = z.strictObject({
  ...optionFields,
  tools: z
    .array(
      z.strictObject({
        name: ToolName,
        description: z.string().optional(),
        parameters: z.record(z.string(), z.unknown()),
      }),
    )
    .min(1)
    .max(128),
  toolChoice: z.union([z.enum(['auto', 'none', 'required']), z.strictObject({ name: ToolName })]).optional(),
});

/** Parses the arguments of a chat call. A string becomes a conversation with one message. */
export function chatArguments([messages, options]: unknown[]): LlmRequest {
  const given = typeof messages === 'string' ? [{ role: 'user', content: messages }] : messages;
  return {
    ...parsedArgument(Options, options ?? {}, 'options'),
    messages: parsedArgument(Messages, given, 'messages'),
  } as LlmRequest;
}

export function toolArguments([messages, options]: unknown[]): LlmRequest {
  return {
    ...parsedArgument(ToolOptions, options ?? {}, 'options'),
    messages: parsedArgument(Messages, messages, 'messages'),
  } as LlmRequest;
}

const MAX_TEXTS = 256;

export function textsArgument(value: unknown): string[] {
  const texts = typeof value === 'string' ? [value] : value;
  if (Array.isArray(texts) && texts.length > 0 && texts.length <= MAX_TEXTS && texts.every(isText))
    return texts;
  throw invalid(`ctx.embeddings.embed takes a non-empty string, or 1 to ${MAX_TEXTS} of them`);
}

function isText(value: unknown): value is string {
  return typeof value === 'string' && value !== '';
}
