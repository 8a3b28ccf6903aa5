import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withMountedSecrets } from '../../../src/kit/config/mounted-secrets.ts';
import { tempDir } from '../../support/daemon.ts';

test('a mounted file gives a secret, without the line end, unless the variable itself is set', async () => {
  const file = join(await tempDir(), 'jwt');
  writeFileSync(file, 'mounted\n');
  const env = { GATEWAY_JWT_SECRET_FILE: file };
  expect(withMountedSecrets(env).GATEWAY_JWT_SECRET).toBe('mounted');
  expect(withMountedSecrets({ ...env, GATEWAY_JWT_SECRET: 'set' }).GATEWAY_JWT_SECRET).toBe('set');
  expect(withMountedSecrets({ OTHER_FILE: file })).toEqual({ OTHER_FILE: file });
});

test('a file that is missing or empty is refused with its name', async () => {
  const file = join(await tempDir(), 'key');
  const env = { SVC_MASTER_KEY_FILE: file };
  expect(() => withMountedSecrets(env)).toThrow(/SVC_MASTER_KEY_FILE cannot be read: .*key/);
  writeFileSync(file, '\n');
  expect(() => withMountedSecrets(env)).toThrow(/which is empty/);
});
