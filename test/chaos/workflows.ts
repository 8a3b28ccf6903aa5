import { mkdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { writeCodePlugin } from '../daemons/workflow/support/code.ts';
import { cel } from '../daemons/workflow/support/workflow.ts';

/** A kind of run: its workflow, and what it leaves behind when nobody cancels it. */
export interface Kind {
  workflowId: 'order' | 'family' | 'saga' | 'parallel';
  input: { napMs: number; fails: boolean };
  /** A signal is sent to it. */
  isGated: boolean;
  output: unknown;
  effects: string[];
  children: number;
}

const RETRY = { maxAttempts: 20, initialMs: 20, maxMs: 200 };

function yaml(url: string): Record<string, object> {
  const post = (name: string) => ({
    id: name,
    uses: 'http',
    with: { method: 'POST', url: `${url}/effects/${cel('run.id')}/${name}` },
  });
  return {
    order: {
      id: 'order',
      outputs: { end: cel('jobs.main.outputs.end') },
      jobs: {
        main: {
          outputs: { end: 'done' },
          steps: [
            { id: 'draw', uses: 'http', with: { url: `${url}/draw` } },
            // A second draw after its effect would come under a second key.
            { ...post('pay'), idempotencyKey: `pay-${cel('steps.draw.output.body.id')}` },
            { id: 'nap', uses: 'wait', with: { ms: cel('input.napMs') } },
            {
              id: 'pack',
              uses: 'code/effect',
              with: { name: 'pack' },
              idempotencyKey: cel('run.id'),
              retry: RETRY,
            },
            { id: 'gate', uses: 'signal', with: { name: 'go' } },
            { ...post('mail'), idempotencyKey: `mail-${cel('run.id')}` },
          ],
        },
      },
    },
    family: {
      id: 'family',
      outputs: { end: 'done' },
      jobs: {
        members: {
          strategy: { matrix: { n: [1, 2, 3] } },
          steps: [{ id: 'c', uses: 'workflow', with: { id: 'member' } }],
        },
        after: {
          needs: ['members'],
          steps: [{ ...post('after'), idempotencyKey: `after-${cel('run.id')}` }],
        },
      },
    },
    member: {
      id: 'member',
      jobs: {
        main: {
          steps: [
            { ...post('member'), idempotencyKey: `member-${cel('run.id')}` },
            { id: 'nap', uses: 'wait', with: { ms: 30 } },
          ],
        },
      },
    },
  };
}

const code = (url: string): string => `
const post = (ctx, name, key) => ctx.fetch(\`${url}/effects/\${ctx.hostContext.runId}/\${name}\`,
  { method: 'POST', headers: { 'idempotency-key': key } });
const options = { idempotent: true, retry: ${JSON.stringify(RETRY)} };
const act = (ctx, name) => ctx.step(name, async ({ idempotencyKey }) => {
  await post(ctx, name, idempotencyKey);
  return name;
}, options);
const undoAll = (ctx, names) => ctx.nonCancellable(async () => { for (const name of names) await act(ctx, name); });
const soldOut = (ctx) => ctx.step('refuse', () => { throw Object.assign(new Error('sold out'), { errorClass: 'validation' }); });

export const effect = defineCommand({ execute: async (ctx, { name }) => {
  await post(ctx, name, name + ctx.hostContext.idempotencyKey);
} });

export const saga = defineWorkflow({ id: 'saga', run: async (ctx, { napMs, fails }) => {
  const undo = [];
  try {
    for (const name of ['reserve', 'charge']) {
      undo.unshift('undo-' + name);
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
    // What a cancel met in the air may have happened too.
    const names = [...done.reverse(), ...[...begun].filter((name) => !done.includes(name))];
    await undoAll(ctx, names.map((name) => 'undo-' + name));
    if (error.name === 'CancelledError') throw error;
    return { end: 'undone' };
  }
} });`;

/** Writes the workflows of all kinds. */
export async function writeWorkflows(projectDir: string, url: string): Promise<void> {
  const folder = join(projectDir, 'workflows');
  await mkdir(folder, { recursive: true });
  for (const [name, definition] of Object.entries(yaml(url)))
    await writeFile(join(folder, `${name}.yaml`), JSON.stringify(definition));
  await writeCodePlugin(projectDir, code(url), {
    commands: [{ id: 'effect', handler: 'flows.js#effect' }],
    permissions: { network: [new URL(url).host], platform: { workflows: true } },
  });
}

const undone = (names: string[]): string[] => [...names, ...names.map((name) => `undo-${name}`)];

export function kindOf(place: number, random: () => number): Kind {
  const input = { napMs: Math.floor(random() * 1500), fails: random() < 0.3 };
  const end = (fails: boolean) => ({ end: fails ? 'undone' : 'done' });
  const base = { input, isGated: true, children: 0 };
  switch (place % 4) {
    case 0:
      return { ...base, workflowId: 'order', output: end(false), effects: ['pay', 'pack', 'mail'] };
    case 1:
      return {
        ...base,
        ...{ workflowId: 'family', output: end(false), effects: ['after'] },
        ...{ isGated: false, children: 3 },
      };
    case 2: {
      const effects = input.fails ? undone(['reserve', 'charge']) : ['reserve', 'charge', 'ship'];
      return { ...base, workflowId: 'saga', output: end(input.fails), effects };
    }
    default: {
      const acts = ['hotel', 'flight', 'car'];
      const effects = input.fails ? undone(acts) : acts;
      return {
        ...base,
        ...{ workflowId: 'parallel', output: end(input.fails), effects },
        ...{ isGated: false, children: 1 },
      };
    }
  }
}
