import { writeSync } from 'node:fs';
import { setStep } from '../../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import { openEngine } from '../support/engine.ts';
import { cel } from '../support/workflow.ts';

/**
 * suspects.ts <data folder> <slots for steps> <new runs of an endless step> <new runs of an endless expression>
 * <new runs whose second step kills the service in place> <crash|kill>: an engine that has the folder for itself, and prints
 * what begins; how the one before died stands last.
 */
const [dataDir, slots, steps, expressions, deadly, death] = process.argv.slice(2) as [
  string,
  string,
  string,
  string,
  string,
  string,
];
const say = (line: string): void => void writeSync(1, `${line}\n`);
const it = await openEngine({
  dataDir,
  exclusive: true,
  hadFault: death === 'crash',
  steps: Number(slots),
  threads: {
    run() {
      say('evaluating');
      return new Promise(() => {});
    },
    close: async () => {},
  },
  wrapEvaluator: (evaluator) => ({
    ...evaluator,
    within(what, scope, budget) {
      if (JSON.stringify(what.written.value).includes('deadly')) process.kill(process.pid, 'SIGKILL');
      return evaluator.within(what, scope, budget);
    },
    now(what, scope) {
      if (JSON.stringify(what.written.value).includes('deadly')) process.kill(process.pid, 'SIGKILL');
      return evaluator.now(what, scope);
    },
  }),
  kinds: [
    {
      ...setStep,
      name: 'endless',
      mode: 'effect',
      takesSlot: true,
      run({ run }) {
        say(`step ${run.id}`);
        return new Promise(() => {});
      },
    },
  ],
});
process.on('SIGTERM', async () => {
  await it.close();
  process.exit(0);
});
await it.engine.start();
const begin = async (count: number, ...of: object[]): Promise<void> => {
  for (let n = 0; n < count; n++) say(`begun ${await it.begin(of)}`);
};
await begin(Number(steps), { uses: 'endless' });
await begin(Number(expressions), { uses: 'set', with: { v: cel('"x".matches("x")') } });
await begin(
  Number(deadly),
  { uses: 'set', with: { v: cel('1') } },
  { uses: 'set', with: { v: cel('"deadly"') } },
);
say('ready');
setInterval(() => {}, 1000);
