import { defineWorkflow, fail, z } from 'svc-platform/sdk';

const DAY_MS = 24 * 3600_000;
const MAX_TURNS = 10;
const INSTRUCTIONS =
  'You answer a question of a customer of a shop. Look an order up before you speak about it. A person decides about refunds.';

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
/** @typedef {{ customer: string, question: string }} Request */

/** Asks the model, runs the tools that it calls, and repeats this until the model answers the question. */
export const agent = defineWorkflow({
  id: 'support-agent',
  // The program that starts the run has authenticated the customer.
  input: z.object({ customer: z.string(), question: z.string().max(4000) }),
  steps: { retry: { maxAttempts: 5 } },
  async run(ctx, request) {
    /** @type {import('svc-platform/sdk').LlmMessage[]} */
    const messages = [
      { role: 'system', content: INSTRUCTIONS },
      { role: 'user', content: request.question },
    ];
    for (let turn = 1; turn <= MAX_TURNS; turn++) {
      // The answer is stored, so a replay does not ask the model again.
      const { text, toolCalls } = await ctx.step('think', async () => {
        const reply = await ctx.llm.chatWithTools(messages, { tools: TOOLS });
        return { text: reply.text, toolCalls: reply.toolCalls };
      });
      if (toolCalls.length === 0) return { answer: text, turns: turn };
      const results = await ctx.all(toolCalls.map((call) => () => useTool(ctx, request, call)));
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
 * @param {Request} request
 * @param {import('svc-platform/sdk').LlmToolCall} call
 * @returns {Promise<string>}
 */
async function useTool(ctx, request, { name, arguments: args }) {
  if (name === 'find_order') {
    const { data } = OrderArguments.safeParse(args);
    if (!data) return 'Error: give {"order": "<id>"}.';
    const path = `${pathOf(request)}/orders/${encodeURIComponent(data.order)}`;
    return ctx.step('find-order', (step) => ask(ctx, path, {}, step));
  }
  if (name !== 'refund') return `Error: no tool "${name}".`;
  const { data } = RefundArguments.safeParse(args);
  return data
    ? refund(ctx, request, data)
    : 'Error: give {"order": "<id>", "cents": <integer>, "reason": "<text>"}.';
}

/**
 * Refunds after a person has agreed. A refusal is a result for the model, with the comment of the person.
 * @param {Context} ctx
 * @param {Request} request
 * @param {z.infer<typeof RefundArguments>} refund
 */
async function refund(ctx, request, { order, cents, reason }) {
  try {
    await ctx.approval('review', {
      message: [
        `Refund ${(cents / 100).toFixed(2)} of order ${order} to customer ${request.customer}?`,
        `The customer wrote: ${request.question}`,
        `The agent gives this reason: ${reason}`,
      ].join('\n'),
      timeoutMs: DAY_MS,
    });
  } catch (error) {
    const { details } = /** @type {{ details?: { reason?: string, comment?: string } }} */ (error);
    if (details?.reason === 'refused') return `Refused: ${details.comment ?? 'no reason given'}`;
    if (details?.reason === 'timeout') return 'Refused: no person answered within a day.';
    throw error;
  }
  const body = JSON.stringify({ order, cents, reason });
  return ctx.step('refund', (step) => ask(ctx, `${pathOf(request)}/refunds`, { method: 'POST', body }, step));
}

/**
 * The shop returns only orders of this customer, whatever the model asks for.
 * @param {Request} request
 */
const pathOf = ({ customer }) => `/customers/${encodeURIComponent(customer)}`;

/**
 * Calls the API of the shop. The API performs a request with the same key only once, so that a crash can repeat the
 * step. If the shop refuses a request, its answer is a result for the model. The workflow retries other failures.
 * @param {Context} ctx
 * @param {string} path
 * @param {{ method?: 'POST', body?: string }} request
 * @param {import('svc-platform/sdk').StepInfo} step
 */
async function ask(ctx, path, request, { idempotencyKey, signal }) {
  const headers = { 'content-type': 'application/json', 'idempotency-key': idempotencyKey };
  const answer = await ctx.fetch(`${ctx.config.shopUrl}${path}`, { ...request, headers, signal });
  if (answer.ok) return answer.text();
  const { status } = answer;
  if (status < 500 && status !== 429) return `Error ${status}: ${(await answer.text()).slice(0, 1000)}`;
  const errorClass = status === 429 ? 'rate_limit' : 'server';
  throw Object.assign(new Error(`The shop answered ${status}.`), { details: { errorClass } });
}
