import { execFileSync } from 'node:child_process';
import { mkdir, symlink, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { ManifestV3 } from '../../src/contracts/index.ts';
import {
  createRegistry,
  keepRunning,
  type LoadedPlugin,
  loadPlugins,
  type PluginRegistry,
} from '../../src/plugins/index.ts';
import { readManifest } from '../../src/plugins/registry/manifest-file.ts';
import { tempDir } from '../support/daemon.ts';
import { FIXTURES } from './support.ts';

const MANIFEST = { schema: 'svc.plugin/3', version: '1.0.0' };
const HANDLER = 'export const h = () => {};';

type Files = Record<string, string | object>;

async function project(files: Files): Promise<string> {
  const folder = await tempDir();
  for (const [file, content] of Object.entries(files)) {
    const path = join(folder, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, typeof content === 'string' ? content : JSON.stringify(content));
  }
  return folder;
}

/** Plugins by folder name: their manifests beside a file `h.js` with the handler `h`. */
async function load(manifests: Record<string, object>, patterns = ['./plugins/*']): Promise<PluginRegistry> {
  const files: Files = {};
  for (const [name, manifest] of Object.entries(manifests)) {
    files[`plugins/${name}/svc.plugin.json`] = { ...MANIFEST, id: name, ...manifest };
    files[`plugins/${name}/h.js`] = HANDLER;
  }
  return loadPlugins({ projectDir: await project(files), patterns });
}

const faultsOf = (registry: PluginRegistry, id: string) =>
  registry.broken.find((plugin) => plugin.id === id)?.faults.map(({ code, path }) => [code, path]);
const idsOf = (registry: PluginRegistry) => registry.plugins.map(({ id }) => id);

test('plugins are found by globs and by name; defaults are filled in', async () => {
  const registry = await loadPlugins({ projectDir: join(FIXTURES, '..'), patterns: ['plugins/*'] });
  expect(registry.broken).toEqual([]);
  expect(idsOf(registry)).toEqual([
    'attacker',
    'container-attacker',
    'good',
    'mcp-conformance',
    '@acme/schemas',
  ]);
  const good = registry.require('good');
  expect(good).toMatchObject({ id: 'good', version: '1.2.3', root: join(FIXTURES, 'good') });
  expect(registry.requireWebhook('good', 'push').webhook).toMatchObject({
    maxBodyBytes: 1024 * 1024,
    async: false,
  });
  const named = await loadPlugins({
    projectDir: FIXTURES,
    patterns: ['./good', join(FIXTURES, 'good'), 'good*'],
  });
  expect(idsOf(named)).toEqual(['good']);
});

test('unknown plugins and events come with a suggestion', async () => {
  const registry = await loadPlugins({ projectDir: FIXTURES, patterns: ['good'] });
  const thrownBy = (run: () => unknown) => {
    try {
      run();
    } catch (error) {
      return error as Error & { code: string };
    }
    throw new Error('nothing was thrown');
  };
  expect(thrownBy(() => registry.require('goood'))).toMatchObject({
    code: 'PLUGIN_NOT_FOUND',
    message: 'There is no plugin "goood"; did you mean "good"?',
  });
  expect(thrownBy(() => registry.require('toString')).code).toBe('PLUGIN_NOT_FOUND');
  expect(thrownBy(() => registry.requireWebhook('absent', 'push')).code).toBe('PLUGIN_NOT_FOUND');
  expect(thrownBy(() => registry.requireWebhook('good', 'pusch'))).toMatchObject({
    code: 'WEBHOOK_NOT_FOUND',
    message: 'The plugin good declares no webhook "pusch"; did you mean "push"?',
  });
  expect(registry.find('absent')).toBeUndefined();
});

test('a folder that is read as a plugin and is none is told so, without where it lies', async () => {
  const folder = await project({ 'h.js': HANDLER });
  const { faults } = await readManifest(folder);
  expect(faults).toEqual([
    {
      code: 'INVALID_MANIFEST',
      path: '',
      message: expect.stringMatching(/^The folder has no svc\.plugin\.json/),
    },
  ]);
  expect(JSON.stringify(faults)).not.toContain(folder);
});

test('what fits none of several forms is told with the key of each', async () => {
  const commands = [{ id: 'a', handler: 'h.js#h', input: { json: 'x' } }];
  const webhooks = [{ event: 'e', handler: 'h.js#h', auth: { type: 'digest' } }];
  const registry = await load({ odd: { commands, webhooks } });
  expect(registry.broken[0]?.faults.map(({ path, message }) => `${path} ${message}`)).toEqual([
    expect.stringMatching(/^commands\[0\]\.input fits no alternative: zod: .+, or \$ref: /),
    expect.stringMatching(
      /^webhooks\[0\]\.auth.* is none of the known types: secret, hmac, custom, signature, basic, jwt, provider$/,
    ),
  ]);
});

test('every fault of a manifest is reported with its path, and the other plugins load', async () => {
  const registry = await load({
    fine: {},
    faulty: {
      id: 'faulty',
      version: 'one',
      comands: [],
      permissions: { network: ['x'], enviroment: [] },
      commands: [{ id: 'a' }, { id: 'b', handler: 'h.js' }],
      rest: {
        basePath: '/plugins/x',
        routes: [{ method: 'HEAD', path: 'x/../y', handler: 'h.js#h', errors: [{ code: 'E', http: 200 }] }],
      },
    },
  });
  expect(idsOf(registry)).toEqual(['fine']);
  expect(faultsOf(registry, 'faulty')).toEqual(
    expect.arrayContaining([
      ['INVALID_MANIFEST', 'comands'],
      ['INVALID_MANIFEST', 'permissions.enviroment'],
      ['INVALID_MANIFEST', 'commands[0].handler'],
      ['INVALID_MANIFEST', 'commands[1].handler'],
      ['INVALID_MANIFEST', 'rest.basePath'],
      ['INVALID_MANIFEST', 'rest.routes[0].method'],
      ['INVALID_MANIFEST', 'rest.routes[0].path'],
      ['INVALID_MANIFEST', 'rest.routes[0].errors[0].http'],
    ]),
  );
  const unknown = registry.broken[0]?.faults.find(({ path }) => path === 'comands');
  expect(unknown?.message).toBe('"comands" is not a key of the manifest; did you mean "commands"?');
  expect(() => registry.require('faulty')).toThrow(/^The plugin faulty is broken and was left out: /);
});

test.each([
  ['version', { version: 'one' }],
  ['engines.svc', { engines: { svc: '>=99' } }],
  ['engines.svc', { engines: { svc: 'latest' } }],
  ['dependencies.other', { dependencies: { other: 'latest' } }],
  ['commands[1].id', { commands: [1, 2].map(() => ({ id: 'twice', handler: 'h.js#h' })) }],
  [
    'rest.routes[1].path',
    {
      rest: {
        basePath: '/v1/plugins/p',
        routes: ['/a/:x', '/a/:y'].map((path) => ({ method: 'GET', path, handler: 'h.js#h' })),
      },
    },
  ],
])('INVALID_MANIFEST at %s', async (path, manifest) => {
  expect(faultsOf(await load({ p: manifest }), 'p')).toEqual([['INVALID_MANIFEST', path]]);
});

test.each([
  ['webhooks[0].auth', undefined, true],
  ['webhooks[0].auth', null, true],
  ['webhooks[0].auth', 'secret', true],
  ['webhooks[0].auth.type', {}, true],
  ['webhooks[0].auth.type', { type: 'psychic' }, true],
  ['webhooks[0].auth.header', { type: 'secret' }, undefined],
])(
  'a webhook whose sender cannot be checked is flagged for the gateway: %s of %j',
  async (path, auth, flagged) => {
    const { broken } = await load({ hooks: { webhooks: [{ event: 'push', handler: 'h.js#h', auth }] } });
    expect(broken.map(({ id }) => id)).toEqual(['hooks']);
    expect(broken[0]?.faults).toEqual([expect.objectContaining({ code: 'INVALID_MANIFEST', path })]);
    expect(broken[0]?.faults[0]?.refusesGatewayStart).toBe(flagged);
  },
);

test.each<[name: string, content: string, message: RegExp]>([
  ['no JSON', '{"schema": ', /cannot be read as JSON/],
  ['not an object', '[]', /must be an object/i],
  ['another schema', JSON.stringify({ ...MANIFEST, schema: 'svc.plugin/2', id: 'x' }), /svc\.plugin\/3/],
  [
    'too large',
    JSON.stringify({ ...MANIFEST, id: 'x', $schema: 'x'.repeat(1024 * 1024) }),
    /bytes; the limit is 1048576/,
  ],
])('a manifest that is %s', async (_, content, message) => {
  const projectDir = await project({ 'plugins/x/svc.plugin.json': content });
  const { plugins, broken } = await loadPlugins({ projectDir, patterns: ['plugins/*'] });
  expect(plugins).toEqual([]);
  expect(broken).toEqual([
    expect.objectContaining({
      folder: join(projectDir, 'plugins/x'),
      faults: [
        expect.objectContaining({ code: 'INVALID_MANIFEST', message: expect.stringMatching(message) }),
      ],
    }),
  ]);
});

test('a pipe in place of a file is not waited for', async () => {
  const projectDir = await project({
    'named/svc.plugin.json': { ...MANIFEST, id: 'named' },
    'piped/h.js': HANDLER,
  });
  for (const pipe of ['named/package.json', 'piped/svc.plugin.json'])
    execFileSync('mkfifo', [join(projectDir, pipe)]);
  const { plugins, broken } = await loadPlugins({ projectDir, patterns: ['./named', './piped'] });
  expect(plugins.map(({ id }) => id)).toEqual(['named']);
  expect(broken[0]?.faults[0]?.message).toBe('svc.plugin.json is not a file.');
});

test('a manifest written with a byte-order mark is read', async () => {
  const text = `\uFEFF${JSON.stringify({ ...MANIFEST, id: 'x' })}`;
  const registry = await loadPlugins({
    projectDir: await project({ 'x/svc.plugin.json': text }),
    patterns: ['x'],
  });
  expect(idsOf(registry)).toEqual(['x']);
});

test('handler and schema files must exist inside the plugin', async () => {
  const projectDir = await project({
    'outside.js': HANDLER,
    'p/h.js': HANDLER,
    'p/folder/x.js': HANDLER,
    'p/svc.plugin.json': {
      ...MANIFEST,
      id: 'p',
      commands: [
        { id: 'a', handler: 'h.js#h' },
        { id: 'b', handler: 'absent.js#h' },
        { id: 'c', handler: '../outside.js#h' },
        { id: 'd', handler: '/etc/passwd#h' },
        { id: 'e', handler: 'link.js#h' },
        { id: 'f', handler: 'folder#h' },
        { id: 'g', handler: 'h.js#h', input: { zod: './absent.js#S' }, output: { $ref: 'absent.json#/x' } },
        { id: 'i', handler: 'h.js#h', input: { zod: 'a-package#S' }, output: { $ref: '#/x' } },
      ],
      webhooks: [
        {
          event: 'e',
          handler: 'h.js#h',
          onProvision: 'absent.js#h',
          auth: { type: 'custom', validator: 'absent.js#h' },
        },
      ],
      jobs: [{ id: 'j', handler: 'absent.js#h' }],
      lifecycle: { onEnable: 'absent.js#h' },
    },
  });
  await symlink(join(projectDir, 'outside.js'), join(projectDir, 'p/link.js'));
  const registry = await loadPlugins({ projectDir, patterns: ['p'] });
  expect(faultsOf(registry, 'p')?.sort()).toEqual(
    [
      'commands[1].handler',
      'commands[2].handler',
      'commands[3].handler',
      'commands[4].handler',
      'commands[5].handler',
      'commands[6].input',
      'commands[6].output',
      'jobs[0].handler',
      'lifecycle.onEnable',
      'webhooks[0].auth.validator',
      'webhooks[0].onProvision',
    ].map((path) => ['INVALID_HANDLER', path]),
  );
});

test('when two plugins clash, the first stays', async () => {
  const commands = [{ id: 'same', handler: 'h.js#h' }];
  const registry = await load({
    a: { commands },
    b: { commands },
    d: { id: 'a' },
    e: {},
  });
  expect(idsOf(registry)).toEqual(['a', 'e']);
  expect(
    registry.broken.map(({ id, faults }) => [id, ...faults.map(({ code, path }) => `${code} ${path}`)]),
  ).toEqual([
    ['b', 'PLUGIN_CONFLICT commands[0].id'],
    ['a', 'PLUGIN_CONFLICT id'],
  ]);
  expect(registry.require('a').root).toMatch(/plugins\/a$/);
});

test('dependencies come first; missing, broken, outdated and circular ones leave their plugins out', async () => {
  const needs = (...pairs: Array<[string, string]>) => ({ dependencies: Object.fromEntries(pairs) });
  const registry = await load({
    app: needs(['base', '^1.0.0']),
    base: { version: '1.4.0' },
    picky: needs(['base', '^2.0.0']),
    lonely: needs(['absent', '*']),
    above: needs(['lonely', '*']),
    beside: needs(['faulty', '*']),
    faulty: { version: 'x' },
    round: needs(['trip', '*']),
    trip: needs(['round', '*']),
    self: needs(['self', '*']),
    onlooker: needs(['round', '*']),
  });
  expect(idsOf(registry)).toEqual(['base', 'app']);
  const messages = Object.fromEntries(
    registry.broken.map(({ id, faults }) => [
      id,
      faults.map(({ code, message }) => `${code} ${message}`).join(),
    ]),
  );
  expect(messages).toMatchObject({
    picky: 'MISSING_DEPENDENCY The plugin base has version 1.4.0, but ^2.0.0 is required.',
    lonely: 'MISSING_DEPENDENCY The plugin absent (*) is required, but it is not installed.',
    above: 'MISSING_DEPENDENCY The plugin lonely is required, but it is broken.',
    beside: 'MISSING_DEPENDENCY The plugin faulty is required, but it is broken.',
    round: 'CIRCULAR_DEPENDENCY The dependencies form a cycle: round -> trip -> round.',
    trip: 'CIRCULAR_DEPENDENCY The dependencies form a cycle: trip -> round -> trip.',
    self: 'CIRCULAR_DEPENDENCY The dependencies form a cycle: self -> self.',
    onlooker: 'MISSING_DEPENDENCY The plugin round is required, but it is broken.',
  });
});

test('folders without a plugin are skipped by a wildcard, and reported when named', async () => {
  const projectDir = await project({
    'plugins/readme/README.md': 'nothing',
    'plugins/notes.txt': 'nothing',
    'plugins/module/package.json': { name: 'm', svc: './manifest.js' },
    'plugins/p/svc.plugin.json': { ...MANIFEST, id: 'p' },
  });
  const registry = await loadPlugins({
    projectDir,
    patterns: ['./plugins/*', 'plugins/readme', 'absent', 'none/*'],
  });
  expect(idsOf(registry)).toEqual(['p']);
  expect(
    registry.broken.map(({ folder, faults }) => [folder.slice(projectDir.length), faults[0]?.message]),
  ).toEqual([
    ['/plugins/readme', expect.stringContaining('The folder has no svc.plugin.json')],
    ['/absent', expect.stringContaining('does not exist')],
    ['/plugins/module', expect.stringContaining('cannot run without a sandbox')],
  ]);
});

test('a linked folder counts once, by its real path', async () => {
  const projectDir = await project({ 'elsewhere/p/svc.plugin.json': { ...MANIFEST, id: 'p' } });
  await mkdir(join(projectDir, 'plugins'));
  await symlink(join(projectDir, 'elsewhere/p'), join(projectDir, 'plugins/link'));
  const registry = await loadPlugins({ projectDir, patterns: ['plugins/*', 'elsewhere/*'] });
  expect(registry.broken).toEqual([]);
  expect(registry.plugins.map(({ root }) => root)).toEqual([join(projectDir, 'elsewhere/p')]);
});

test('loading runs no code of a plugin', async () => {
  const projectDir = await project({
    'p/svc.plugin.json': { ...MANIFEST, id: 'p', commands: [{ id: 'c', handler: 'h.js#h' }] },
    'p/h.js': 'process.svcPluginRan = true; throw new Error("executed");',
  });
  expect(idsOf(await loadPlugins({ projectDir, patterns: ['p'] }))).toEqual(['p']);
  expect(process).not.toHaveProperty('svcPluginRan');
});

test('a handler that its module does not export is reported when the plugin is loaded', async () => {
  const files = (name: string, code: string, file = 'h.js') => ({
    [`plugins/${name}/svc.plugin.json`]: {
      ...MANIFEST,
      id: name,
      commands: [{ id: name, handler: `${file}#greet` }],
    },
    [`plugins/${name}/${file}`]: code,
  });
  const registry = await loadPlugins({
    projectDir: await project({
      ...files('misspelt', 'export const great = () => 1;'),
      ...files('declared', 'export async function greet() {}'),
      ...files('renamed', 'const hello = 1; export { hello as greet };'),
      ...files('unpacked', 'export const { a, b: greet } = {};'),
      // Its text does not tell: what they export is known when they run.
      ...files('starred', "export * from './other.js';"),
      ...files('defaulted', 'export default { greet() {} };'),
      ...files('commonjs', 'Object.assign(exports, { greet() {} });'),
      ...files('typed', 'export const a: Map<string, number> = new Map(), greet = () => a;', 'h.ts'),
      ...files('torn', 'export const greet = `'),
    }),
    patterns: ['plugins/*'],
  });
  expect(registry.broken.map(({ id, faults }) => [id, faults])).toEqual([
    [
      'misspelt',
      [
        {
          code: 'INVALID_HANDLER',
          path: 'commands[0].handler',
          message: '"h.js#greet": h.js has no export "greet"; did you mean "great"?',
        },
      ],
    ],
  ]);
});

test('a bundle is read once, however many handlers of it a manifest names', async () => {
  const bundle = `${HANDLER}\n//${'x'.repeat(2_000_000)}`;
  const cpuMsOf = async (handlers: number): Promise<number> => {
    const commands = Array.from({ length: handlers }, (_, n) => ({ id: `c${n}`, handler: 'h.js#h' }));
    const manifest = { ...MANIFEST, id: 'bundled', commands };
    const projectDir = await project({ 'p/svc.plugin.json': manifest, 'p/h.js': bundle });
    const before = process.cpuUsage();
    expect(idsOf(await loadPlugins({ projectDir, patterns: ['./p'] }))).toEqual(['bundled']);
    return process.cpuUsage(before).user / 1000;
  };
  await cpuMsOf(1);
  const one = await cpuMsOf(1);
  expect(await cpuMsOf(400)).toBeLessThan(10 * one + 150);
});

describe('a manifest with an endless number of faults', () => {
  const many = <Item>(count: number, make: (n: number) => Item) =>
    Array.from({ length: count }, (_, n) => make(n));

  test('is told by its first hundred, with how many there are beside', async () => {
    const commands = many(5000, () => 1);
    const [broken] = (await load({ faulty: { commands } })).broken;
    expect(broken?.faults).toHaveLength(101);
    expect(broken?.faults[0]).toMatchObject({ path: 'commands[0]' });
    expect(broken?.faults[100]).toMatchObject({ path: '', message: 'and 4900 more faults' });
  });

  test('still keeps the gateway from starting by a webhook that comes after all the others', async () => {
    const webhooks = [{ event: 'open', handler: 'h.js#h' }];
    const [broken] = (await load({ faulty: { commands: many(5000, () => 1), webhooks } })).broken;
    expect(broken?.faults[0]).toMatchObject({ path: 'webhooks[0].auth', refusesGatewayStart: true });
  });

  test('costs no comparison of each with everything that could be meant', async () => {
    const commands = many(2000, (n) => ({ id: `c${n}`, handler: `h.js#nope${n}` }));
    const projectDir = await project({
      'p/svc.plugin.json': { ...MANIFEST, id: 'faulty', commands, ...{ ['k'.repeat(500_000)]: 1 } },
      'q/svc.plugin.json': { ...MANIFEST, id: 'lost', commands },
      'q/h.js': many(20_000, (n) => `export const e${n} = 1;`).join('\n'),
    });
    const before = process.cpuUsage();
    const { broken } = await loadPlugins({ projectDir, patterns: ['./p', './q'] });
    expect(process.cpuUsage(before).user / 1000).toBeLessThan(5000);
    expect(broken.map(({ id, faults }) => [id, faults.length])).toEqual([
      ['faulty', 1],
      ['lost', 100],
    ]);
    expect(broken[0]?.faults[0]?.message).toBe(`"${'k'.repeat(100)}…" is not a key of the manifest`);
  });
});

describe('reading plugins anew while some run', () => {
  const plugin = (id: string, more: object = {}): LoadedPlugin => ({
    id,
    version: '1.0.0',
    root: `/plugins/${id}`,
    manifest: ManifestV3.parse({ ...MANIFEST, id, ...more }),
  });
  const command = (id: string) => ({ commands: [{ id, handler: 'h.js#h' }] });
  const fault = (code: 'INVALID_MANIFEST' | 'INTEGRITY_MISMATCH') => ({ code, path: '', message: 'broken' });

  test('one that broke runs on, also where its manifest tells no id; others are swapped', () => {
    const running = createRegistry([plugin('a'), plugin('b'), plugin('c')], []);
    const newer = plugin('c', { version: '2.0.0' });
    const next = createRegistry(
      [newer],
      [
        { folder: '/plugins/a', faults: [fault('INVALID_MANIFEST')] },
        { folder: '/plugins/b', id: 'b', faults: [fault('INTEGRITY_MISMATCH')] },
        { folder: '/plugins/new', id: 'new', faults: [fault('INVALID_MANIFEST')] },
      ],
    );
    const { registry, kept } = keepRunning(running, next, () => true);
    expect(registry.plugins).toEqual([running.find('a'), newer]);
    expect(kept.map(({ id }) => id)).toEqual(['a']);
    expect(registry.broken.map(({ id }) => id)).toEqual(['a', 'b', 'new']);
  });

  test('what came since has to fit beside what runs on', () => {
    const running = createRegistry([plugin('a', command('greet'))], []);
    const broken = { folder: '/plugins/a', id: 'a', faults: [fault('INVALID_MANIFEST')] };
    const next = createRegistry([plugin('b', command('greet'))], [broken]);
    const { registry } = keepRunning(running, next, () => true);
    expect(idsOf(registry)).toEqual(['a']);
    expect(faultsOf(registry, 'b')).toEqual([['PLUGIN_CONFLICT', 'commands[0].id']]);
  });

  test('those that need one that broke run on with it', () => {
    const needy = plugin('b', { dependencies: { a: '^1.0.0' } });
    const running = createRegistry([plugin('a'), needy], []);
    const next = createRegistry(
      [],
      [
        { folder: '/plugins/a', id: 'a', faults: [fault('INVALID_MANIFEST')] },
        { folder: '/plugins/b', id: 'b', faults: [fault('INVALID_MANIFEST')] },
      ],
    );
    expect(idsOf(keepRunning(running, next, () => true).registry)).toEqual(['a', 'b']);
  });

  test('one whose code nothing holds is not said to run on', () => {
    const running = createRegistry([plugin('a'), plugin('b')], []);
    const faults = [fault('INVALID_MANIFEST')];
    const next = createRegistry(
      [],
      ['a', 'b'].map((id) => ({ folder: `/plugins/${id}`, id, faults })),
    );
    const { registry, kept } = keepRunning(running, next, ({ id }) => id === 'b');
    expect([idsOf(registry), kept.map(({ id }) => id)]).toEqual([['b'], ['b']]);
  });
});

test('a manifest that is a symbolic link is not read', async () => {
  const folder = await tempDir();
  const secret = join(await tempDir(), 'secret.json');
  await writeFile(secret, '{"id": "the-secret"}');
  await symlink(secret, join(folder, 'svc.plugin.json'));
  expect(await readManifest(folder)).toEqual({
    faults: [
      {
        code: 'INVALID_MANIFEST',
        path: '',
        message: 'svc.plugin.json is a symbolic link; replace it by the file itself.',
      },
    ],
  });
});
