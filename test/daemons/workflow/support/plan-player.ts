import { REPEATABLE } from './played-runs.ts';

export type Plan = Array<
  | { do: 'step' | 'sleep' | 'child'; ms: number }
  | { do: 'signal'; name: string }
  | { do: 'all' | 'race'; of: Plan[] }
>;

/** Every step is named after all that the function saw before it: a replay in another order asks for other steps. */
export const PLAYER = `
  const pause = (ms) => new Promise((done) => setTimeout(done, ms));
  const hash = (trace) => trace.join().split('').reduce((sum, char) => (sum * 31 + char.charCodeAt(0)) >>> 0, 7).toString(36);
  export const child = defineWorkflow({
    id: 'child',
    run: async (ctx, { ms }) => { await ctx.sleep(ms); },
  });
  export const play = defineWorkflow({
    id: 'play',
    steps: ${REPEATABLE},
    run: async (ctx, { plan }) => {
      const trace = [];
      const name = () => 'after-' + hash(trace);
      const kinds = {
        step: ({ ms }) => {
          const before = [...trace];
          return ctx.step(name(), async () => { await pause(ms); return before; });
        },
        sleep: ({ ms }) => ctx.sleep(name(), ms),
        signal: (node) => ctx.waitForSignal(node.name),
        child: (node) => ctx.runWorkflow('child', node, { name: name() }),
        all: ({ of }, path) => ctx.all(of.map((nodes, place) => () => go(nodes, path + '.' + place))),
        async race({ of }, path) {
          let first;
          await ctx.all(of.map((nodes, place) => async () => {
            await go(nodes, path + '.' + place);
            first ??= place;
            await ctx.step(name(), () => [...trace]);
          }));
          trace.push(path + ' won by ' + first);
        },
      };
      async function go(nodes, path) {
        for (const [place, node] of nodes.entries()) {
          await kinds[node.do](node, path + '.' + place);
          trace.push(path + '.' + place);
        }
      }
      await go(plan, '');
      return trace;
    },
  });`;
