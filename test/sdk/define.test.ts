import { expect, expectTypeOf, test } from 'vitest';
import { z } from 'zod';
import type { RouteContext, WebhookContext } from '../../src/contracts/index.ts';
import {
  defineCommand,
  defineJob,
  defineManifest,
  defineRoute,
  defineValidator,
  defineWebhook,
  defineWorkflow,
  fail,
  ok,
} from '../../src/sdk/index.ts';

const Order = z.object({ sku: z.string(), count: z.coerce.number().default(1) });

test.each([
  ['command', defineCommand],
  ['route', defineRoute],
  ['webhook', defineWebhook],
  ['job', defineJob],
])('a %s is defined by a function or by an object with execute', (kind, define) => {
  const make = define as (handler: unknown) => unknown;
  const execute = () => 'done';
  expect(make(execute)).toEqual({ kind, execute });
  expect(make({ execute, input: Order })).toEqual({ kind, execute, input: Order });
});

test('a validator is defined by a function or by an object with execute', () => {
  const execute = () => ({ valid: true });
  expect(defineValidator(execute)).toEqual({ kind: 'validator', execute });
  expect(defineValidator({ execute })).toEqual({ kind: 'validator', execute });
});

test('a definition cannot pass for another kind', () => {
  const spec = { kind: 'route', execute: () => {} };
  expect(defineWebhook(spec as never).kind).toBe('webhook');
});

test('input and output are inferred from the schemas', () => {
  const route = defineRoute({
    method: 'POST',
    input: Order,
    output: z.object({ total: z.coerce.number() }),
    execute(ctx, input) {
      expectTypeOf(ctx).toEqualTypeOf<RouteContext>();
      expectTypeOf(input).toEqualTypeOf<{ sku: string; count: number }>();
      return input.count > 9 ? fail('TOO_MANY', 'At most nine') : { total: '12' };
    },
  });
  expect(route.execute({} as never, { sku: 'a', count: 1 })).toEqual({ total: '12' });
  defineCommand({
    output: z.object({ total: z.number() }),
    // @ts-expect-error the result does not fit the output schema
    execute: () => ({ totals: 1 }),
  });
  defineWebhook<{ action: string }>((ctx, payload) => {
    expectTypeOf(ctx).toEqualTypeOf<WebhookContext>();
    expectTypeOf(payload).toEqualTypeOf<{ action: string }>();
    return ok({ seen: payload.action });
  });
  defineJob((_ctx, input) => expectTypeOf(input).toEqualTypeOf<unknown>());
});

test('a manifest as a module is checked by its type and stays what was written', () => {
  const manifest = defineManifest({
    schema: 'svc.plugin/3',
    id: 'demo',
    version: '1.0.0',
    commands: [{ id: 'greet', handler: 'commands.js#greet' }],
  });
  expect(manifest.commands[0].id).toBe('greet');
  // @ts-expect-error "handlers" is no key of a command
  defineManifest({ schema: 'svc.plugin/3', id: 'x', version: '1.0.0', commands: [{ handlers: 'a#b' }] });
});

test('payloads of signals are typed by their schemas, others by whoever waits', () => {
  defineWorkflow({
    id: 'shop',
    signals: { paid: Order },
    async run(ctx) {
      expectTypeOf((await ctx.waitForSignal('paid')).payload).toEqualTypeOf<z.output<typeof Order>>();
      expectTypeOf((await ctx.waitForSignal('note')).payload).toBeUnknown();
      expectTypeOf((await ctx.waitForSignal<string>('note')).payload).toBeString();
    },
  });
  defineWorkflow({
    id: 'plain',
    async run(ctx) {
      expectTypeOf((await ctx.waitForSignal('paid')).payload).toBeUnknown();
    },
  });
});
