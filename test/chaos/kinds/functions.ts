import { RETRY } from './definitions.ts';

/** Commands and workflows of the plugin `code`. `effects` is the address of the ledger. */
export const functions = (effects: string): string => `
const post = (ctx, path, key) => ctx.fetch('${effects}/' + path, { method: 'POST', headers: { 'idempotency-key': key } });
const effectOf = (ctx, name, key) => post(ctx, 'effects/' + ctx.hostContext.runId + '/' + name, key);
const options = { idempotent: true, retry: ${JSON.stringify(RETRY)} };
const act = (ctx, name) => ctx.step(name, async ({ idempotencyKey }) => {
  await effectOf(ctx, name, idempotencyKey);
  return name;
}, options);
const soldOut = (ctx) => ctx.step('refuse', () => { throw Object.assign(new Error('sold out'), { errorClass: 'validation' }); });

// It waits for a time, a signal and a child.
const undoAll = (ctx, names) => ctx.nonCancellable(async () => {
  for (const name of names) {
    await act(ctx, 'undo-' + name);
    await ctx.sleep(20);
  }
  await ctx.waitForSignal('settle');
  await ctx.runWorkflow('leaf');
});

export const effect = defineCommand({ execute: (ctx, { name }) => effectOf(ctx, name, name + ctx.hostContext.idempotencyKey).then(() => null) });

export const unsteady = defineCommand({ execute: async (ctx) => {
  const { status } = await post(ctx, 'unsteady/' + ctx.hostContext.runId + '/thrown', ctx.hostContext.idempotencyKey);
  if (status !== 200) throw Object.assign(new Error('busy'), { errorClass: 'rate_limit' });
  return null;
} });

export const saga = defineWorkflow({ id: 'saga', run: async (ctx, { napMs, fails }) => {
  const undo = [];
  try {
    for (const name of ['reserve', 'charge']) {
      undo.unshift(name);
      await act(ctx, name);
    }
    await ctx.sleep(napMs);
    await ctx.waitForSignal('go');
    if (fails) await soldOut(ctx);
    await act(ctx, 'ship');
    return { end: 'done' };
  } catch (error) {
    await undoAll(ctx, undo);
    if (error.name === 'CancelledError') throw error;
    return { end: 'undone' };
  }
} });

export const parallel = defineWorkflow({ id: 'parallel', run: async (ctx, { napMs, fails }) => {
  const begun = new Set();
  const done = [];
  try {
    await ctx.all([
      async () => { begun.add('hotel'); done.push(await act(ctx, 'hotel')); await ctx.sleep('rest', napMs); },
      async () => { begun.add('flight'); done.push(await act(ctx, 'flight')); await ctx.sleep('pause', napMs / 2); },
      async () => { begun.add('car'); await ctx.invoke('code/effect', { name: 'car' }, { ...options, idempotencyKey: 'car-' + ctx.hostContext.runId }); done.push('car'); },
      async () => { await ctx.runWorkflow('member'); },
    ]);
    if (fails) await soldOut(ctx);
    return { end: 'done' };
  } catch (error) {
    // What a cancel met in flight may have happened too.
    await undoAll(ctx, [...done.reverse(), ...[...begun].filter((name) => !done.includes(name))]);
    if (error.name === 'CancelledError') throw error;
    return { end: 'undone' };
  }
} });

export const gather = defineWorkflow({ id: 'gather', run: async (ctx, { count }) => {
  const got = [];
  while (got.length < count) {
    const { payload } = await ctx.waitForSignal('item');
    got.push(payload);
    await act(ctx, 'item-' + payload);
  }
  return { got: got.toSorted() };
} });`;
