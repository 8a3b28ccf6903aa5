import { expect, test } from 'vitest';
import { planText } from '../../../src/cli/commands/plugins/install-plan.ts';
import { pluginText } from '../../../src/cli/commands/plugins/show.ts';
import { createStyle } from '../../../src/cli/style.ts';
import { getPlugin, installPlugin, ManifestV3, planPlugin } from '../../../src/contracts/index.ts';
import { selfStarting, workflowBriefs } from '../../../src/plugins/index.ts';
import { greeter, pluginFolder, startMarketplace } from './support.ts';

const params = { pluginId: '@acme/greeter' as never };
const steps = [{ uses: 'set', with: { n: 1 } }];

/** A plugin with one of everything that runs without a user who asks for it. */
const MANIFEST = {
  webhooks: [
    {
      event: 'made',
      handler: 'h.js#greet',
      auth: { type: 'custom', validator: 'h.js#greet' },
      onProvision: 'h.js#greet',
    },
  ],
  workflows: [
    {
      id: 'nightly',
      name: 'Nightly report',
      on: {
        schedule: [{ cron: '0 3 * * *', timezone: 'Europe/Paris' }],
        webhook: { pluginId: 'github', event: 'push' },
      },
      jobs: { main: { steps } },
    },
    { id: 'coded', handler: 'h.js#greet' },
  ],
  schedules: [{ workflow: 'coded', cron: '30 * * * *' }],
  lifecycle: { onEnable: 'h.js#greet', onDisable: 'h.js#greet' },
};

const SELF_STARTING = [
  ['schedule', '0 3 * * * Europe/Paris -> nightly', 'at 0 3 * * * (Europe/Paris)'],
  ['event', 'github/push -> nightly', 'after each delivery of github/push'],
  ['schedule', '30 * * * * UTC -> coded', 'at 30 * * * * (UTC)'],
  ['validator', 'made', 'on each request to made, before its sender is known'],
  ['hook', 'onProvision made', 'when made gets a secret'],
  ['hook', 'onEnable', 'when it is installed, updated, linked or enabled'],
  ['hook', 'onDisable', 'when it is disabled, unlinked or uninstalled'],
];

test('the consent to an installation and `plugins show` list all automatic triggers', async () => {
  const daemon = await startMarketplace();
  const source = await pluginFolder(greeter('1.0.0', MANIFEST));
  const plan = await daemon.call(planPlugin, { body: { source } });
  for (const [what, name, when] of SELF_STARTING)
    expect(plan.changes).toContainEqual({ change: 'added', what, name, after: { when } });
  for (const [id, code] of [
    ['nightly', false],
    ['coded', true],
  ])
    expect(plan.changes).toContainEqual({ change: 'added', what: 'workflow', name: id, after: { code } });
  expect(plan.warnings).toEqual([
    'It starts workflows by itself: 2 on schedules, 1 on webhook deliveries.',
    'Its code runs on unauthenticated requests.',
  ]);
  const asked = planText(plan, createStyle({ isTTY: false }, {}));
  for (const [what, name, when] of SELF_STARTING) expect(asked).toContain(`+ ${what} ${name}: ${when}`);

  await daemon.call(installPlugin, { body: { source } });
  const detail = await daemon.call(getPlugin, { params });
  expect(detail.startsItself).toEqual(SELF_STARTING.map(([what, name, when]) => ({ what, name, when })));
  expect(detail.workflows).toEqual([
    { id: 'nightly', name: 'Nightly report', code: false, refused: false },
    { id: 'coded', name: null, code: true, refused: false },
  ]);
  const shown = pluginText(detail, createStyle({ isTTY: false }, {}));
  for (const [what, name, when] of SELF_STARTING) expect(shown).toContain(`${what} ${name}: ${when}`);
  expect(shown).toContain('nightly, coded');
});

test('a refused workflow is listed as such, and starts no run', () => {
  const workflows = [{ id: 'faulty', jobs: {}, on: { schedule: [{ cron: '* * * * *' }] } }, { jobs: {} }];
  const manifest = ManifestV3.parse({ schema: 'svc.plugin/3', id: 'one', version: '1.0.0', workflows });
  expect(workflowBriefs(manifest)).toEqual([
    { id: 'faulty', name: null, isCode: false, isSound: false },
    { id: 'workflows[1]', name: null, isCode: false, isSound: false },
  ]);
  expect(selfStarting(manifest)).toEqual([]);
});

test('an update that adds a schedule needs consent', async () => {
  const daemon = await startMarketplace();
  await daemon.call(installPlugin, { body: { source: await pluginFolder(greeter('1.0.0')) } });
  const { workflows, schedules } = MANIFEST;
  const source = await pluginFolder(greeter('1.1.0', { workflows, schedules }));
  const { changes } = await daemon.call(planPlugin, { body: { pluginId: params.pluginId, source } });
  expect(changes.map(({ what, name }) => `${what} ${name}`)).toEqual(
    expect.arrayContaining(['schedule 30 * * * * UTC -> coded', 'workflow nightly']),
  );
});
