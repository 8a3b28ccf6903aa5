import { execFileSync } from 'node:child_process';
import { readdir, readFile, stat, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { savedLogins } from '../../src/cli/saved-logins.ts';
import { draftPathOf } from '../../src/kit/files/draft-path.ts';
import { writePrivateFile } from '../../src/supervisor/data-folder.ts';
import { tempDir } from '../support/daemon.ts';

test('a link or pipe planted by another user at the draft path is neither written through nor blocked on', async () => {
  const folder = await tempDir();
  const [file, victim] = [join(folder, 'token.json'), join(folder, 'victim')];
  await writeFile(victim, 'as it was');
  await symlink(victim, `${file}.${process.pid}.new`);
  writePrivateFile(file, 'mine');
  expect(await readFile(victim, 'utf8')).toBe('as it was');
  expect(await readFile(file, 'utf8')).toBe('mine');
  expect((await stat(file)).mode & 0o777).toBe(0o600);

  const logins = join(folder, 'svc/logins.json');
  const env = { XDG_CONFIG_HOME: folder };
  const login = { clientId: 'c', accessToken: 'a', refreshToken: 'r', expiresAt: 1 };
  savedLogins(env).save('https://one.example', login);
  execFileSync('mkfifo', [`${logins}.${process.pid}.new`]);
  savedLogins(env).save('https://two.example', login);
  expect(savedLogins(env).find('https://two.example')).toEqual(login);
});

test('drafts of one file have distinct names, and all are removed', async () => {
  const folder = await tempDir();
  const file = join(folder, 'a.json');
  expect(draftPathOf(file)).not.toBe(draftPathOf(file));
  expect(draftPathOf(file)).toMatch(/a\.json\.[0-9a-f-]{36}\.new$/);
  writePrivateFile(file, '1');
  expect(() => writePrivateFile(join(folder, 'missing', 'b.json'), '1')).toThrow('Cannot write');
  expect(await readdir(folder)).toEqual(['a.json']);
});
