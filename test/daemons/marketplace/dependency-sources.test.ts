import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, readFile, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { installPlugin } from '../../../src/contracts/index.ts';
import { locate } from '../../../src/kit/process/locate-program.ts';
import { tempDir } from '../../support/daemon.ts';
import { startRegistry, type TestRegistry } from './registry.ts';
import { type Files, greeter, pluginFolder, startMarketplace, writeFiles } from './support.ts';

const SLOW = { timeout: 60_000 };
const NPM = locate('npm', process.env.PATH)!;

let registry: TestRegistry;
/** Made by whatever of a package is run. */
let witness: string;
/** A repository whose package names programs to npm. */
let repository: string;

beforeEach(async () => {
  registry = await startRegistry();
  const place = await tempDir();
  witness = join(place, 'ran');
  const program = join(place, 'git.sh');
  await writeFile(program, `#!/bin/sh\ntouch ${witness}\nexec git "$@"\n`, { mode: 0o755 });
  repository = await writeFiles(join(place, 'evil'), {
    '.npmrc': `git=${program}\nnode-options=--require=./evil.js\n`,
    'evil.js': `require('node:fs').writeFileSync(${JSON.stringify(witness)}, '')`,
    // With something bundled, npm unpacks and prepares it even to look at it.
    'package.json': packageOf('evil', {
      scripts: { prepare: `touch ${witness}` },
      dependencies: { other: `git+file://${place}/evil` },
      bundleDependencies: ['other'],
    }),
  });
  const git = (...args: string[]) => execFileSync('git', args, { cwd: repository });
  git('init', '--quiet');
  git('add', '.');
  git('-c', 'user.name=t', '-c', 'user.email=t@example.com', 'commit', '--quiet', '-m', 'one');
  await publish('good');
});

const packageOf = (name: string, more: object = {}) => ({ name, version: '1.0.0', ...more });

const publish = (name: string, more: object = {}) =>
  registry.publish(name, '1.0.0', { 'package.json': packageOf(name, more) });

/** An npm of before it could be told whence packages may come. */
async function useOlderNpm(): Promise<void> {
  const folder = await tempDir();
  const code = `process.argv = process.argv.filter((arg) => !arg.startsWith('--allow-'));
    require(${JSON.stringify(NPM)});`;
  await writeFiles(folder, { 'npm-cli.js': code });
  await symlink('npm-cli.js', join(folder, 'npm'));
  // What startRegistry saved is put back when the test ends.
  process.env.PATH = `${folder}:${process.env.PATH}`;
}

async function install(dependencies: object, manifest: object = {}, files: Files = {}) {
  const marketplace = await startMarketplace();
  const told = packageOf('@acme/greeter', { type: 'module', dependencies, ...manifest });
  const source = await pluginFolder(greeter('1.0.0', {}, { 'package.json': told, ...files }));
  return marketplace.call(installPlugin, { body: { source } });
}

function lockFile(dependencies: object, packages: object): Files {
  const root = packageOf('@acme/greeter');
  return {
    'package-lock.json': {
      ...root,
      lockfileVersion: 3,
      requires: true,
      packages: { '': { ...root, dependencies }, ...packages },
    },
  };
}

describe.each([
  ['npm as it is', async () => {}],
  ['an older npm', useOlderNpm],
])('%s', (_name, useNpm) => {
  beforeEach(useNpm);

  test('a transitive dependency from git is refused, and none of its code runs', SLOW, async () => {
    await publish('one', { dependencies: { evil: `git+file://${repository}` } });
    await publish('two', { dependencies: { one: '^1.0.0' } });
    await expect(install({ two: '^1.0.0' })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringMatching(/a program for it, such as git|type "git"/),
    });
    expect(existsSync(witness)).toBe(false);
  });

  test('an optional one is omitted', SLOW, async () => {
    await publish('one', { optionalDependencies: { evil: `git+file://${repository}` } });
    const { root, status } = await install({ one: '1.0.0' });
    expect([status, await readdir(join(root, 'node_modules'))]).toEqual(['loaded', ['one']]);
    expect(existsSync(witness)).toBe(false);
  });

  test('a dependency of a dependency by path is refused', SLOW, async () => {
    await publish('one', { dependencies: { evil: `file:${repository}` } });
    await expect(install({ one: '1.0.0' })).rejects.toMatchObject({
      code: 'VALIDATION_ERROR',
      message: expect.stringMatching(/evil from ".*evil", which is not a registry|type "directory"/),
    });
  });

  test.each(['a dependency', "the plugin's overrides", "the plugin's lock file"])(
    'a package from another source named by %s is refused',
    SLOW,
    async (where) => {
      const address = `${registry.url.replace('127.0.0.1', 'localhost')}/good-1.0.0.tgz`;
      await publish('one', { dependencies: { good: where === 'a dependency' ? address : '1.0.0' } });
      const dependencies = { one: '1.0.0' };
      const lock = lockFile(dependencies, {
        'node_modules/one': { version: '1.0.0', dependencies: { good: '1.0.0' } },
        'node_modules/good': { version: '1.0.0', resolved: address },
      });
      await expect(
        install(
          dependencies,
          where === "the plugin's overrides" ? { overrides: { good: address } } : {},
          where === "the plugin's lock file" ? lock : {},
        ),
      ).rejects.toMatchObject({
        code: 'VALIDATION_ERROR',
        message: expect.stringMatching(
          /good from "http:\/\/localhost:\d+\/good-1.0.0.tgz", which is not a registry|type "remote"/,
        ),
      });
    },
  );

  test('dev and peer dependencies are not fetched', SLOW, async () => {
    const manifest = {
      devDependencies: { 'not-published': '^1.0.0', local: 'file:../local' },
      peerDependencies: { 'not-published-either': '^1.0.0' },
    };
    const { root } = await install({ good: '^1.0.0' }, manifest);
    expect(await readdir(join(root, 'node_modules'))).toEqual(['good']);
    expect(JSON.parse(await readFile(join(root, 'package.json'), 'utf8'))).toMatchObject(manifest);
  });

  test('versions pinned by a lock file are kept if they are from the registry', SLOW, async () => {
    await registry.publish('good', '1.1.0', { 'package.json': { name: 'good', version: '1.1.0' } });
    const dependencies = { good: '^1.0.0' };
    const lock = lockFile(dependencies, {
      'node_modules/good': { version: '1.0.0', resolved: `${registry.url}/good-1.0.0.tgz` },
    });
    const { root } = await install(dependencies, {}, lock);
    expect(await readdir(join(root, 'node_modules'))).toEqual(['good']);
    const told = await readFile(join(root, 'node_modules/good/package.json'), 'utf8');
    expect(JSON.parse(told)).toMatchObject({ version: '1.0.0' });
  });
});
