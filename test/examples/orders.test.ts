import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { createTestHost } from '../../src/testing/index.ts';

const PLUGIN = join(import.meta.dirname, '../../examples/plugins/orders');
const ORDER = { id: 'o-1', customer: 'acme', cents: 1900 };

async function startOrders() {
  const host = await createTestHost({ plugin: PLUGIN });
  onTestFinished(() => host.close());
  return host;
}

test('an order that is placed and paid emits one event each to its customer, also if calls are repeated', async () => {
  const host = await startOrders();
  for (let call = 0; call < 2; call++) {
    const placed = await host.route('POST', '/orders', { body: ORDER });
    expect(placed).toMatchObject({ status: 200 });
  }
  for (let call = 0; call < 2; call++) {
    const paid = await host.route('POST', '/orders/o-1/pay');
    expect(paid).toMatchObject({ status: 200 });
  }
  // A paid order stays paid, and its id is taken.
  const again = await host.route('POST', '/orders', { body: ORDER });
  expect(again).toMatchObject({ status: 200, body: { status: 'paid' } });
  const other = await host.route('POST', '/orders', { body: { ...ORDER, cents: 1 } });
  expect(other).toMatchObject({ status: 409 });
  const emitted = await host.emitted();
  expect(emitted).toMatchObject([
    { type: 'order.placed', data: { ...ORDER, status: 'placed' }, application: 'acme' },
    { type: 'order.paid', data: { ...ORDER, status: 'paid' }, application: 'acme' },
  ]);
});

test('an order that does not exist emits nothing', async () => {
  const host = await startOrders();
  expect(await host.route('POST', '/orders/o-9/pay')).toMatchObject({ status: 404 });
  expect(await host.emitted()).toEqual([]);
});
