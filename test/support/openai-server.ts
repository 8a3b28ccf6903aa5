import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import { onTestFinished } from 'vitest';

/** A request as it came over the wire. */
export interface ModelRequest {
  path: string;
  authorization: string | undefined;
  body: {
    model: string;
    messages: Array<Record<string, unknown>>;
    input: string[];
    stream?: boolean;
    [name: string]: unknown;
  };
}

/** What is answered: a status with JSON, text as it is, or a stream of pieces. */
export interface ModelAnswer {
  status?: number;
  headers?: Record<string, string>;
  json?: unknown;
  text?: string;
  /** Server-sent events, as JSON unless they are text; `[DONE]` follows unless `cut`. */
  pieces?: unknown[];
  /** The connection ends without a word after the pieces. */
  cut?: boolean;
  /** Nothing is answered. */
  silent?: boolean;
  /** Between the pieces. */
  gapMs?: number;
}

export interface ModelServer {
  baseUrl: string;
  requests: ModelRequest[];
  /** How many answers were broken off by the caller. */
  left(): number;
  /** Answers of the next requests, in their order; after them what a model would say. */
  next(...answers: ModelAnswer[]): void;
}

const USAGE = { prompt_tokens: 12, completion_tokens: 8, total_tokens: 20 };

/** A chat completion. */
export const completion = (message: Record<string, unknown>, finish_reason = 'stop') => ({
  id: 'chatcmpl-1',
  object: 'chat.completion',
  created: 1_893_456_000,
  model: 'test-model-2030-01-01',
  choices: [{ index: 0, finish_reason, message: { role: 'assistant', ...message } }],
  usage: USAGE,
});

/** The pieces of a streamed one, the last with the usage and without a choice, as OpenAI sends them. */
export const streamOf = (...texts: string[]): unknown[] => [
  ...texts.map((content) => piece({ content }, null)),
  piece({}, 'stop'),
  { ...piece({}, null), choices: [], usage: USAGE },
];

const piece = (delta: object, finish_reason: string | null) => ({
  object: 'chat.completion.chunk',
  model: 'test-model-2030-01-01',
  choices: [{ index: 0, delta, finish_reason }],
});

/** The remote party of `ctx.llm` and `ctx.embeddings`, speaking OpenAI's protocol on a loopback port; closed when the test ends. */
export async function startModelServer(): Promise<ModelServer> {
  const requests: ModelRequest[] = [];
  const queue: ModelAnswer[] = [];
  let left = 0;
  const server = createServer(async (request, response) => {
    response.once('close', () => void (response.writableFinished || left++));
    const asked = await read(request);
    requests.push(asked);
    await answer(response, queue.shift() ?? usual(asked));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as { port: number };
  return {
    baseUrl: `http://127.0.0.1:${port}/v1`,
    requests,
    left: () => left,
    next: (...answers) => void queue.push(...answers),
  };
}

async function read(request: IncomingMessage): Promise<ModelRequest> {
  let text = '';
  for await (const chunk of request) text += chunk;
  return { path: request.url!, authorization: request.headers.authorization, body: JSON.parse(text) };
}

function usual({ path, body }: ModelRequest): ModelAnswer {
  if (path === '/v1/embeddings') {
    // Told in another order than asked, as the protocol allows.
    const data = body.input.map((text, index) => ({ index, embedding: [text.length, 1, index] })).reverse();
    return {
      json: { object: 'list', model: body.model, data, usage: { prompt_tokens: 7, total_tokens: 7 } },
    };
  }
  if (path !== '/v1/chat/completions') return { status: 404, json: { error: { message: 'no such path' } } };
  const said = `you said: ${String(body.messages.at(-1)!.content)}`;
  return body.stream ? { pieces: streamOf('you ', 'said') } : { json: completion({ content: said }) };
}

async function answer(response: ServerResponse, told: ModelAnswer): Promise<void> {
  const { status = 200, headers = {}, json, text, pieces, gapMs = 0 } = told;
  if (told.silent) return;
  if (!pieces) {
    response
      .writeHead(status, { 'content-type': 'application/json', ...headers })
      .end(text ?? JSON.stringify(json));
    return;
  }
  response.writeHead(status, { 'content-type': 'text/event-stream', ...headers });
  for (const one of pieces) {
    if (response.destroyed) return;
    response.write(`data: ${typeof one === 'string' ? one : JSON.stringify(one)}\n\n`);
    if (gapMs > 0) await new Promise((resolve) => setTimeout(resolve, gapMs));
  }
  // What was written has left by then.
  if (told.cut) setTimeout(() => response.destroy(), 20);
  else response.end('data: [DONE]\n\n');
}
