import { cel } from '../../daemons/workflow/support/workflow.ts';

/** Interruptions count as attempts, and each death may be one. */
export const RETRY = { maxAttempts: 30, initialMs: 20, maxMs: 200 };
export const TICK_MS = 2000;
const ownKey = { idempotencyKey: cel('run.id') };

/** The workflows in YAML. `effects` is the address of the ledger. */
export function definitions(effects: string): Array<{ id: string } & Record<string, unknown>> {
  const post = (path: string, more: object = {}) => ({
    id: path.split('/').at(-1),
    uses: 'http',
    with: { method: 'POST', url: `${effects}/${path.replace('RUN', cel('run.id'))}` },
    ...more,
  });
  const keyed = (name: string, more: object = {}) =>
    post(`effects/RUN/${name}`, { idempotencyKey: `${name}-${cel('run.id')}`, ...more });
  const nap = (ms: string) => ({ id: 'nap', uses: 'wait', with: { ms: cel(ms) } });
  const signal = (id: string, name: string, more: object = {}) => ({
    ...{ id, uses: 'signal', with: { name } },
    ...more,
  });
  const child = (id: string, more: object = {}) => ({ id: 'child', uses: 'workflow', with: { id }, ...more });
  const main = (...steps: object[]) => ({ main: { steps } });
  const done = { outputs: { end: 'done' }, retry: RETRY };

  const order = {
    ...{ id: 'order', ...done },
    jobs: main(
      { id: 'draw', uses: 'http', with: { url: `${effects}/draw` } },
      // A second draw after its effect would come under a second key.
      keyed('pay', { idempotencyKey: `pay-${cel('steps.draw.output.body.id')}` }),
      nap('input.napMs'),
      { id: 'pack', uses: 'code/effect', with: { name: 'pack' }, ...ownKey, retry: RETRY },
      signal('gate', 'go'),
      keyed('mail'),
    ),
  };
  const family = {
    ...{ id: 'family', ...done },
    jobs: {
      members: { strategy: { matrix: { n: [1, 2, 3] } }, steps: [child('member')] },
      after: { needs: ['members'], steps: [keyed('after')] },
    },
  };
  const member = { id: 'member', ...done, jobs: main(keyed('member'), child('leaf')) };
  const leaf = { id: 'leaf', ...done, jobs: main(keyed('leaf'), nap('30')) };
  const deploy = {
    ...{ id: 'deploy', ...done },
    jobs: {
      main: {
        steps: [
          keyed('lock'),
          signal('gate', 'go'),
          { ...post('refused/RUN/check'), if: 'success() && input.fails', idempotent: true },
          keyed('ship'),
          keyed('restore', { if: 'cancelled() || failure()' }),
          { ...nap('input.napMs'), if: 'always()' },
          signal('ack', 'ack', { if: 'always()' }),
          child('leaf', { if: 'always()' }),
          keyed('unlock', { if: 'always()' }),
        ],
      },
      report: { needs: ['main'], if: 'always()', steps: [keyed('report')] },
      alarm: { needs: ['main'], if: 'cancelled()', steps: [keyed('alarm')] },
    },
  };
  const failing = { ...ownKey, retry: { ...RETRY, on: ['server'] } };
  const flaky = {
    ...{ id: 'flaky', outputs: { end: 'done' } },
    jobs: main(
      post('unsteady/RUN/server', failing),
      post('busy/RUN/limited', {
        ...ownKey,
        retry: { ...RETRY, maxAttempts: 1, on: ['rate_limit'], classes: { rate_limit: { maxAttempts: 30 } } },
      }),
      post('refused/RUN/refused', { ...failing, continueOnError: true }),
      {
        ...{ id: 'thrown', uses: 'code/unsteady', ...ownKey },
        // A lost process is of the class `code`, one that is lost as it starts of the class `server`.
        retry: { ...RETRY, on: ['rate_limit', 'code', 'server'] },
      },
      keyed('after', { retry: RETRY }),
    ),
  };
  const lane = {
    ...{ id: 'lane', ...done, concurrency: { key: `lane-${cel('input.lane')}`, limit: 2 } },
    jobs: main(keyed('enter'), nap('input.napMs / 4'), keyed('leave')),
  };
  const latest = {
    ...{ id: 'latest', ...done },
    concurrency: { key: `latest-${cel('input.lane')}`, strategy: 'cancel-running' },
    jobs: main(keyed('enter'), nap('input.napMs'), keyed('leave'), keyed('closed', { if: 'always()' })),
  };
  const schedule = [{ cron: `*/${TICK_MS / 1000} * * * * *`, overlap: 'allow', catchUp: 'all' }];
  const tick = { id: 'tick', ...done, on: { schedule }, jobs: main(keyed('tick')) };
  return [order, family, member, leaf, deploy, flaky, lane, latest, tick];
}
