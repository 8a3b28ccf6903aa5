import { execFile } from 'node:child_process';
import { symlink } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { comment, schemaType } from '../../src/cli/commands/openapi/client/schema-type.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { type Files, writeFiles } from '../daemons/marketplace/support.ts';
import { tempDir } from '../support/daemon.ts';
import { userEnvironment } from '../support/user-environment.ts';
import { PROGRAM, testPlatform } from './platform.ts';
import { runSvc } from './svc.ts';

const execute = promisify(execFile);

/** A TypeScript project of a user of the platform, with openapi-fetch in its `node_modules`. */
async function userProject(files: Files): Promise<string> {
  const folder = await writeFiles(await tempDir(), {
    'package.json': { type: 'module' },
    'tsconfig.json': {
      compilerOptions: {
        ...{ module: 'nodenext', target: 'es2024', lib: ['es2024', 'dom'], types: [] },
        ...{ strict: true, exactOptionalPropertyTypes: true, noUncheckedIndexedAccess: true },
        ...{ noEmit: true, allowImportingTsExtensions: true, erasableSyntaxOnly: true },
      },
      include: ['*.ts'],
    },
    ...files,
  });
  await symlink(join(packageRoot, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** What the compiler reports; empty if the project is correct. */
const compile = (folder: string): Promise<string> =>
  execute(join(packageRoot, 'node_modules/.bin/tsc'), ['-p', folder, '--checkers', '1']).then(
    ({ stdout }) => stdout,
    ({ stdout }) => stdout,
  );

const NOTES = {
  'package.json': { type: 'module' },
  'svc.plugin.json': {
    ...{ schema: 'svc.plugin/3', id: 'notes', version: '1.0.0', permissions: { platform: { state: true } } },
    rest: {
      basePath: '/v1/plugins/notes',
      routes: [
        { method: 'PUT', path: '/notes/:name', handler: 'h.js#put', description: 'Write a */ note' },
        { method: 'GET', path: '/notes', handler: 'h.js#list' },
      ],
    },
  },
  'h.js': `import { defineRoute, ok, z } from 'svc-platform/sdk';
const Note = z.object({ text: z.string(), stars: z.number().int().default(0), kind: z.enum(['memo', 'task']) });
export const put = defineRoute({
  method: 'PUT',
  input: Note,
  output: Note.extend({ name: z.string() }),
  execute: (ctx, note) => ok({ name: ctx.params.name, ...note }),
});
export const list = defineRoute({
  method: 'GET',
  input: z.object({ limit: z.coerce.number().int().optional() }),
  output: z.object({ notes: z.array(z.string()) }),
  execute: (_ctx, { limit }) => ok({ notes: ['milk', 'bread'].slice(0, limit) }),
});
`,
};

/** Correct calls, and incorrect ones that the compiler must refuse. */
const CALLS = `import { createSvcClient } from './svc-client.ts';

export const svc = createSvcClient({ token: 'abc', baseUrl: 'http://127.0.0.1:4000' });
const PLUGIN = '/api/v1/plugins/notes/notes/{name}';

export async function correct(): Promise<string> {
  const put = await svc.PUT(PLUGIN, { params: { path: { name: 'milk' } }, body: { text: 'two', kind: 'memo' } });
  if (put.error) return put.error.error.code;
  const stars: number = put.data.stars;
  const kind: 'memo' | 'task' = put.data.kind;
  const list = await svc.GET('/api/v1/plugins/notes/notes', { params: { query: { limit: 1 } } });
  const runs = await svc.GET('/api/v1/workflows/runs', { params: { query: { limit: 5 } } });
  const id: string | undefined = runs.data?.items[0]?.id;
  return [put.data.name, stars, kind, list.data?.notes.join(), id].join();
}

export async function incorrect(): Promise<void> {
  const params = { path: { name: 'milk' } };
  // @ts-expect-error no such route
  await svc.GET('/api/v1/plugins/notes/absent');
  // @ts-expect-error no such method of the route
  await svc.DELETE(PLUGIN, { params });
  // @ts-expect-error the parameter of the path is missing
  await svc.PUT(PLUGIN, { body: { text: 'two', kind: 'memo' } });
  // @ts-expect-error the body is missing
  await svc.PUT(PLUGIN, { params });
  // @ts-expect-error a value that the enum does not list
  await svc.PUT(PLUGIN, { params, body: { text: 'two', kind: 'letter' } });
  // @ts-expect-error a number is no text
  await svc.PUT(PLUGIN, { params, body: { text: 2, kind: 'memo' } });
  // @ts-expect-error an unknown parameter of the query
  await svc.GET('/api/v1/plugins/notes/notes', { params: { query: { limits: 1 } } });
  const { data } = await svc.GET('/api/v1/plugins/notes/notes');
  // @ts-expect-error the data is undefined after an error
  data.notes;
  // @ts-expect-error a field that the response does not have
  data?.note;
  const put = await svc.PUT(PLUGIN, { params, body: { text: 'two', kind: 'memo' } });
  // @ts-expect-error the data of a route of a plugin has the types of its output
  const stars: string | undefined = put.data?.stars;
  // @ts-expect-error a field that errors do not have
  put.error?.error.reason;
  // @ts-expect-error a parameter of the query with another type
  await svc.GET('/api/v1/plugins/notes/notes', { params: { query: { limit: 'one' } } });
  // @ts-expect-error a state that runs do not have
  await svc.GET('/api/v1/workflows/runs', { params: { query: { status: 'asleep' } } });
}
`;

const MAIN = `import { createSvcClient } from './svc-client.ts';

const token = process.argv[2] ?? '';
const svc = createSvcClient({ token: async () => token });
const params = { path: { name: 'milk & bread' } };
const put = await svc.PUT('/api/v1/plugins/notes/notes/{name}', { params, body: { text: 'two', kind: 'memo' } });
const list = await svc.GET('/api/v1/plugins/notes/notes', { params: { query: { limit: 1 } } });
const runs = await svc.GET('/api/v1/workflows/runs', { params: { query: { limit: 5 } } });
const refused = await createSvcClient({ token: 'wrong' }).GET('/api/v1/workflows/runs');
console.log(JSON.stringify([put.data, list.data, runs.data?.items, refused.error?.error.code]));
`;

test('the client of a running platform compiles, refuses incorrect calls, and calls routes of plugins', {
  timeout: 180_000,
}, async () => {
  const { folder, env, svc } = await testPlatform({}, {}, PROGRAM);
  await writeFiles(join(folder, 'plugins/notes'), NOTES);
  expect((await svc('up', '-d')).code).toBe(0);
  const printed = await runSvc(folder, ['openapi', '--client', 'ts'], env as Record<string, string>);
  expect([printed.code, printed.stderr]).toEqual([0, '']);
  const { token } = (await svc('tokens', 'mint', 'ci')).json.result;
  const ambient = 'declare const process: { argv: string[] };\n';
  const user = await userProject({
    ...{ 'svc-client.ts': printed.stdout, 'calls.ts': CALLS, 'main.ts': MAIN, 'node.d.ts': ambient },
  });
  expect(await compile(user)).toBe('');
  const { stdout } = await execute(process.execPath, ['main.ts', token], {
    cwd: user,
    env: userEnvironment(),
  });
  expect(JSON.parse(stdout)).toEqual([
    { name: 'milk & bread', text: 'two', stars: 0, kind: 'memo' },
    { notes: ['milk'] },
    [],
    'UNAUTHORIZED',
  ]);
});

/** Schemas with values that their types accept, and values that their types refuse. */
const TYPED: Array<[schema: unknown, accepted: unknown[], refused: unknown[]]> = [
  [{ type: 'string', pattern: '^a' }, ['a'], [1, null]],
  [{ type: ['integer', 'null'] }, [1, null], ['a']],
  [{ enum: ['a', 1, null] }, ['a', 1, null], ['b', 2]],
  [{ const: true }, [true], [false]],
  [{ type: 'array', items: { type: ['string', 'number'] } }, [['a', 1], []], [[null], 'a']],
  [{ type: 'array', prefixItems: [{ type: 'string' }], items: false }, [['a']], [[1], ['a', 'b']]],
  [
    { type: 'array', prefixItems: [{ type: 'string' }], items: { type: 'number' } },
    [['a', 1, 2]],
    [['a', 'b']],
  ],
  [
    { type: 'object', properties: { 'a-b': { type: 'string' }, c: {} }, required: ['a-b'] },
    [{ 'a-b': 'x' }, { 'a-b': 'x', c: [1] }],
    [{}, { 'a-b': 1 }],
  ],
  [{ type: 'object', additionalProperties: { type: 'number' } }, [{ a: 1 }, {}], [{ a: 'x' }]],
  [{ type: 'object', properties: {}, additionalProperties: false }, [{}], [{ a: 1 }]],
  [{ type: 'object', required: ['a'] }, [{ a: 1 }], [{}]],
  [
    {
      anyOf: [{ type: 'string' }, { type: 'object', properties: { n: { type: 'number' } }, required: ['n'] }],
    },
    ['a', { n: 1 }],
    [1, {}],
  ],
  [
    {
      allOf: [
        { type: 'object', properties: { a: { type: 'string' } }, required: ['a'] },
        { properties: { b: { type: 'number' } }, required: ['b'] },
      ],
    },
    [{ a: 'x', b: 1 }],
    [{ a: 'x' }, { b: 1 }],
  ],
  [{ type: 'array', items: { anyOf: [{ type: 'string' }, { type: 'null' }] } }, [['a', null]], [[1]]],
  [{ $ref: '#/components/schemas/Tree~1a' }, [{ leaves: [{ leaves: [] }] }], [{ leaves: [1] }]],
  [{ $ref: 'https://example.com/elsewhere' }, [1, 'a'], []],
  [{ not: { type: 'string' } }, [1, 'a'], []],
  [true, [1, 'a', null], []],
  [false, [], [1, null]],
];

test('types of JSON Schemas accept and refuse values as the schemas do', { timeout: 60_000 }, async () => {
  const lines = TYPED.flatMap(([schema, accepted, refused], index) => [
    `type T${index} = ${schemaType(schema)};`,
    ...accepted.map((value, n) => `export const a${index}_${n}: T${index} = ${JSON.stringify(value)};`),
    ...refused.flatMap((value, n) => [
      `// @ts-expect-error ${index}`,
      `export const r${index}_${n}: T${index} = ${JSON.stringify(value)};`,
    ]),
  ]);
  const tree = {
    type: 'object',
    properties: { leaves: { type: 'array', items: { $ref: '#/components/schemas/Tree~1a' } } },
  };
  const components = `interface components { schemas: { "Tree/a": ${schemaType(tree)} } }`;
  expect(await compile(await userProject({ 'types.ts': [components, ...lines].join('\n') }))).toBe('');
});

test('texts of plugins cannot leave their comment, string or key', { timeout: 60_000 }, async () => {
  const hostile = '*/ export const evil = 1; /* "`\\ \u2028\n// end';
  const schema = {
    type: 'object',
    properties: { [hostile]: { const: hostile, description: hostile }, __proto__x: { enum: [hostile] } },
  };
  const text = `export type Hostile = ${schemaType(schema)};\n${comment(hostile)}export type Other = 1;\n`;
  const check = `import * as all from './hostile.ts';\n// @ts-expect-error nothing was added\nall.evil;\n`;
  expect(await compile(await userProject({ 'hostile.ts': text, 'check.ts': check }))).toBe('');
  expect(schemaType(JSON.parse(`${'{"items":'.repeat(5000)}{}${'}'.repeat(5000)}`))).toMatch(
    /^unknown(\[\])+$/,
  );
});
