import { defineWorkflow, z } from 'svc-platform/sdk';

const DAY_MS = 24 * 3600_000;

const Item = z.object({ sku: z.string(), quantity: z.number().int().positive() });
const Order = z.object({
  id: z.string(),
  cents: z.number().int().positive(),
  items: z.array(Item).min(1).max(50),
});

/**
 * Calls the API of the shop. The API performs a request with the same key only once, so that a step that a crash
 * interrupted can be repeated.
 * @param {Pick<import('svc-platform/sdk').WorkflowContext, 'fetch' | 'config'>} ctx
 * @param {string} path
 * @param {object} body
 * @param {import('svc-platform/sdk').StepInfo} step
 */
async function post(ctx, path, body, { idempotencyKey, signal }) {
  const answer = await ctx.fetch(`${ctx.config.shopUrl}${path}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', 'idempotency-key': idempotencyKey },
    body: JSON.stringify(body),
    signal,
  });
  if (answer.ok) return;
  // The workflow retries errors of these classes, but not a refusal, such as a declined card.
  const errorClass = answer.status === 429 ? 'rate_limit' : answer.status >= 500 ? 'server' : 'validation';
  const error = new Error(`The shop answered ${answer.status} to POST ${path}.`);
  throw Object.assign(error, { details: { errorClass } });
}

/**
 * Reserves the items in parallel, charges the customer, waits up to a day for a person and ships. If a step fails, the
 * approval is refused or the run is cancelled, everything is undone. The run then ends as failed or cancelled.
 */
export const checkout = defineWorkflow({
  id: 'checkout',
  input: Order,
  steps: { retry: { maxAttempts: 5 } },
  async run(ctx, { id, cents, items }) {
    /** @type {Array<{ name: string, path: string, body: object }>} */
    const undo = [];
    try {
      await ctx.all(
        items.map((item) => async () => {
          // Noted before the step: a step that is cut off may have had its effect.
          undo.push({ name: 'release', path: '/releases', body: { order: id, ...item } });
          await ctx.step('reserve', (step) => post(ctx, '/reservations', { order: id, ...item }, step));
        }),
      );
      undo.push({ name: 'refund', path: '/refunds', body: { order: id } });
      await ctx.step('charge', (step) => post(ctx, '/charges', { order: id, cents }, step));
      // A waiting run uses no process.
      const { by } = await ctx.approval('review', {
        message: `Ship order ${id} for ${(cents / 100).toFixed(2)}?`,
        timeoutMs: DAY_MS,
      });
      await ctx.step('ship', (step) => post(ctx, '/shipments', { order: id }, step));
      return { status: 'shipped', approvedBy: by };
    } catch (error) {
      // Attempts all of it, even if a part fails, and also if the run is cancelled meanwhile.
      await ctx.nonCancellable(() =>
        ctx.all(
          undo.toReversed().map(({ name, path, body }) => async () => {
            await ctx.step(name, (step) => post(ctx, path, body, step), { retry: { maxAttempts: 20 } });
          }),
        ),
      );
      throw error;
    }
  },
});
