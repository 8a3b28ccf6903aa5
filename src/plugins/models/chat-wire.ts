import type { OpenAI } from 'openai';
import { z } from 'zod';
import type { LlmMessage, LlmToolCall, LlmUsage } from '../../contracts/index.ts';
import { firstIssue } from '../../kit/data/first-issue.ts';
import type { LlmRequest } from './language-model.ts';
import { RemoteFailure } from './remote-error.ts';

// The OpenAI library does not validate responses. The schemas below validate the response fields that are used.

const Count = z.number().int().min(0).catch(0);
const Usage = z.object({
  prompt_tokens: Count,
  completion_tokens: Count.default(0),
  total_tokens: Count.optional(),
});
const ToolCall = z.object({
  id: z.string(),
  function: z.object({ name: z.string(), arguments: z.string() }),
});
const Message = z.object({ content: z.string().nullish(), tool_calls: z.array(ToolCall).nullish() });

const Reply = z.object({
  model: z.string().optional(),
  choices: z.array(z.object({ finish_reason: z.string().nullish(), message: Message })).min(1),
  usage: Usage.nullish(),
});

const Delta = z.object({ content: z.string().nullish() });

const Chunk = z.object({
  model: z.string().optional(),
  choices: z.array(z.object({ finish_reason: z.string().nullish(), delta: Delta.nullish() })).default([]),
  usage: Usage.nullish(),
});

export interface ReadReply {
  text: string;
  finishReason: string;
  model: string | undefined;
  usage: LlmUsage;
  toolCalls: LlmToolCall[];
}

export interface OutputLimit {
  field: 'max_tokens' | 'max_completion_tokens';
  tokens: number;
}

export function chatBody(
  { messages, tools, toolChoice, temperature, stop, json }: LlmRequest,
  model: string,
  limit: OutputLimit,
): OpenAI.ChatCompletionCreateParamsNonStreaming {
  return {
    model,
    messages: messages.map(wireMessage),
    [limit.field]: limit.tokens,
    ...(temperature === undefined ? {} : { temperature }),
    ...(stop === undefined ? {} : { stop }),
    ...(json ? { response_format: { type: 'json_object' as const } } : {}),
    ...(tools === undefined
      ? {}
      : {
          tools: tools.map((tool) => ({ type: 'function' as const, function: tool })),
          tool_choice: choice(toolChoice),
        }),
  };
}

function choice(toolChoice: LlmRequest['toolChoice']): OpenAI.ChatCompletionToolChoiceOption {
  if (typeof toolChoice !== 'object') return toolChoice ?? 'auto';
  return { type: 'function', function: { name: toolChoice.name } };
}

function wireMessage(message: LlmMessage): OpenAI.ChatCompletionMessageParam {
  const { role, content } = message;
  if (role === 'tool') return { role, content, tool_call_id: message.toolCallId };
  if (role !== 'assistant') return { role, content };
  if (!message.toolCalls?.length) return { role, content };
  return {
    role,
    content: content === '' ? null : content,
    tool_calls: message.toolCalls.map(({ id, name, arguments: values }) => ({
      id,
      type: 'function',
      function: { name, arguments: JSON.stringify(values) },
    })),
  };
}

/**
 * Parses the response to a chat request. Throws a RemoteFailure of the class `malformed` if the response is invalid.
 */
export function readReply(answer: unknown): ReadReply {
  const parsed = Reply.safeParse(answer);
  if (!parsed.success) throw malformed(parsed.error);
  const { model, choices, usage } = parsed.data;
  const { finish_reason, message } = choices[0]!;
  return {
    text: message.content ?? '',
    finishReason: finish_reason ?? 'stop',
    model,
    usage: usageOf(usage),
    toolCalls: (message.tool_calls ?? []).map((call) => ({
      id: call.id,
      name: call.function.name,
      arguments: argumentsOf(call.function),
    })),
  };
}

export interface ReadChunk {
  text: string;
  finishReason: string | undefined;
  model: string | undefined;
  usage: LlmUsage | undefined;
}

/**
 * Parses a chunk of a streamed chat response. Throws a RemoteFailure of the class `malformed` if the chunk is invalid.
 */
export function readChunk(chunk: unknown): ReadChunk {
  const parsed = Chunk.safeParse(chunk);
  if (!parsed.success) throw malformed(parsed.error);
  const { choices, model, usage } = parsed.data;
  return {
    text: choices[0]?.delta?.content ?? '',
    finishReason: choices[0]?.finish_reason ?? undefined,
    model,
    usage: usage ? usageOf(usage) : undefined,
  };
}

/** Returns the token usage, or zeros if the endpoint does not report the usage. */
export function usageOf(usage: z.infer<typeof Usage> | null | undefined): LlmUsage {
  const inputTokens = usage?.prompt_tokens ?? 0;
  const outputTokens = usage?.completion_tokens ?? 0;
  return { inputTokens, outputTokens, totalTokens: usage?.total_tokens ?? inputTokens + outputTokens };
}

function argumentsOf({
  name,
  arguments: text,
}: {
  name: string;
  arguments: string;
}): Record<string, unknown> {
  try {
    const value: unknown = text.trim() === '' ? {} : JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>;
  } catch {
    // Arguments that are not valid JSON cause the error below.
  }
  throw new RemoteFailure(
    'malformed',
    `the model called the tool "${name}" with arguments that are not a JSON object`,
  );
}

function malformed(error: z.ZodError): RemoteFailure {
  return new RemoteFailure(
    'malformed',
    `its response is not a valid chat completion (${firstIssue(error, 'top level')})`,
  );
}
