import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { describe, expect, test } from 'vitest';
import { configFaults } from '../../src/daemons/plugin-runtime/settings.ts';
import { asSchemaFile } from '../../src/kit/config/config-file.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { systemRandom } from '../../src/kit/security/random.ts';
import { manualClock } from '../../src/kit/time/clock.ts';
import { createDescriber, loadPlugins, validatePlugin } from '../../src/plugins/index.ts';
import { manifestSchema } from '../../src/plugins/manifest-schema.ts';
import { tempDir } from '../support/daemon.ts';
import { eventually, FIXTURES, SANDBOXES, type Sandbox, startBackend } from './support.ts';

async function describer(sandbox: Sandbox = 'permission') {
  return createDescriber((await startBackend({ sandbox })).backend, systemRandom());
}

async function folderOf(files: Record<string, string | object>): Promise<string> {
  const folder = await tempDir();
  for (const [file, content] of Object.entries(files)) {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

const MANIFEST = { schema: 'svc.plugin/3', id: 'demo', version: '1.0.0' };
const PACKAGE = { name: 'demo', type: 'module' };

test('editors see the faults of workflows and schedules, in steps and in code', () => {
  const check = new Ajv2020({ strict: false, allErrors: true, validateFormats: false }).compile(
    manifestSchema(),
  );
  const faulty = (workflows: object[], schedules: object[] = []) => {
    check({ ...MANIFEST, workflows, schedules });
    return new Set(check.errors?.map(({ instancePath }) => instancePath));
  };
  const jobs = { main: { steps: [{ uses: 'set' }] } };
  expect(
    faulty([
      { id: 'steps', jobs },
      { id: 'code', handler: 'w.js#run' },
    ]),
  ).toEqual(new Set());
  expect(faulty([{ id: 'nightly', jobs: { main: { steps: [{ use: 'set' }] } } }])).toContain(
    '/workflows/0/jobs/main/steps/0',
  );
  expect(faulty([], [{ workflow: 'nightly', cron: 7 }])).toContain('/schedules/0/cron');
});

test('a workflow in code is checked like any handler', async () => {
  const folder = await folderOf({
    'w.js': "import { defineJob } from 'svc-platform/sdk'; export const job = defineJob(() => 1);",
    'svc.plugin.json': {
      ...MANIFEST,
      workflows: [
        { id: 'code', handler: 'w.js#job', step: 1 },
        { id: 'gone', handler: 'absent.js#run' },
      ],
    },
  });
  const { faults } = await validatePlugin(folder, await describer());
  expect(faults.map(({ code, path }) => [code, path])).toEqual([
    ['INVALID_MANIFEST', 'workflows[0].step'],
    ['INVALID_HANDLER', 'workflows[1].handler'],
    ['INVALID_HANDLER', 'workflows[0].handler'],
  ]);
});

test('schemas/plugin.schema.json is that of the manifest contract', async () => {
  expect(await readFile(join(packageRoot, 'schemas/plugin.schema.json'), 'utf8')).toBe(
    asSchemaFile(manifestSchema()),
  );
});

describe.each(SANDBOXES)('a manifest module under %s', (sandbox) => {
  test('is evaluated in the sandbox, where it can read nothing of the machine', async () => {
    const folder = await folderOf({
      'plugins/demo/package.json': { ...PACKAGE, svc: './plugin.js' },
      'plugins/demo/plugin.js': `
        import { defineManifest } from 'svc-platform/sdk';
        import { readFileSync } from 'node:fs';
        let secret = 'refused';
        try { secret = readFileSync('/etc/passwd', 'utf8'); } catch {}
        export default defineManifest({ ...${JSON.stringify(MANIFEST)}, display: { description: secret } });`,
    });
    const { manifest: evaluate } = await describer(sandbox);
    const registry = await loadPlugins({ projectDir: folder, patterns: ['plugins/*'], evaluate });
    expect(registry.broken).toEqual([]);
    expect(registry.require('demo').manifest.display).toEqual({ description: 'refused' });
  });
});

test.each([
  ['throws', 'throw new Error("no luck");', /manifest\.js.*no luck/],
  ['exports nothing', 'export const a = 1;', /default export/],
  ['never ends its first line', 'process.exit(3);', /exited with code 3/],
])('a manifest module that %s breaks its plugin alone', async (_name, code, message) => {
  const folder = await folderOf({
    'bad/package.json': { ...PACKAGE, svc: 'manifest.js' },
    'bad/manifest.js': code,
    'fine/svc.plugin.json': { ...MANIFEST, id: 'fine' },
  });
  const { manifest: evaluate } = await describer();
  const registry = await loadPlugins({ projectDir: folder, patterns: ['./bad', './fine'], evaluate });
  expect(registry.plugins.map(({ id }) => id)).toEqual(['fine']);
  expect(registry.broken[0]?.faults).toEqual([
    { code: 'INVALID_MANIFEST', path: '', message: expect.stringMatching(message) },
  ]);
});

test('what never ends while plugins are read holds up the others for half of what a service has to be ready', async () => {
  const clock = manualClock();
  const { backend } = await startBackend({ clock });
  const asked = createDescriber(backend, systemRandom());
  const folder = await folderOf({
    'module/package.json': { ...PACKAGE, svc: 'manifest.js' },
    'module/manifest.js': 'for (;;);',
    'settings/svc.plugin.json': {
      ...{ ...MANIFEST, id: 'settings' },
      configSchema: { properties: { text: { pattern: '^(a+)+$' } } },
    },
    'fine/svc.plugin.json': { ...MANIFEST, id: 'fine' },
  });
  const settings = { settings: { text: `${'a'.repeat(50)}!` } };
  const loading = loadPlugins({
    projectDir: folder,
    patterns: ['./module', './settings', './fine'],
    evaluate: asked.manifest,
    checkConfig: (plugin) => configFaults(plugin, settings, asked),
  });
  const startedAt = clock.now();
  for (const [what, ms] of [
    ['manifest', 10_000],
    ['settings', 5000],
  ] as const) {
    await eventually(() =>
      backend.stats().some(({ pluginId, running }) => pluginId === what && running === 1),
    );
    clock.advance(ms);
  }
  const { plugins, broken } = await loading;
  expect([plugins.map(({ id }) => id), broken.map(({ faults }) => faults[0]?.code)]).toEqual([
    ['fine'],
    ['INVALID_MANIFEST', 'VALIDATION_ERROR'],
  ]);
  expect(clock.now() - startedAt).toBe(15_000);
});

test('a plugin whose defaults never end is broken, and the others load', async () => {
  const $defs: Record<string, object> = { d30: {} };
  for (let n = 0; n < 30; n++) $defs[`d${n}`] = { allOf: Array(2).fill({ $ref: `#/$defs/d${n + 1}` }) };
  const folder = await folderOf({
    'endless/svc.plugin.json': {
      ...{ ...MANIFEST, id: 'endless' },
      configSchema: { $ref: '#/$defs/d0', $defs },
    },
    'fine/svc.plugin.json': { ...MANIFEST, id: 'fine' },
  });
  const asked = await describer();
  const { plugins, broken } = await loadPlugins({
    projectDir: folder,
    patterns: ['./endless', './fine'],
    evaluate: asked.manifest,
    checkConfig: (plugin) => configFaults(plugin, {}, asked),
  });
  expect(plugins.map(({ id }) => id)).toEqual(['fine']);
  expect(broken.map(({ faults }) => faults[0])).toEqual([
    {
      code: 'VALIDATION_ERROR',
      path: 'configSchema',
      message: expect.stringContaining('takes more than 100000 steps'),
    },
  ]);
});

test('a manifest module that leads out of its folder is refused', async () => {
  const folder = await folderOf({
    'outside.js': 'export default {};',
    'demo/package.json': { ...PACKAGE, svc: '../outside.js' },
  });
  const { manifest: evaluate } = await describer();
  const { broken } = await loadPlugins({ projectDir: folder, patterns: ['./demo'], evaluate });
  expect(broken[0]?.faults[0]?.message).toMatch(/outside of the plugin/);
});

test('zod schemas print themselves; what cannot says why', async () => {
  const { schemas } = await describer();
  const plugin = { id: '@acme/schemas', version: '1.0.0', root: join(FIXTURES, 'schemas') };
  expect(
    await schemas(plugin, [
      { zod: './schemas.js#Order', io: 'input' },
      { zod: './schemas.js#Nothing', io: 'input' },
    ]),
  ).toEqual([
    {
      schema: expect.objectContaining({
        type: 'object',
        properties: expect.objectContaining({ sku: { type: 'string', minLength: 2 } }),
        required: ['sku'],
      }),
    },
    { fault: expect.stringContaining('no such export') },
  ]);
});

test('validation reports every fault of the code with its place', async () => {
  const folder = await folderOf({
    'package.json': PACKAGE,
    'h.js': `
      import { defineRoute } from 'svc-platform/sdk';
      export const route = defineRoute(() => 1);
      export const plain = () => 1;
      export const nothing = 7;`,
    'svc.plugin.json': {
      ...MANIFEST,
      commands: [
        { id: 'a', handler: 'h.js#route' },
        { id: 'b', handler: 'h.js#plain', input: { zod: './h.js#plain' } },
        { id: 'c', handler: 'h.js#nothing' },
        { id: 'd', handler: 'h.js#absent' },
      ],
    },
  });
  const { plugin, faults } = await validatePlugin(folder, await describer());
  expect(plugin?.id).toBe('demo');
  expect(faults).toEqual([
    { code: 'INVALID_HANDLER', path: 'commands[3].handler', message: expect.stringContaining('"absent"') },
    {
      code: 'INVALID_HANDLER',
      path: 'commands[0].handler',
      message: 'is a route handler, but a command handler is needed',
    },
    { code: 'INVALID_HANDLER', path: 'commands[2].handler', message: expect.stringContaining('"nothing"') },
    {
      code: 'INVALID_HANDLER',
      path: 'commands[1].input',
      message: expect.stringContaining('is not a zod schema'),
    },
  ]);
  const flow = await folderOf({
    'svc.plugin.json': {
      ...MANIFEST,
      workflows: [{ id: 'nightly', jobs: { main: { steps: [{ use: 'set' }] } } }],
      schedules: [{ cron: '0 3 * * *' }],
    },
  });
  expect(
    (await validatePlugin(flow, await describer())).faults.map(({ code, path }) => [code, path]),
  ).toEqual([
    ['INVALID_MANIFEST', 'workflows[0].jobs.main.steps[0].use'],
    ['INVALID_MANIFEST', 'workflows[0].jobs.main.steps[0].uses'],
    ['INVALID_MANIFEST', 'schedules[0].workflow'],
  ]);
  expect((await validatePlugin(join(FIXTURES, 'good'), await describer())).faults).toEqual([]);
});

test('validation compiles the JSON Schemas that a manifest refers to, with what they refer to in turn', async () => {
  const $defs = {
    Good: { type: 'object', properties: { inner: { $ref: '#/$defs/Good' } } },
    Circle: { $ref: '#/$defs/Back' },
    Back: { $ref: '#/$defs/Circle' },
    Pattern: { type: 'string', pattern: '(' },
    Remote: { $ref: 'https://example.com/schema.json' },
    Outside: { $ref: '../other.json' },
  };
  const names = [...Object.keys($defs), 'Missing'];
  const command = (name: string) => ({
    id: name,
    handler: 'h.js#h',
    input: { $ref: `s.json#/$defs/${name}` },
  });
  const folder = await folderOf({
    'package.json': PACKAGE,
    'h.js': 'export const h = () => 1;',
    's.json': { $defs },
    'svc.plugin.json': { ...MANIFEST, commands: names.map(command) },
  });
  const { faults } = await validatePlugin(folder, await describer());
  expect(faults.map(({ path }) => path)).toEqual(
    names.slice(1).map((_, index) => `commands[${index + 1}].input`),
  );
  expect(faults.map(({ message }) => message)).toEqual([
    expect.stringContaining('call stack'),
    expect.stringContaining('call stack'),
    expect.stringMatching(/"s\.json#\/\$defs\/Pattern" cannot be used: .*regular expression/i),
    expect.stringContaining(
      'refers to https://example.com/schema.json; only files of the plugin may be referenced',
    ),
    expect.stringMatching(/outside of the plugin/),
    'The schema "s.json#/$defs/Missing" cannot be used: AnySchema s.json is loaded but s.json#/$defs/Missing cannot be resolved',
  ]);
});
