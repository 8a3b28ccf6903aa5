import { mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { type LoadConfigOptions, loadConfig } from '../../../src/kit/config/config.ts';
import {
  asJsonFile,
  asSchemaFile,
  configFileSchema,
  defaultConfig,
} from '../../../src/kit/config/config-file.ts';
import { PlatformError } from '../../../src/kit/errors/errors.ts';
import { packageRoot } from '../../../src/kit/files/paths.ts';
import { selfSigned } from '../../support/certificates.ts';
import { tempDir } from '../../support/daemon.ts';

type Load = Partial<LoadConfigOptions>;

/** A project folder with this config; text goes in as it is. */
async function project(config: unknown, files: Record<string, string> = {}): Promise<string> {
  const folder = await tempDir();
  const text = typeof config === 'string' ? config : JSON.stringify(config);
  await writeFile(join(folder, 'svc.config.json'), text);
  for (const [name, content] of Object.entries(files)) await writeFile(join(folder, name), content);
  return folder;
}

const load = (cwd: string, options: Load = {}) => loadConfig({ cwd, env: {}, ...options });

function failure(run: () => unknown): PlatformError {
  try {
    run();
  } catch (error) {
    if (error instanceof PlatformError) return error;
    throw error;
  }
  throw new Error('It was accepted.');
}

const problems = (cwd: string, options?: Load) => failure(() => load(cwd, options)).details.problems;

test('without a file the defaults hold and the working directory is the project', async () => {
  const folder = await tempDir();
  const loaded = load(folder);
  expect(loaded).toMatchObject({
    configFile: null,
    projectDir: folder,
    dataDir: join(folder, '.svc'),
    profile: 'development',
  });
  expect(loaded.config).toEqual({ ...defaultConfig(), auth: { ...defaultConfig().auth, mode: 'optional' } });
});

test('the file is found upwards, and its folder is the project', async () => {
  const folder = await project({ gateway: { port: 4100 } });
  const deep = join(folder, 'plugins', 'a');
  await mkdir(deep, { recursive: true });
  const loaded = load(deep);
  expect(loaded.projectDir).toBe(folder);
  expect(loaded.config.gateway.port).toBe(4100);
});

test('--config wins over SVC_CONFIG, and a named file must exist', async () => {
  const [one, two, elsewhere] = [
    await project({ rest: { port: 1 } }),
    await project({ rest: { port: 2 } }),
    await tempDir(),
  ];
  const env = { SVC_CONFIG: join(two, 'svc.config.json') };
  expect(load(elsewhere, { env }).config.rest.port).toBe(2);
  expect(load(elsewhere, { env, configFile: one }).config.rest.port).toBe(1);
  const error = failure(() => load(elsewhere, { configFile: 'absent.json' }));
  expect(error.code).toBe('CONFIG_NOT_FOUND');
  expect(error.message).toContain(join(elsewhere, 'absent.json'));
});

test.each([
  ['{\n  "rest": {\n    "port": 5050,\n  }\n}', 3, 17, 'comma'],
  ['{\n  "rest": { "port": 0x10 }\n}', 2, 22, '"," or "}"'],
  ['{\n  // ports\n  "rest": {}\n}', 2, 3, 'comments'],
  ["{ 'rest': {} }", 1, 3, 'double quotes'],
  ['{ "rest": {}', 1, 13, 'unexpected end'],
  ['{ "rest": } }', 1, 11, 'a value'],
  ['{ "a": "b\nc" }', 1, 8, 'not closed'],
  ['{} {}', 1, 4, 'after the end'],
  ['', 1, 1, 'unexpected end'],
])('text that is no JSON is named with its place: %j', async (text, line, column, words) => {
  const folder = await project(text);
  const error = failure(() => load(folder));
  expect(error.code).toBe('CONFIG_PARSE_ERROR');
  expect(error.details).toMatchObject({ line, column });
  expect(error.message).toContain(words);
});

test('faults of adapters are named, and what looks like a secret is refused without being repeated', async () => {
  const secret = 'sk-in-the-clear-0123456789';
  const folder = await project({
    adapters: {
      storage: { type: 's3', bucket: 'b', accesKeyId: secret },
      llm: { baseUrl: 'api.example.com', apiKey: secret, models: { small: 'm' } },
      embedings: {},
      vectorStore: { type: 'redis' },
    },
  });
  const found = problems(folder);
  expect(found).toEqual(
    expect.arrayContaining([
      {
        path: 'adapters.storage.accesKeyId',
        message: 'is not a known key; did you mean adapters.storage.accessKeyId?',
      },
      { path: 'adapters.llm.baseUrl', message: 'must be an http:// or https:// address' },
      { path: 'adapters.llm.apiKey', message: expect.stringContaining('must name an environment variable') },
      { path: 'adapters.llm.models', message: 'must name a model for the tier "default"' },
      { path: 'adapters.embedings', message: 'is not a known key; did you mean adapters.embeddings?' },
      { path: 'adapters.vectorStore.type', message: 'must be "sqlite"' },
    ]),
  );
  expect(JSON.stringify(found)).not.toContain(secret);
  const other = await project({ adapters: { storage: { type: 'ftp' } } });
  expect(problems(other)).toEqual([
    { path: 'adapters.storage.type', message: 'must be one of "files", "s3"' },
  ]);
});

test('every fault is reported at once, each with its path', async () => {
  const folder = await project({
    gateway: { prot: 4000, processes: 'two', publicUrl: 'localhost:4000' },
    timeoutMs: 5,
    execution: { default: 'docker', worker: { memoryMb: 1.5 } },
    plugins: './plugins/*',
    state: null,
  });
  expect(problems(folder)).toEqual(
    expect.arrayContaining([
      { path: 'gateway.prot', message: 'is not a known key; did you mean gateway.port?' },
      { path: 'gateway.processes', message: 'must be a number, not a string' },
      { path: 'gateway.publicUrl', message: 'must be an http:// or https:// address' },
      {
        path: 'timeoutMs',
        message:
          'is not a known key here; did you mean rest.timeoutMs or adapters.llm.timeoutMs or adapters.embeddings.timeoutMs?',
      },
      { path: 'execution.default', message: 'must be one of "worker", "container", "host"' },
      { path: 'execution.worker.memoryMb', message: 'must be a whole number, not a fraction' },
      { path: 'plugins', message: 'must be a list, not a string' },
      { path: 'state', message: 'must be an object, not null' },
    ]),
  );
  expect(problems(folder)).toHaveLength(8);
});

test('a static token is a secret: a fault beside it does not repeat it', async () => {
  const folder = await project({ gateway: { staticTokens: { 'a-very-secret-token': { hostId: 'ci' } } } });
  const error = failure(() => load(folder));
  expect(JSON.stringify([error.message, error.details])).not.toContain('very-secret');
  expect(error.message).toContain('namespaceId');
});

test('a profile is merged over the base: objects by key, lists and null as a whole', async () => {
  const folder = await project({
    gateway: { port: 4100, publicUrl: 'https://base.example', admins: ['a', 'b'] },
    profiles: { staging: { gateway: { publicUrl: null, admins: ['c'] } } },
  });
  const { config, profile } = load(folder, { profile: 'staging' });
  expect(profile).toBe('staging');
  expect(config.gateway).toMatchObject({ port: 4100, publicUrl: null, admins: ['c'] });
});

test('the profile comes from --profile, SVC_PROFILE, NODE_ENV, in this order', async () => {
  const folder = await project({ profiles: { a: {}, b: {}, c: {} } });
  const env = { SVC_PROFILE: 'b', NODE_ENV: 'c' };
  expect(load(folder, { env, profile: 'a' }).profile).toBe('a');
  expect(load(folder, { env }).profile).toBe('b');
  expect(load(folder, { env: { NODE_ENV: 'c' } }).profile).toBe('c');
  expect(load(folder).profile).toBe('development');
});

test('a profile missing in the file is CONFIG_NOT_RESOLVED, except development and production', async () => {
  const folder = await project({ profiles: { staging: {} } });
  expect(load(folder, { profile: 'production' }).profile).toBe('production');
  const error = failure(() => load(folder, { env: { NODE_ENV: 'test' } }));
  expect(error.code).toBe('CONFIG_NOT_RESOLVED');
  expect(error.details.known).toEqual(['development', 'production', 'staging']);
  const plain = await project({});
  expect(load(plain, { env: { NODE_ENV: 'test' } }).profile).toBe('test');
  expect(failure(() => load(plain, { profile: 'staging' })).code).toBe('CONFIG_NOT_RESOLVED');
});

test('a fault is placed in the profile that has it, whichever profile is in use', async () => {
  const folder = await project({
    rest: { port: 'x' },
    profiles: { staging: { gateway: { port: 70_000 } }, production: { gatway: {} } },
  });
  expect(problems(folder)).toEqual(
    expect.arrayContaining([
      { path: 'rest.port', message: 'must be a number, not a string' },
      { path: 'profiles.staging.gateway.port', message: 'must be at most 65535' },
      { path: 'profiles.production.gatway', message: 'is not a known key; did you mean gateway?' },
    ]),
  );
  expect(problems(folder)).toHaveLength(3);
});

test('a key __proto__ is a fault, not a prototype', async () => {
  const folder = await project('{"profiles": {"production": {"__proto__": {"rest": {"port": 1}}}}}');
  expect(problems(folder, { profile: 'production' })).toMatchObject([
    { path: 'profiles.production.__proto__' },
  ]);
});

test('auth.mode is required in production and optional elsewhere, unless set', async () => {
  const folder = await project({ profiles: { open: { auth: { mode: 'required' } } } });
  expect(load(folder, { profile: 'production' }).config.auth.mode).toBe('required');
  expect(load(folder).config.auth.mode).toBe('optional');
  expect(load(folder, { profile: 'open' }).config.auth.mode).toBe('required');
});

test('--port wins over the environment, which wins over .env, which wins over the file', async () => {
  const folder = await project(
    { gateway: { port: 1 }, rest: { port: 1 }, workflow: { port: 2 }, state: { port: 3 } },
    {
      '.env':
        'SVC_GATEWAY_PORT=10\nSVC_REST_PORT=11\nSVC_WORKFLOW_PORT=12\nGATEWAY_PUBLIC_URL=https://x.example\n',
    },
  );
  const env = { SVC_GATEWAY_PORT: '20', SVC_REST_PORT: '21' };
  const { config } = load(folder, { env, ports: { gateway: 30 } });
  expect([config.gateway.port, config.rest.port, config.workflow.port, config.state.port]).toEqual([
    30, 21, 12, 3,
  ]);
  expect(config.gateway.publicUrl).toBe('https://x.example');
});

test('faults of the environment are reported with those of the file', async () => {
  const folder = await project({ rest: { port: -1 } });
  const env = {
    SVC_GATEWAY_PORT: '4000x',
    GATEWAY_PUBLIC_URL: 'x.example',
    SVC_REST_PORT: 'tcp://10.0.0.1:5050',
  };
  expect(problems(folder, { env })).toEqual(
    expect.arrayContaining([
      { path: 'rest.port', message: 'must be at least 0' },
      { path: 'env.SVC_GATEWAY_PORT', message: 'must be a port from 0 to 65535' },
      {
        path: 'env.GATEWAY_PUBLIC_URL',
        message: 'must be an http:// or https:// address, without credentials, query or fragment',
      },
    ]),
  );
  expect(problems(folder, { env })).toHaveLength(3);
});

test.each([
  ['x.example', 'must be an http:// or https:// address'],
  ['ftp://x.example', 'must be an http:// or https:// address'],
  ...['https://me:pw@x.example', 'https://x.example?a=1', 'https://x.example/a#b'].map((url) => [
    url,
    'must have no credentials, query or fragment, because webhook paths are appended',
  ]),
])('%s is no public URL', async (publicUrl, message) => {
  const path = 'gateway.publicUrl';
  expect(problems(await project({ gateway: { publicUrl } }))).toEqual([{ path, message }]);
  const env = { GATEWAY_PUBLIC_URL: publicUrl! };
  expect(problems(await project({}), { env })).toMatchObject([{ path: 'env.GATEWAY_PUBLIC_URL' }]);
});

test('two daemons cannot have one port; any number of them may take a free one', async () => {
  const clash = await project({ rest: { port: 4000 } });
  expect(problems(clash)).toEqual([
    { path: 'gateway.port', message: 'is 4000, the same as rest.port; each service needs its own port' },
  ]);
  const free = await project({ rest: { port: 0 }, gateway: { port: 0 } });
  expect(load(free).config.rest.port).toBe(0);
});

test('certificates of mail servers that cannot be read are refused, in each profile', async () => {
  const pem = (content: string) => `-----BEGIN CERTIFICATE-----\n${content}\n-----END CERTIFICATE-----\n`;
  const { cert } = await selfSigned(1);
  const withCa = (ca: string) => ({
    alerts: {
      channels: { mail: { type: 'email', host: 'mx', from: 'a@b.example', to: ['a@b.example'], ca } },
    },
  });
  expect(load(await project(withCa(cert + cert))).config.alerts.channels).toHaveProperty('mail');
  const message = 'must be certificates in PEM form; certificate 2 of 2 cannot be read';
  expect(problems(await project(withCa(cert + pem('MIIC'))))).toEqual([
    { path: 'alerts.channels.mail.ca', message },
  ]);
  expect(problems(await project({ profiles: { production: withCa(cert + pem('MIIC')) } }))).toEqual([
    { path: 'profiles.production.alerts.channels.mail.ca', message },
  ]);
});

test('an unsupported store is refused, not replaced by another', async () => {
  const folder = await project({ store: { url: 'mysql://db/svc' }, cache: { url: 'memcached://cache' } });
  expect(problems(folder)).toEqual([
    {
      path: 'store.url',
      message:
        'must be "sqlite:<folder>", "postgres://<user>:<password>@<host>/<database>" or a variable with such a URL',
    },
    {
      path: 'cache.url',
      message:
        'must be "redis://<user>:<password>@<host>", "rediss://…" for TLS, a variable with such a URL, or null',
    },
  ]);
});

test('with PostgreSQL, store.dataDir names the data folder; with SQLite it is refused', async () => {
  const url = 'postgres://db/svc';
  const standard = await project({ store: { url } });
  expect(load(standard).dataDir).toBe(join(standard, '.svc'));
  const chosen = await project({ store: { url, dataDir: 'machine' } });
  expect(load(chosen).dataDir).toBe(join(chosen, 'machine'));
  const both = await project({ store: { dataDir: 'machine' } });
  expect(problems(both)).toEqual([
    { path: 'store.dataDir', message: 'must be null with SQLite; store.url names the data folder' },
  ]);
});

test('the data folder is SVC_HOME, else where the SQLite store is', async () => {
  const folder = await project({ store: { url: 'sqlite:data' } });
  expect(load(folder).dataDir).toBe(join(folder, 'data'));
  expect(load(folder, { env: { SVC_HOME: '/srv/svc' } }).dataDir).toBe('/srv/svc');
  const dotEnv = await project({}, { '.env': 'SVC_HOME=home\n' });
  expect(load(dotEnv).dataDir).toBe(join(dotEnv, 'home'));
});

test('the checked-in schema and defaults are current: npm run generate', async () => {
  const checkedIn = (path: string) => readFile(join(packageRoot, path), 'utf8');
  expect(await checkedIn('schemas/svc.schema.json')).toBe(asSchemaFile(configFileSchema()));
  expect(await checkedIn('config/default.json')).toBe(asJsonFile(defaultConfig()));
});
