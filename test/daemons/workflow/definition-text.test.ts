import { expect, test } from 'vitest';
import { checkDefinition } from '../../../src/daemons/workflow/domain/definition/check-definition.ts';
import { checkingKinds } from '../../../src/daemons/workflow/step-kinds.ts';
import { cel } from './support/workflow.ts';

const faultsOf = (...lines: string[]) =>
  checkDefinition(lines.join('\n'), checkingKinds()).faults.map(
    ({ line, column, path, message }) => `${line}:${column} ${path}: ${message}`,
  );

test('faults of shape, times, steps and expressions are all reported, each with line and column', () => {
  const faults = faultsOf(
    'id: ship',
    'on:',
    '  schedule:',
    '    - cron: "61 * * * *"',
    'jobs:',
    '  build:',
    '    stepz: 4',
    '    steps:',
    '      - uses: htp',
    '      - uses: http',
    '        timeoutMs: soon',
    '        with:',
    '          url: https://example.com',
    `          body: "${cel('input.n +')}"`,
    '      - id: third',
    '  test:',
    '    needs: [build]',
    '    steps:',
    '      - uses: set',
    '        with:',
    '          text: |',
    '            one',
    `            two ${cel('input.m + ')}`,
  );
  expect(faults).toEqual([
    expect.stringMatching(/^4:13 on\.schedule\[0\]\.cron: /),
    '7:12 jobs.build.stepz: is not a known key; did you mean "steps"?',
    expect.stringMatching(/^9:15 jobs\.build\.steps\[0\]\.uses: nothing runs "htp"/),
    '11:20 jobs.build.steps[1].timeoutMs: must be a number, not a string',
    expect.stringMatching(/^14:\d+ jobs\.build\.steps\[1\]\.with\.body: /),
    '15:9 jobs.build.steps[2].uses: is missing: name a command or a kind of step, or write run: or sleep: instead',
    expect.stringMatching(/^23:\d+ jobs\.test\.steps\[0\]\.with\.text: /),
  ]);
});

test('a job that another fault takes out is not missed by those that need it', () => {
  expect(
    faultsOf('id: ship', 'jobs:', '  build: 4', '  test:', '    needs: build', '    steps: [{uses: set}]'),
  ).toEqual(['3:10 jobs.build: must be an object, not a number']);
});

test.each([
  ['{ pluginId: p, event: e, if: "x." }', 'on.webhook.if'],
  ['[{ pluginId: p, event: e, if: "x." }]', 'on.webhook[0].if'],
])('a fault of a webhook has its place as written: %s', (webhook, path) => {
  const [fault] = faultsOf(
    'id: a',
    `on: { webhook: ${webhook} }`,
    'jobs: { main: { steps: [{ uses: set }] } }',
  );
  expect(fault).toMatch(new RegExp(`^2:\\d+ ${path.replaceAll(/[.[\]]/g, '\\$&')}: `));
});

test('every syntax error of the text is reported with its line', () => {
  const { faults } = checkDefinition('id: "ship\njobs: [\n', checkingKinds());
  expect(faults.length).toBeGreaterThan(0);
  for (const { line, column } of faults) expect([typeof line, typeof column]).toEqual(['number', 'number']);
  const [fault] = checkDefinition('id: a\njobs:\n  x: }\n', checkingKinds()).faults;
  expect(fault).toMatchObject({ line: 3, column: 6, text: 'x: }' });
});

test('a valid definition is compiled', () => {
  const checked = checkDefinition(
    '{"id": "ship", "jobs": {"a": {"steps": [{"uses": "set"}]}}}',
    checkingKinds(),
  );
  expect([checked.faults, checked.workflow?.definition.id]).toEqual([[], 'ship']);
});
