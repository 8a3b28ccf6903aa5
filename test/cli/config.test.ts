import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { tempDir } from '../support/daemon.ts';
import { runSvc } from './svc.ts';

const STATIC_TOKEN = 'a-static-token-that-nobody-may-read';

async function project(config: unknown): Promise<string> {
  const folder = await tempDir();
  await writeFile(join(folder, 'svc.config.json'), JSON.stringify(config));
  return folder;
}

test('show merges file, profile and environment, and names the source of each value', async () => {
  const folder = await project({
    gateway: { port: 4100 },
    rest: { port: 5100 },
    profiles: { staging: { rest: { port: 5200 } } },
  });
  const { json } = await runSvc(folder, ['config', 'show', '--origin', '--profile', 'staging', '--json'], {
    SVC_STATE_PORT: '7000',
  });
  expect(json.result).toMatchObject({ profile: 'staging', dataDir: join(folder, '.svc') });
  const ports = (name: string) => [json.result.config[name].port, json.result.origins[`${name}.port`]];
  expect(['gateway', 'rest', 'state', 'workflow'].map(ports)).toEqual([
    [4100, 'file'],
    [5200, 'profile staging'],
    [7000, 'environment'],
    [7778, 'default'],
  ]);
});

test('show and get never print a secret, in no format', async () => {
  const folder = await project({
    gateway: {
      staticTokens: {
        [STATIC_TOKEN]: { hostId: 'ci', namespaceId: 'default' },
        [`${STATIC_TOKEN}-2`]: { hostId: 'ci2', namespaceId: 'default' },
      },
      upstreams: { rest: { url: 'http://svc:p4ssw0rd@127.0.0.1/svc?key=hidden-too' } },
    },
    pluginConfig: { github: { apiToken: 'ghp_notforyou', owner: 'octo' } },
  });
  const secrets = [STATIC_TOKEN, 'p4ssw0rd', 'hidden-too', 'ghp_notforyou'];
  const calls = [
    ['config', 'show'],
    ['config', 'show', '--origin'],
    ['config', 'get', 'gateway.staticTokens'],
    ['config', 'get', 'gateway.upstreams.rest.url'],
    ['config', 'get', 'pluginConfig'],
  ];
  for (const call of calls.flatMap((words) => [words, [...words, '--json']])) {
    const { code, stdout, stderr } = await runSvc(folder, call);
    expect([call, code]).toEqual([call, 0]);
    for (const secret of secrets) expect(stdout + stderr).not.toContain(secret);
  }
  const { json } = await runSvc(folder, ['config', 'show', '--json']);
  expect(Object.values(json.result.config.gateway.staticTokens)).toHaveLength(2);
  expect(json.result.config.pluginConfig.github.owner).toBe('octo');
});

test('get prints a bare value, and suggests a path for a wrong one', async () => {
  const folder = await project({
    plugins: ['./a', './b'],
    execution: { plugins: { '@acme/x': { backend: 'host' } } },
  });
  const get = async (path: string) => {
    const { code, stdout, stderr } = await runSvc(folder, ['config', 'get', path]);
    return code === 0 ? stdout.trim() : `${code} ${stderr.split('\n')[0]}`;
  };
  expect(await get('gateway.port')).toBe('4000');
  expect(await get('store.url')).toBe('sqlite:.svc');
  expect(await get('plugins[1]')).toBe('./b');
  expect(await get('execution.plugins["@acme/x"].backend')).toBe('host');
  expect(await get('gatway.port')).toBe('2 error The configuration has no "gatway". Did you mean gateway?');
  expect(await get('gateway.cors.orgins')).toContain(
    'gateway.cors has no "orgins". Did you mean gateway.cors.origins?',
  );
  expect(await get('gateway..port')).toContain('2 error "gateway..port" is not a valid path.');
});

test('validate lists every fault with its path, including those of other profiles', async () => {
  const folder = await project({
    gateway: { port: 'many' },
    gatway: {},
    profiles: { development: {}, production: { rest: { timeoutMs: -1 } } },
  });
  const { code, json } = await runSvc(folder, ['config', 'validate', '--json']);
  expect([code, json.ok, json.error.code]).toEqual([1, false, 'VALIDATION_ERROR']);
  expect(json.error.details.problems.map(({ path }: { path: string }) => path).toSorted()).toEqual([
    'gateway.port',
    'gatway',
    'profiles.production.rest.timeoutMs',
  ]);
  const good = await project({ gateway: { port: 4100 } });
  expect((await runSvc(folder, ['config', 'validate', join(good, 'svc.config.json')])).code).toBe(0);
  expect(
    (await runSvc(folder, ['config', 'validate', join(good, 'absent.json'), '--json'])).json.error.code,
  ).toBe('CONFIG_NOT_FOUND');
});

test('schema prints the schema that the package ships', async () => {
  const { stdout } = await runSvc(await tempDir(), ['config', 'schema']);
  expect(JSON.parse(stdout)).toEqual(
    JSON.parse(await readFile(join(packageRoot, 'schemas', 'svc.schema.json'), 'utf8')),
  );
});
