import { describe, expect, test } from 'vitest';
import { startCode } from './support/code.ts';

describe('a replay delivers completions in their original order', () => {
  test('steps run in parallel: a saga compensates completed ones, and resumes its compensation', async () => {
    const it = await startCode(`
      const pause = (ms) => new Promise((done) => setTimeout(done, ms));
      export const saga = defineWorkflow({
        id: 'saga',
        run: async (ctx) => {
          const undo = [];
          try {
            await ctx.all(['slow', 'fast', 'faster'].map((name, place) => async () => {
              await ctx.step(name, () => pause(300 - 100 * place));
              undo.push(name);
            }));
            await ctx.step('charge', () => { throw new Error('declined'); });
          } catch (error) {
            for (const name of undo.reverse()) {
              await ctx.step('undo-' + name, () => {});
              await ctx.sleep('rest', 1000);
            }
            return { why: error.message, undo };
          }
        },
      });`);
    const run = await it.moveUntil(await it.begin('saga'), 1000, 'succeeded', 'failed');
    expect(run.error).toBeNull();
    expect(run.output).toEqual({ why: 'declined', undo: ['slow', 'fast', 'faster'] });
  });

  test('signals, sleeps and children complete in the same order in every replay', async () => {
    const it = await startCode(
      `
      export const child = defineWorkflow({ id: 'child', run: async (ctx, { name }) => { await ctx.waitForSignal('end'); return name; } });
      export const race = defineWorkflow({
        id: 'race',
        run: async (ctx) => {
          const came = [];
          const note = async (name) => {
            came.push(name);
            await ctx.step('came-' + came.join('-'), () => {});
          };
          await ctx.all([
            async () => note(await ctx.runWorkflow('child', { name: 'child' })),
            async () => note((await ctx.waitForSignal('first')).payload),
            async () => note((await ctx.waitForSignal('second')).payload),
            async () => { await ctx.sleep(1000); await note('sleep'); },
          ]);
          return came;
        },
      });`,
      { permissions: { platform: { workflows: true } } },
    );
    const id = await it.begin('race');
    const comes = (states: string) => expect.poll(() => it.states(id)).toContain(states);
    await comes('child@1-0 waiting');
    await it.until(id, 'waiting');
    await it.services.runs.signal('default', id, 'second', 'second');
    await comes('came-second@1-2 succeeded');
    await it.wakeAfter(1000);
    await comes('came-second-sleep@1-3 succeeded');
    await it.services.runs.signal('default', id, 'first', 'first');
    await comes('came-second-sleep-first@1-1 succeeded');
    const child = (await it.step(id, 'main.child@1-0')).waitingFor!.runId!;
    await it.services.runs.signal('default', child, 'end', null);
    const run = await it.until(id, 'succeeded', 'failed');
    expect(run.error).toBeNull();
    expect(run.output).toEqual(['second', 'sleep', 'first', 'child']);
  });

  test('the order also holds where a branch does other work between two steps', async () => {
    const it = await startCode(`
      const digest = (text) => crypto.subtle.digest('SHA-256', new TextEncoder().encode(text));
      const pause = () => new Promise((done) => setTimeout(done, 30));
      export const hashes = defineWorkflow({
        id: 'hashes',
        run: async (ctx) => {
          const order = [];
          await ctx.all(['a', 'b', 'c'].map((name, place) => async () => {
            await ctx.step(name, () => {});
            for (let turn = place; turn < 3; turn++) await digest(name).then(pause);
            order.push(name);
          }));
          await ctx.sleep(1000);
          await ctx.step('after-' + order.join(''), () => {});
          await ctx.sleep(1000);
          return order;
        },
      });`);
    const id = await it.begin('hashes');
    // The clock stands still while the function runs, which would count as hung after a minute.
    for (const sleep of ['sleep waiting', 'sleep:2 waiting']) {
      await expect.poll(() => it.states(id), { timeout: 20_000 }).toContain(sleep);
      await it.until(id, 'waiting');
      await it.wakeAfter(1000);
    }
    const run = await it.until(id, 'succeeded', 'failed');
    expect(run.error).toBeNull();
    // A branch continues only after the branch before has ended, although its own work is shorter.
    expect(run.output).toEqual(['a', 'b', 'c']);
  });
});

describe('code that no longer reaches an ended step', () => {
  const flow = (first: string) => `
    export const flow = defineWorkflow({
      id: 'flow',
      run: async (ctx) => {
        await ctx.all([
          async () => { ${first} },
          async () => { await ctx.waitForSignal('go'); await ctx.sleep(1000); },
        ]);
        await ctx.step('effect', () => {});
      },
    });`;

  test('fails before any new step starts', async () => {
    const it = await startCode(flow("await ctx.step('removed', () => 1);"));
    const id = await it.begin('flow');
    await it.until(id, 'waiting');
    await it.services.runs.signal('default', id, 'go', null);
    await expect.poll(() => it.states(id)).toContain('sleep@1-1 waiting');
    await it.until(id, 'waiting');
    await it.rewrite(flow(''));
    await it.wakeAfter(1000);
    expect((await it.until(id, 'failed', 'succeeded')).error).toMatchObject({
      code: 'WORKFLOW_DEFINITION_CHANGED',
      details: { expected: 'step "removed@1-0"', found: 'no such step', branch: '1-0', place: 0 },
    });
    expect(await it.states(id)).not.toContain('effect@ succeeded');
    expect((await it.steps(id)).map(({ name }) => name)).not.toContain('effect');
  });
});

test('a run from a step on keeps the order of what it takes over, with failures that were caught side by side', async () => {
  const it = await startCode(`
    const pause = (ms) => new Promise((done) => setTimeout(done, ms));
    export const saga = defineWorkflow({
      id: 'saga',
      run: async (ctx) => {
        const undo = [];
        try {
          await ctx.all(['slow', 'fast', 'bad'].map((name, place) => async () => {
            await ctx.step(name, async () => { await pause(200 - 100 * place); if (name === 'bad') throw new Error(name); });
            undo.push(name);
          }));
        } catch {
          for (const name of undo) await ctx.step('undo-' + name, () => Math.random());
          await ctx.step('last', () => {});
          return undo;
        }
      },
    });`);
  const id = await it.begin('saga');
  expect((await it.until(id, 'succeeded', 'failed')).output).toEqual(['fast', 'slow']);
  const who = { tenantId: 'default', hostId: 'x', requestId: 'r', traceId: 't' };
  const again = await it.services.reruns.rerun('default', id, { fromStep: 'main.last' }, who);
  const run = await it.until(again.id, 'succeeded', 'failed');
  expect(run.error).toBeNull();
  const outputs = async (runId: string) =>
    (await it.steps(runId)).slice(0, -1).map(({ name, output, finishedAt }) => [name, output, finishedAt]);
  expect(await outputs(again.id)).toEqual(await outputs(id));
});
