import { defineWebhook } from 'svc-platform/sdk';

/** Books a payment. A repeated attempt writes the same entry again. */
export const onPaid = defineWebhook({
  async execute(ctx, { id, amount }) {
    await ctx.state.set(`payment:${id}`, { amount });
    return { booked: id };
  },
});
