import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { PLATFORM_CODES } from '../src/contracts/index.ts';
import { packageRoot } from '../src/kit/paths.ts';

test('docs/errors.md lists exactly the codes there are, with their statuses', async () => {
  const text = await readFile(join(packageRoot, 'docs/errors.md'), 'utf8');
  const rows = [...text.matchAll(/^\| `([A-Z_]+)` \| (\d{3}) \| \S.* \| \S.* \|$/gm)].map(
    ([, code, status]) => [code, Number(status)],
  );
  expect(rows.toSorted()).toEqual(Object.entries(PLATFORM_CODES).toSorted());
});
