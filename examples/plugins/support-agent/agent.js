import { defineWorkflow, fail, z } from 'svc-platform/sdk';

const DAY_MS = 24 * 3600_000;
const MAX_TURNS = 10;
const INSTRUCTIONS =
  'You answer questions of customers of a shop. Look an order up before you speak about it. A person decides about refunds.';

const OrderArguments = z.object({ order: z.string() });
const RefundArguments = z.object({
  order: z.string(),
  cents: z.number().int().positive(),
  reason: z.string(),
});
const TOOLS = [
  { name: 'find_order', description: 'Returns an order.', parameters: z.toJSONSchema(OrderArguments) },
  { name: 'refund', description: 'Refunds an order.', parameters: z.toJSONSchema(RefundArguments) },
];

/** @typedef {import('svc-platform/sdk').WorkflowContext} Context */

/** Asks the model, runs the tools that it calls, and repeats this until the model answers the question. */
export const agent = defineWorkflow({
  id: 'support-agent',
  input: z.object({ question: z.string() }),
  steps: { retry: { maxAttempts: 5 } },
  async run(ctx, { question }) {
    /** @type {import('svc-platform/sdk').LlmMessage[]} */
    const messages = [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: question },
    ];
    for (let turn = 1; turn <= MAX_TURNS; turn++) {
      // The answer is stored, so a replay does not ask the model again.
      const { text, toolCalls } = await ctx.step('think', async () => {
        const reply = await ctx.llm.chatWithTools(messages, { tools: TOOLS });
        return { text: reply.text, toolCalls: reply.toolCalls };
      });
      if (toolCalls.length === 0) return { answer: text, turns: turn };
      const results = await ctx.all(toolCalls.map((call) => () => useTool(ctx, call)));
      messages.push({ role: 'assistant', content: text, toolCalls });
      for (const [place, { id }] of toolCalls.entries())
        messages.push({ role: 'tool', toolCallId: id, content: results[place] ?? '' });
    }
    return fail('TOO_MANY_TURNS', `The model called tools ${MAX_TURNS} times without an answer.`);
  },
});

/**
 * Runs a tool call. The result is text for the model. A mistake in the arguments is a result too, so that the model can
 * correct it.
 * @param {Context} ctx
 * @param {import('svc-platform/sdk').LlmToolCall} call
 * @returns {Promise<string>}
 */
async function useTool(ctx, { name, arguments: args }) {
  if (name === 'find_order') {
    const { data } = OrderArguments.safeParse(args);
    return data ? ctx.step('find-order', () => findOrder(ctx, data.order)) : 'Error: give {"order": "<id>"}.';
  }
  if (name !== 'refund') return `Error: no tool "${name}".`;
  const { data } = RefundArguments.safeParse(args);
  return data ? refund(ctx, data) : 'Error: give {"order": "<id>", "cents": <integer>, "reason": "<text>"}.';
}

/**
 * @param {Context} ctx
 * @param {string} order
 */
async function findOrder(ctx, order) {
  const answer = await ctx.fetch(`${ctx.config.shopUrl}/orders/${encodeURIComponent(order)}`);
  if (answer.status === 404) return `Error: no order ${order}.`;
  if (!answer.ok) throw shopError(answer);
  return answer.text();
}

/**
 * Refunds after a person has agreed. A refusal is a result for the model, with the comment of the person.
 * @param {Context} ctx
 * @param {z.infer<typeof RefundArguments>} refund
 */
async function refund(ctx, { order, cents, reason }) {
  try {
    await ctx.approval('review', {
      message: `Refund ${(cents / 100).toFixed(2)} of order ${order}? The agent says: ${reason}`,
      timeoutMs: DAY_MS,
    });
  } catch (error) {
    const { details } = /** @type {{ details?: { reason?: string, comment?: string } }} */ (error);
    if (details?.reason === 'refused') return `Refused: ${details.comment ?? 'no reason given'}`;
    if (details?.reason === 'timeout') return 'Refused: nobody answered within a day.';
    throw error;
  }
  // The shop performs a request with the same key only once, so a crash can repeat the step.
  await ctx.step('refund', async ({ idempotencyKey }) => {
    const answer = await ctx.fetch(`${ctx.config.shopUrl}/refunds`, {
      method: 'POST',
      headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
      body: JSON.stringify({ order, cents, reason }),
    });
    if (!answer.ok) throw shopError(answer);
  });
  return 'Refunded.';
}

/**
 * Returns an error that the workflow retries, except if the shop refused the request.
 * @param {Pick<Response, 'status'>} answer
 */
function shopError({ status }) {
  const errorClass = status === 429 ? 'rate_limit' : status >= 500 ? 'server' : 'validation';
  return Object.assign(new Error(`The shop answered ${status}.`), { details: { errorClass } });
}
