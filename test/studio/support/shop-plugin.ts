import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

const MANIFEST = {
  schema: 'svc.plugin/3',
  id: 'shop',
  version: '1.0.0',
  permissions: { platform: { emit: true } },
  events: {
    'order.paid': {
      description: 'A customer paid an order.',
      schema: {
        type: 'object',
        required: ['order', 'amount'],
        additionalProperties: false,
        properties: {
          order: { title: 'Order', type: 'string', maxLength: 40 },
          amount: { title: 'Amount', type: 'integer', minimum: 1 },
          currency: { title: 'Currency', enum: ['EUR', 'USD'] },
          express: { title: 'Express', type: 'boolean' },
        },
      },
    },
  },
  webhooks: [{ event: 'paid', handler: 'shop.js#onPaid', auth: { type: 'secret', header: 'x-token' } }],
  commands: [
    { id: 'pay', handler: 'shop.js#pay' },
    { id: 'close', handler: 'shop.js#close' },
  ],
};

const SOURCE = `
const pay = (ctx, { order, amount }) => ctx.emit('order.paid', { order, amount });
const close = (ctx, { fails }) => {
  if (fails) throw new Error('The shop is closed.');
};
export async function onPaid(ctx, order) {
  const { id } = await pay(ctx, order);
  close(ctx, order);
  return { id };
}
export { close, pay };`;

const STEPS = [
  { id: 'pay', uses: 'shop/pay', with: { order: `\${{ input.order }}`, amount: 7 } },
  { id: 'close', uses: 'shop/close', with: { fails: `\${{ input.fails }}` } },
];

/** Workflow that pays an order, and fails if its input asks for it. */
const WORKFLOW = { id: 'bill', jobs: { main: { steps: STEPS } } };

/** Adds a plugin whose webhook and whose workflow `bill` send messages of a declared type. */
export async function addShop(folder: string): Promise<void> {
  const plugin = join(folder, 'plugins/shop');
  await mkdir(plugin, { recursive: true });
  await writeFile(join(plugin, 'svc.plugin.json'), JSON.stringify(MANIFEST));
  await writeFile(join(plugin, 'shop.js'), SOURCE);
  await writeFile(join(plugin, 'package.json'), '{"name":"shop","version":"1.0.0","type":"module"}');
  await writeFile(join(folder, 'workflows/bill.yaml'), JSON.stringify(WORKFLOW));
}
