import { readFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { readExplanations } from '../../src/cli/documented-codes.ts';
import { referencePage } from '../../src/cli/reference-page.ts';
import { PLATFORM_CODES } from '../../src/contracts/index.ts';
import { packageRoot } from '../../src/kit/files/paths.ts';
import { SOURCE_ROOT, sourceFiles } from '../support/source-files.ts';

test('docs/cli.md is generated from the commands; update it with `npm run generate`', async () => {
  expect(await readFile(join(packageRoot, 'docs/cli.md'), 'utf8')).toBe(await referencePage());
});

test('docs/cli.md names every environment variable that the sources read', async () => {
  const page = await referencePage();
  const read = sourceFiles(SOURCE_ROOT).flatMap((file) =>
    [...readFileSync(join(SOURCE_ROOT, file), 'utf8').matchAll(/\benv\??\.((?:SVC|GATEWAY)_[A-Z_]+)/g)].map(
      ([, name]) => name!,
    ),
  );
  expect(new Set(read).size).toBeGreaterThan(8);
  expect([...new Set(read)].filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});

test('svc explain lists every platform code with status, exit code and remedy, and the diagnostic codes', () => {
  const known = readExplanations();
  const errors = known.filter(({ kind }) => kind === 'error');
  expect(Object.fromEntries(errors.map(({ code, status }) => [code, status]))).toEqual(PLATFORM_CODES);
  for (const { code, remedy, exitCode } of errors) {
    expect(remedy, code).toMatch(/\S/);
    expect(exitCode, code).toBeGreaterThan(0);
  }
  const of = (kind: string): string[] => known.filter((each) => each.kind === kind).map(({ code }) => code);
  expect(of('reason').length).toBeGreaterThan(40);
  expect(of('reason')).toContain('JWT_EXPIRED');
  expect(of('refusal')).toEqual(expect.arrayContaining(['wrong_secret', 'clock_skew', 'unprovisioned']));
  expect(of('exit')).toEqual(['0', '1', '2', '3', '4', '5', '6', '130', '143']);
});
