import { defineRoute, fail, ok } from 'svc-platform/sdk';

export const place = defineRoute({
  method: 'POST',
  async execute(ctx, { id, customer, cents }) {
    const key = `order:${id}`;
    const placed = { id, customer, cents, status: 'placed' };
    const order = (await ctx.state.get(key)) ?? placed;
    if (order.customer !== customer || order.cents !== cents)
      return fail('ORDER_EXISTS', `The order ${id} has other contents.`);
    if (order.status === 'placed') await ctx.state.set(key, order);
    await tell(ctx, 'order.placed', placed);
    return ok(order);
  },
});

export const pay = defineRoute({
  method: 'POST',
  async execute(ctx) {
    const key = `order:${ctx.params.id}`;
    const found = await ctx.state.get(key);
    if (!found) return fail('ORDER_NOT_FOUND', `There is no order ${ctx.params.id}.`);
    const order = { ...found, status: 'paid' };
    await ctx.state.set(key, order);
    await tell(ctx, 'order.paid', order);
    return ok(order);
  },
});

/**
 * Emits to the endpoints of one customer. The key makes a repeated call emit once, also if the first call failed after
 * it had written the order.
 */
function tell(ctx, type, order) {
  return ctx.emit(type, order, { application: order.customer, idempotencyKey: order.id });
}
