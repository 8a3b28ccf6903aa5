import { expect, test } from 'vitest';
import type { DaemonDefinition, DaemonServices } from '../../src/daemons/define-daemon.ts';
import { marketplace } from '../../src/daemons/marketplace/index.ts';
import { rest } from '../../src/daemons/rest/index.ts';
import { state } from '../../src/daemons/state/index.ts';
import { workflow } from '../../src/daemons/workflow/index.ts';
import type { Http } from '../../src/http/index.ts';
import { startTestDaemon } from '../support/daemon.ts';

/** Health, readiness, metrics and descriptions. */
const OPEN =
  /^\/(?:(?:api\/v1\/)?(?:health|ready|metrics)|openapi(?:-plugins)?\.json|docs(?:\/start\.js|\/assets\/:asset)?)$/;

/** Every route of a daemon that requires identity, with what a call without any is answered. */
async function answersOf<Services extends DaemonServices>(definition: DaemonDefinition<Services>) {
  let routes: Http['kit']['routes'] = [];
  const daemon = await startTestDaemon(
    {
      ...definition,
      routes: [
        ...definition.routes,
        (http: Http) => {
          routes = http.kit.routes;
        },
      ],
    },
    { config: { auth: { mode: 'required' } } },
  );
  return Promise.all(
    routes.map(async ({ method, path }) => {
      const target = path.replace(/:\w+/g, 'x').replace('*', 'x');
      const { status } = await daemon.fetch(target, { method });
      return { call: `${method} ${path}`, path, status };
    }),
  );
}

test.each([
  ['rest', () => answersOf(rest)],
  ['workflow', () => answersOf(workflow)],
  ['marketplace', () => answersOf(marketplace)],
  ['state', () => answersOf(state)],
])('%s: without identity only health, readiness, metrics and descriptions answer', async (_name, answers) => {
  const all = await answers();
  const closed = all.filter(({ path }) => !OPEN.test(path));
  expect(closed.length).toBeGreaterThan(3);
  expect(closed.filter(({ status }) => status !== 401)).toEqual([]);
});
