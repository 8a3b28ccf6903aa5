import { execFileSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { getPlugin, installPlugin } from '../../../src/contracts/index.ts';
import { tempDir } from '../../support/daemon.ts';
import { asCaller, send, startRest } from '../rest/support.ts';
import { type Files, greeter, pluginFolder, startMarketplace, writeFiles } from './support.ts';

/** Why these tests are skipped here; undefined when npm's registry answers. */
const unreachable = ((): string | undefined => {
  try {
    execFileSync('npm', ['view', 'lodash@4.17.21', 'version', '--fetch-retries=0', '--fetch-timeout=10000'], {
      stdio: 'pipe',
      timeout: 20_000,
    });
    return undefined;
  } catch (error) {
    return `the npm registry cannot be reached: ${String(error).split('\n')[0]}`;
  }
})();
if (unreachable) console.warn(`Plugins with dependencies are not tested: ${unreachable}`);

const PLUGINS = [
  {
    id: 'uses-lodash',
    dependency: { lodash: '4.17.21' },
    code: `import lodash from 'lodash';
      export const greet = (_ctx, { words }) => lodash.chunk(words.map(lodash.capitalize), 2);`,
    input: { words: ['one', 'two', 'three'] },
    result: [['One', 'Two'], ['Three']],
  },
  {
    id: 'uses-date-fns',
    dependency: { 'date-fns': '4.1.0' },
    code: `import { addMonths, formatISO } from 'date-fns';
      export const greet = (_ctx, { day }) => formatISO(addMonths(new Date(day + 'T12:00:00'), 1), { representation: 'date' });`,
    input: { day: '2030-01-31' },
    result: '2030-02-28',
  },
];

test.skipIf(unreachable)(
  'plugins with npm dependencies install and run, each with its own copies',
  async () => {
    const daemon = await startMarketplace();
    for (const { id, dependency, code } of PLUGINS) {
      const source = await pluginFolder(
        greeter(
          '1.0.0',
          { id },
          {
            'package.json': {
              name: id,
              version: '1.0.0',
              type: 'module',
              scripts: { preinstall: 'touch ran', postinstall: 'touch ran' },
              dependencies: dependency,
            },
            'h.js': code,
          },
        ),
      );
      const { root, status } = await daemon.call(installPlugin, { body: { source } });
      expect(status).toBe('loaded');
      expect(await readdir(join(root, 'node_modules'))).toContain(Object.keys(dependency)[0]);
      expect(existsSync(join(root, 'node_modules/.bin'))).toBe(false);
      // No script of any package runs.
      expect(existsSync(join(root, 'ran'))).toBe(false);
    }
    const { dataDir } = daemon;
    const rest = await startRest({ dataDir, projectDir: dataDir });
    for (const { id, input, result } of PLUGINS) {
      const commandId = `greet-${id.replace(/\W/g, '')}`;
      const { body } = await send(rest, 'POST', `/api/v1/commands/${id}/${commandId}`, {
        body: { input },
        headers: asCaller('operator'),
      });
      expect(body).toMatchObject({ exitCode: 0, result });
    }
  },
  120_000,
);

test.skipIf(unreachable)(
  'a package of the registry without a manifest is refused',
  async () => {
    const daemon = await startMarketplace();
    await expect(daemon.call(installPlugin, { body: { source: 'is-number@7.0.0' } })).rejects.toMatchObject({
      code: 'INVALID_MANIFEST',
    });
    await expect(daemon.call(installPlugin, { body: { source: 'is-number@999.0.0' } })).rejects.toMatchObject(
      { code: 'UPSTREAM_UNAVAILABLE', message: expect.stringContaining('npm failed') },
    );
    await expect(
      daemon.call(getPlugin, { params: { pluginId: 'is-number' as never } }),
    ).rejects.toMatchObject({ code: 'PLUGIN_NOT_FOUND' });
  },
  120_000,
);

/** A plugin whose package.json, and whatever files beside it, are chosen to lead npm astray. */
const astray = (manifest: object, files: Files = {}) =>
  pluginFolder(greeter('1.0.0', {}, { 'package.json': { name: '@acme/greeter', ...manifest }, ...files }));

test.each([
  ['path', 'file:/etc'],
  ['path', '../../secrets'],
  ['git address', 'git+https://git.example/evil.git'],
  ['git address', 'git@git.example:evil/evil'],
  ['git address', 'https://git.example/evil.git#main'],
  ['git address', 'evil/evil'],
  ['git address', 'github:evil/evil#semver:1'],
  ['address', 'https://files.example/evil.tgz'],
])('a dependency by %s (%s) is refused', async (way, range) => {
  const daemon = await startMarketplace();
  const source = await astray({ dependencies: { secrets: range } });
  await expect(daemon.call(installPlugin, { body: { source } })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringContaining(`by the ${way} "${range}"`),
  });
});

test.each(['{', 'null', '[]'])('a package.json with %s is reported', async (text) => {
  const daemon = await startMarketplace();
  const source = await pluginFolder(greeter('1.0.0', {}, { 'package.json': text }));
  await expect(daemon.call(installPlugin, { body: { source } })).rejects.toMatchObject({
    code: 'VALIDATION_ERROR',
    message: expect.stringMatching(/^The plugin's package.json cannot be read: ./),
  });
});

test('no code of a git dependency in a lock file is run', async () => {
  const daemon = await startMarketplace();
  const place = await tempDir();
  const witness = join(place, 'ran');
  const program = join(place, 'git.sh');
  await writeFile(program, `#!/bin/sh\ntouch ${witness}\nexec git "$@"\n`, { mode: 0o755 });
  const evil = await writeFiles(join(place, 'evil'), {
    '.npmrc': `git=${program}\n`,
    'package.json': {
      name: 'evil',
      version: '1.0.0',
      scripts: { prepare: `touch ${witness}` },
      dependencies: { other: `git+file://${place}/evil` },
    },
  });
  const git = (...args: string[]) => execFileSync('git', args, { cwd: evil, encoding: 'utf8' }).trim();
  git('init', '--quiet');
  git('add', '.');
  git('-c', 'user.name=t', '-c', 'user.email=t@example.com', 'commit', '--quiet', '-m', 'one');
  const resolved = `git+file://${evil}#${git('rev-parse', 'HEAD')}`;
  const dependencies = { evil: '1.0.0' };
  const source = await astray(
    { version: '1.0.0', dependencies },
    {
      'package-lock.json': {
        name: '@acme/greeter',
        version: '1.0.0',
        lockfileVersion: 3,
        requires: true,
        packages: {
          '': { name: '@acme/greeter', version: '1.0.0', dependencies },
          'node_modules/evil': { version: '1.0.0', resolved },
        },
      },
    },
  );
  await daemon.call(installPlugin, { body: { source } }).catch(() => {});
  expect(existsSync(witness)).toBe(false);
}, 60_000);
