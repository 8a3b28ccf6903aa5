import { defineWorkflow, fail, z } from 'svc-platform/sdk';

const DAY_MS = 24 * 3600_000;

const Item = z.object({ sku: z.string(), quantity: z.number().int().positive() });
const Order = z.object({
  id: z.string(),
  cents: z.number().int().positive(),
  items: z.array(Item).min(1).max(50),
});

/** @typedef {import('svc-platform/sdk').WorkflowContext} Context */

/**
 * Reserves the items in parallel, charges the customer, waits up to a day for a person and ships. Undoes everything if
 * it fails or is cancelled before it ships. From then on, nothing is undone, because the parcel may be on its way.
 */
export const checkout = defineWorkflow({
  id: 'checkout',
  input: Order,
  steps: { retry: { maxAttempts: 5 }, timeoutMs: 30_000 },
  async run(ctx, { id, cents, items }) {
    /** @type {Array<{ path: string, key: string }>} */
    const sent = [];
    /** @type {(name: string, path: string, body: object) => Promise<void>} */
    const send = async (name, path, body) => {
      const key = ctx.uuid();
      // Noted before the step: a step that is cut off may have had its effect.
      sent.push({ path, key });
      await ctx.step(name, (step) => post(ctx, path, { order: id, ...body }, step), { idempotencyKey: key });
    };
    try {
      await ctx.all(items.map((item) => () => send('reserve', '/reservations', item)));
      await send('charge', '/charges', { cents });
      // A waiting run uses no process.
      await ctx.approval('review', {
        message: `Ship order ${id} for ${(cents / 100).toFixed(2)}?`,
        timeoutMs: DAY_MS,
      });
    } catch (error) {
      const left = await ctx.nonCancellable(() => undo(ctx, id, sent));
      if (left.length === 0) throw error;
      return fail(
        'UNDO_INCOMPLETE',
        `Undo ${left.join(', ')} by hand. The order failed: ${messageOf(error)}`,
      );
    }
    const ship = { retry: { maxAttempts: 100, maxMs: 3600_000, deadlineMs: DAY_MS } };
    await ctx.nonCancellable(() =>
      ctx.step('ship', (step) => post(ctx, '/shipments', { order: id }, step), ship),
    );
    return { status: 'shipped' };
  },
});

/**
 * Undoes requests in parallel. The shop undoes a request that it never received without an error. Returns the requests
 * that could not be undone.
 * @param {Context} ctx
 * @param {string} order
 * @param {Array<{ path: string, key: string }>} sent
 */
async function undo(ctx, order, sent) {
  const left = await ctx.all(
    sent.map(({ path, key }) => async () => {
      try {
        const retry = { maxAttempts: 8 };
        await ctx.step('undo', (step) => post(ctx, `${path}/undo`, { order, key }, step), { retry });
        return [];
      } catch {
        return [`${path} ${key}`];
      }
    }),
  );
  return left.flat();
}

/**
 * Calls the API of the shop. The API performs a request with the same key only once, so that a step that a crash
 * interrupted can be repeated.
 * @param {Context} ctx
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

/** @param {unknown} error */
const messageOf = (error) => (error instanceof Error ? error.message : String(error));
